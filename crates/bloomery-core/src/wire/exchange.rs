//! [`Batch`] and [`Exchange`]: hashes by shard, the commands of some shards, and their replies.

use std::ops::Range;
use std::sync::Arc;

use super::cells::{Cells, MARK_BYTES, Said};
use super::cut::Shard;
use super::groups::Groups;
use super::reply::{Replies, Reply, items, past};
use super::whole;
use crate::cells::allocation::{reserve, zeroed};
use crate::error::{Error, Result};

/// Hashes in the order of their shards, and the answers in the order in which they came.
#[derive(Debug)]
pub struct Batch {
    cells: Arc<Cells>,
    adding: bool,
    /// No shard goes whole: a server refused it.
    by_key: bool,
    keys: Groups,
    answers: Vec<u8>,
}

impl Batch {
    /// Hashes to be looked for, or added.
    pub fn new(cells: &Arc<Cells>, hashes: Vec<u64>, adding: bool) -> Result<Self> {
        let (cells, answers) = (Arc::clone(cells), zeroed(hashes.len())?);
        let keys = Groups::new(hashes, cells.shards(), |hash| cells.shard(hash))?;
        Ok(Batch { cells, adding, by_key: false, keys, answers })
    }

    /// The shards that hashes lie in, rising.
    pub fn shards(&self) -> impl Iterator<Item = u64> + '_ {
        self.keys.shards.iter().map(|(shard, _)| *shard)
    }

    /// Sends each key by itself from here on, where it might have gone with all others of its shard; those of other batches,
    /// too, if `always`.
    pub fn go_by_key(&mut self, always: bool) {
        self.by_key = true;
        if always {
            self.cells.go_by_key();
        }
    }

    /// The commands for the hashes of some shards, whose strings are given.
    ///
    /// With `asking` each goes behind an ASKING, as a node wants that takes over a slot.
    pub fn exchange(&self, shards: Vec<Shard>, asking: bool) -> Result<Exchange> {
        let mut work = Vec::new();
        for shard in shards {
            let number = shard.number;
            let Some((_, keys)) = self.keys.shards.iter().find(|(group, _)| *group == number) else {
                return Err(Error::Parameter(format!("no key of the batch lies in shard {number}")));
            };
            let answers = zeroed(keys.len())?;
            let hashes = self.keys.hashes[keys.clone()].to_vec();
            let whole = self.adding && !self.by_key && !asking && whole::pays(&self.cells, number, hashes.len());
            let (keys, mark) = (keys.clone(), Vec::new());
            work.push(Work { shard, keys, whole, hashes, answers, mark, short: false, bits_set: 0 });
        }
        Exchange::new(&self.cells, self.adding, asking, work)
    }

    /// Takes the answers of an exchange. What an earlier one found new stays new.
    pub fn take(&mut self, exchange: &Exchange) {
        for work in &exchange.work {
            for (at, &answer) in work.keys.clone().zip(&work.answers) {
                let Some(&came) = self.keys.order.get(at) else { continue };
                let mine = &mut self.answers[came as usize];
                *mine = if self.adding { *mine | answer } else { answer };
            }
        }
    }

    /// 1 for each key that was found, or new; 0 for the others.
    pub fn answers(&self) -> &[u8] {
        &self.answers
    }

    /// The hashes, those of a shard together.
    pub fn hashes(&self) -> &[u64] {
        &self.keys.hashes
    }

    /// True of keys that are added.
    pub fn is_adding(&self) -> bool {
        self.adding
    }
}

/// The keys of one shard.
#[derive(Debug)]
struct Work {
    shard: Shard,
    keys: Range<usize>,
    /// All go as one string of bits.
    whole: bool,
    hashes: Vec<u64>,
    answers: Vec<u8>,
    mark: Vec<u8>,
    short: bool,
    bits_set: u64,
}

/// What a server said of a shard in place of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The shard's number.
    pub shard: u64,
    /// The code and the text.
    pub text: String,
}

/// Commands as one buffer, and how far their replies have come. The mark of each shard is asked for behind its keys: what it
/// says was so when they were looked for, and added.
#[derive(Debug)]
pub struct Exchange {
    cells: Arc<Cells>,
    adding: bool,
    asking: bool,
    /// True when the reply to ASKING is the next one.
    allowance: bool,
    work: Vec<Work>,
    buffer: Vec<u8>,
    replies: Replies,
    /// The shard whose replies come, and how many of them have.
    at: (usize, usize),
    refusals: Vec<Refusal>,
}

