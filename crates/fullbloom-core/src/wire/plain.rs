//! [`Batch`] and [`Bits`]: the keys of a plain filter by shard, the commands for some shards, and the results of their
//! replies.

use std::ops::Range;
use std::sync::Arc;

use super::cells::{CellState, Cells, MARK_BYTES};
use super::cut::Shard;
use super::exchange::{Exchange, State, Subject, mark, unexpected_error};
use super::groups::Groups;
use super::reply::{Limit, Reply, items};
use super::whole;
use crate::cells::allocation::{reserve, zeroed};
use crate::error::{Error, Result};

/// Hashes in the order of their shards, and the answers in the original order.
#[derive(Debug)]
pub struct Batch {
    cells: Arc<Cells>,
    adding: bool,
    /// Sends no shard as a whole, because a server refused that.
    by_key: bool,
    keys: Groups,
    answers: Vec<u8>,
}

impl Batch {
    /// Hashes to look up, or to add.
    pub fn new(cells: &Arc<Cells>, hashes: Vec<u64>, adding: bool) -> Result<Self> {
        let (cells, answers) = (Arc::clone(cells), zeroed(hashes.len())?);
        let keys = Groups::new(hashes, cells.shards(), |hash| cells.shard(hash))?;
        Ok(Batch { cells, adding, by_key: false, keys, answers })
    }

    /// No hashes, and the mark of every shard.
    pub fn marks(cells: &Arc<Cells>) -> Self {
        let shards = (0..cells.shards()).map(|shard| (shard, 0..0)).collect();
        let keys = Groups { shards, ..Groups::default() };
        Batch { cells: Arc::clone(cells), adding: false, by_key: true, keys, answers: Vec::new() }
    }

    /// The shards of the hashes, ascending.
    pub fn shards(&self) -> impl Iterator<Item = u64> + '_ {
        self.keys.shards.iter().map(|(shard, _)| *shard)
    }

    /// From now on sends each key by itself that might have been sent together with its shard; for other batches, too,
    /// if `always`.
    pub fn go_by_key(&mut self, always: bool) {
        self.by_key = true;
        if always {
            self.cells.go_by_key();
        }
    }

    /// The commands for the hashes of some shards; the caller supplies their strings.
    ///
    /// With `asking` each follows an ASKING, as a node needs that takes over a slot.
    pub fn exchange(&self, shards: Vec<Shard>, asking: bool) -> Result<Exchange<Bits>> {
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
        Exchange::new(Bits { cells: Arc::clone(&self.cells), adding: self.adding, work }, asking)
    }

    /// Stores the answers of an exchange. Keys that an earlier one found new stay new.
    pub fn take(&mut self, exchange: &Exchange<Bits>) {
        for work in &exchange.subject().work {
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

    /// The hashes, grouped by shard.
    pub fn hashes(&self) -> &[u64] {
        &self.keys.hashes
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

/// The keys of some shards, and their answers so far. Keys that an earlier attempt found new stay new.
#[derive(Debug)]
pub struct Bits {
    cells: Arc<Cells>,
    adding: bool,
    work: Vec<Work>,
}

/// Bytes of commands for a key besides its string's name: for a lookup, and for one bit that is set.
const ASKED: usize = 48;
const SET: usize = 40;

impl Bits {
    /// True if some shard's keys are sent as one string of bits, which a server may refuse although it accepts single
    /// keys.
    pub fn is_whole(&self) -> bool {
        self.work.iter().any(|work| work.whole)
    }
}

impl Subject for Bits {
    fn shards(&self) -> usize {
        self.work.len()
    }

    fn state(&self, shard: usize) -> State<'_> {
        let work = &self.work[shard];
        State { shard: work.shard.number, mark: &work.mark, short: work.short, bits_set: work.bits_set }
    }

    fn replies(&self, shard: usize) -> usize {
        1 + self.work[shard].replies(&self.cells)
    }

    fn limit(&self, shard: usize, step: usize) -> Limit {
        let (cells, work) = (&*self.cells, &self.work[shard]);
        let is_mark = step == work.replies(cells);
        if work.whole {
            Limit::text(cells.range(work.shard.number).1 + MARK_BYTES)
        } else if cells.is_native() {
            if is_mark { Limit::LINE } else { Limit::numbers(work.hashes.len()) }
        } else if is_mark {
            Limit::text(MARK_BYTES)
        } else {
            cells.limit(self.adding)
        }
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        let (cells, adding) = (&self.cells, self.adding);
        let bits = cells.shape().num_hashes as usize;
        let each = if adding { ASKED + bits * SET } else { ASKED * cells.replies() };
        for Work { shard, hashes, whole, .. } in &self.work {
            if *whole {
                whole::put(cells, out, shard, hashes)?;
                continue;
            }
            reserve(out, (hashes.len() + 1) * (each + shard.key.len() * cells.replies()))?;
            if cells.is_native() && !hashes.is_empty() {
                cells.write_module_command(out, &shard.key, hashes, adding);
            }
            for &hash in hashes.iter().filter(|_| !cells.is_native()) {
                if adding { cells.put(out, &shard.key, hash) } else { cells.ask(out, &shard.key, hash) }
            }
            cells.ask_mark(out, &shard.key, shard.number);
        }
        Ok(())
    }

    fn take(&mut self, shard: usize, step: usize, reply: Reply<'_>) -> Result<()> {
        let (cells, work) = (&*self.cells, &mut self.work[shard]);
        if work.whole {
            return work.take_whole(cells, reply);
        }
        if step == work.replies(cells) {
            return work.take_mark(reply, cells.is_native());
        }
        if cells.is_native() {
            work.take_answers(reply, self.adding)
        } else {
            work.take_bits(cells, self.adding, step, reply)
        }
    }

    fn restart(&mut self) -> bool {
        self.work.iter_mut().for_each(|work| work.short = false);
        false
    }
}

impl Work {
    /// Replies to the commands for its keys.
    fn replies(&self, cells: &Cells) -> usize {
        match self.whole {
            true => 0,
            false if cells.is_native() => usize::from(!self.hashes.is_empty()),
            false => self.hashes.len() * cells.replies(),
        }
    }

    /// Processes the contents of a line, or its previous bits.
    #[inline]
    fn take_bits(&mut self, cells: &Cells, adding: bool, step: usize, reply: Reply<'_>) -> Result<()> {
        let each = cells.replies();
        let (key, first) = (step / each, step.is_multiple_of(each));
        let hash = self.hashes[key];
        let said = if adding { cells.read_insertion(hash, reply) } else { cells.read_lookup(hash, reply) };
        match said.ok_or_else(|| unexpected_error("a reply of another kind"))? {
            CellState::Short => (self.short, self.answers[key]) = (true, 0),
            CellState::Unset(unset) if adding => {
                self.bits_set += u64::from(unset);
                self.answers[key] |= u8::from(unset > 0);
            }
            CellState::Unset(unset) => self.answers[key] = u8::from(unset == 0 && (first || self.answers[key] == 1)),
        }
        Ok(())
    }

    /// Processes the previous string.
    fn take_whole(&mut self, cells: &Cells, reply: Reply<'_>) -> Result<()> {
        let string = match reply {
            Reply::Nil => None,
            Reply::Bulk(string) => Some(string),
            _ => return Err(unexpected_error("a reply of another kind")),
        };
        let was = whole::split(cells, self.shard.number, string);
        self.mark = was.map_or_else(Vec::new, |(_, mark)| mark.to_vec());
        self.short = was.is_none();
        if let Some((before, _)) = was {
            self.bits_set += whole::answer(cells, before, &self.hashes, &mut self.answers)?;
        }
        Ok(())
    }

    /// Processes the answers of a filter of the server.
    fn take_answers(&mut self, reply: Reply<'_>, adding: bool) -> Result<()> {
        let Reply::Array(array) = reply else { return Err(unexpected_error("a reply of another kind")) };
        let mut replies = items(array);
        for answer in &mut self.answers {
            match replies.next() {
                Some(Some(said @ 0..=1)) => *answer = if adding { *answer | said as u8 } else { said as u8 },
                _ => return Err(unexpected_error("fewer answers than keys")),
            }
        }
        if replies.next().is_some() { Err(unexpected_error("more answers than keys")) } else { Ok(()) }
    }

    fn take_mark(&mut self, reply: Reply<'_>, native: bool) -> Result<()> {
        self.mark = match reply {
            Reply::Integer(there @ 0..=1) if native => vec![there as u8],
            _ if native => return Err(unexpected_error("a reply of another kind")),
            reply => mark(reply)?,
        };
        Ok(())
    }
}