/// Bytes of commands for a key beside its string's name: of a look, and of one bit that is set.
const ASKED: usize = 48;
const SET: usize = 40;
const ASKING: &[u8] = b"*1\r\n$6\r\nASKING\r\n";

impl Exchange {
    fn new(cells: &Arc<Cells>, adding: bool, asking: bool, work: Vec<Work>) -> Result<Self> {
        let mut buffer = Vec::new();
        let bits = cells.shape().num_hashes as usize;
        let each = if adding { ASKED + bits * SET } else { ASKED * cells.replies() };
        for Work { shard, hashes, whole, .. } in &work {
            if *whole {
                whole::put(cells, &mut buffer, shard, hashes)?;
                continue;
            }
            reserve(&mut buffer, (hashes.len() + 1) * (each + shard.key.len() * cells.replies()))?;
            if cells.is_native() {
                cells.tell(&mut buffer, &shard.key, hashes, adding);
            }
            for &hash in hashes.iter().filter(|_| !cells.is_native()) {
                if adding { cells.put(&mut buffer, &shard.key, hash) } else { cells.ask(&mut buffer, &shard.key, hash) }
            }
            cells.ask_mark(&mut buffer, &shard.key, shard.number);
        }
        if asking {
            buffer = behind_asking(&buffer)?;
        }
        let (cells, replies) = (Arc::clone(cells), Replies::default());
        let (at, refusals) = ((0, 0), Vec::new());
        Ok(Exchange { cells, adding, asking, allowance: asking, work, buffer, replies, at, refusals })
    }

    /// What is to be sent.
    pub fn buffer(&self) -> &[u8] {
        &self.buffer
    }

    /// Replies that are due, from the first on.
    pub fn due(&self) -> usize {
        let commands = self.work.iter().map(|work| 1 + work.replies(&self.cells)).sum::<usize>();
        commands * (1 + usize::from(self.asking))
    }

    /// True when some shard's keys go as one string of bits, which a server may refuse that takes them one by one.
    pub fn is_whole(&self) -> bool {
        self.work.iter().any(|work| work.whole)
    }

    /// Takes bytes that came; true when all replies have.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<bool> {
        match self.feed_part(bytes)? {
            Some(1..) => Err(unexpected("more replies than commands")),
            left => Ok(left.is_some()),
        }
    }

    /// As [`Self::feed`], where replies to other commands may follow: how many bytes were left over, `None` while replies are due.
    pub fn feed_part(&mut self, bytes: &[u8]) -> Result<Option<usize>> {
        self.replies.feed(bytes)?;
        let mut replies = std::mem::take(&mut self.replies);
        let fed = self.read(&mut replies);
        self.replies = replies;
        fed
    }

    fn read(&mut self, replies: &mut Replies) -> Result<Option<usize>> {
        while !self.is_done() {
            match replies.read()? {
                Some(reply) => self.accept(reply)?,
                None => return Ok(None),
            }
        }
        let left = replies.left();
        replies.clear();
        Ok(Some(left))
    }

    /// True when all replies have come.
    pub fn is_done(&self) -> bool {
        self.at.0 >= self.work.len()
    }

    /// Takes the next reply.
    pub fn accept(&mut self, reply: Reply<'_>) -> Result<()> {
        let (cells, adding, (group, step)) = (&*self.cells, self.adding, self.at);
        let Some(work) = self.work.get_mut(group) else { return Err(unexpected("more replies than commands")) };
        let allowed = self.asking && !self.allowance;
        if std::mem::replace(&mut self.allowance, allowed) {
            return Ok(()); // a node that refuses it refuses what comes next, too
        }
        let each = cells.replies();
        self.at = if step == work.replies(cells) { (group + 1, 0) } else { (group, step + 1) };
        if let Reply::Error(text) = reply {
            let text = String::from_utf8_lossy(text).into_owned();
            let refusal = Refusal { shard: work.shard.number, text };
            if self.refusals.last() != Some(&refusal) {
                self.refusals.push(refusal);
            }
            return Ok(());
        }
        if work.whole {
            return work.take_whole(cells, reply);
        }
        if step == work.replies(cells) {
            return work.take_mark(reply, cells.is_native());
        }
        if cells.is_native() {
            return work.take_answers(reply, adding);
        }
        let (key, first) = (step / each, step % each == 0);
        let hash = work.hashes[key];
        let said = if adding { cells.set(hash, reply) } else { cells.found(hash, reply) };
        match said.ok_or_else(|| unexpected("a reply of another kind"))? {
            Said::Short => (work.short, work.answers[key]) = (true, 0),
            Said::Unset(unset) if adding => {
                work.bits_set += u64::from(unset);
                work.answers[key] |= u8::from(unset > 0);
            }
            Said::Unset(unset) => work.answers[key] = u8::from(unset == 0 && (first || work.answers[key] == 1)),
        }
        Ok(())
    }

    /// Begins anew, for the same commands sent once more. What was found new stays new.
    pub fn restart(&mut self) {
        self.replies.clear();
        self.refusals.clear();
        (self.at, self.allowance) = ((0, 0), self.asking);
        self.work.iter_mut().for_each(|work| work.short = false);
    }

    /// What the server refused, each refusal once for all replies in a row that repeat it.
    pub fn refusals(&self) -> &[Refusal] {
        &self.refusals
    }

    /// Of each shard: its number, its mark, true when the string was too short for a key, and bits that were set.
    pub fn states(&self) -> impl Iterator<Item = (u64, &[u8], bool, u64)> + '_ {
        self.work.iter().map(|work| (work.shard.number, &work.mark[..], work.short, work.bits_set))
    }
}

impl Work {
    /// Replies to the commands for its keys.
    fn replies(&self, cells: &Cells) -> usize {
        match self.whole {
            true => 0,
            false if cells.is_native() => 1,
            false => self.hashes.len() * cells.replies(),
        }
    }

    /// Takes the string as it was before.
    fn take_whole(&mut self, cells: &Cells, reply: Reply<'_>) -> Result<()> {
        let string = match reply {
            Reply::Nil => None,
            Reply::Bulk(string) => Some(string),
            _ => return Err(unexpected("a reply of another kind")),
        };
        let was = whole::split(cells, self.shard.number, string);
        self.mark = was.map_or_else(Vec::new, |(_, mark)| mark.to_vec());
        self.short = was.is_none();
        if let Some((before, _)) = was {
            self.bits_set += whole::answer(cells, before, &self.hashes, &mut self.answers)?;
        }
        Ok(())
    }

    /// Takes the answers of a filter that the server has of its own.
    fn take_answers(&mut self, reply: Reply<'_>, adding: bool) -> Result<()> {
        let Reply::Array(array) = reply else { return Err(unexpected("a reply of another kind")) };
        let mut told = items(array);
        for answer in &mut self.answers {
            match told.next() {
                Some(Some(said @ 0..=1)) => *answer = if adding { *answer | said as u8 } else { said as u8 },
                _ => return Err(unexpected("fewer answers than keys")),
            }
        }
        if told.next().is_some() { Err(unexpected("more answers than keys")) } else { Ok(()) }
    }

    fn take_mark(&mut self, reply: Reply<'_>, native: bool) -> Result<()> {
        self.mark = match reply {
            Reply::Integer(there @ 0..=1) if native => vec![there as u8],
            Reply::Nil if !native => Vec::new(),
            Reply::Bulk(mark) if !native && mark.len() as u64 <= MARK_BYTES => mark.to_vec(),
            _ => return Err(unexpected("a reply of another kind")),
        };
        Ok(())
    }
}

/// The same commands, each behind an ASKING.
pub(super) fn behind_asking(commands: &[u8]) -> Result<Vec<u8>> {
    let (mut out, mut at) = (Vec::new(), 0);
    while let Some(end) = past(commands, at)?.filter(|_| at < commands.len()) {
        reserve(&mut out, ASKING.len() + end - at)?;
        out.extend_from_slice(ASKING);
        out.extend_from_slice(&commands[at..end]);
        at = end;
    }
    Ok(out)
}

pub(super) fn unexpected(what: &str) -> Error {
    Error::format(format!("the server's answer does not fit what it was asked ({what}); is a proxy between?"))
}
