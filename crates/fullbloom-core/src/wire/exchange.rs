//! [`Exchange`]: commands for one server as one buffer, and the progress of their replies.

use super::cells::MARK_BYTES;
use super::reply::{Limit, Replies, Reply, past};
use crate::cells::allocation::reserve;
use crate::error::{Error, Result};

/// The requests to a server about some shards: for the keys of each, and then for its owner tag. The tag is as it was
/// when the keys were looked up, or changed.
pub trait Subject {
    /// How many shards it is about.
    fn shards(&self) -> usize;

    /// The result of the replies of a shard so far.
    fn state(&self, shard: usize) -> State<'_>;

    /// Replies that are due from a shard.
    fn replies(&self, shard: usize) -> usize;

    /// How much such a reply may hold.
    fn limit(&self, shard: usize, step: usize) -> Limit;

    /// Appends the commands.
    fn write(&self, out: &mut Vec<u8>) -> Result<()>;

    /// Processes a reply of a shard that is not an error.
    fn take(&mut self, shard: usize, step: usize, reply: Reply<'_>) -> Result<()>;

    /// Starts over, keeping results; true if the commands have changed.
    fn restart(&mut self) -> bool;
}

/// The state of a shard.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State<'a> {
    /// Its number.
    pub shard: u64,
    /// Its owner tag; empty for a string without one.
    pub mark: &'a [u8],
    /// True if the string was too short for a key.
    pub short: bool,
    /// Bits that were set.
    pub bits_set: u64,
}

/// An error reply of the server about a shard.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The shard's number.
    pub shard: u64,
    /// The code and the text.
    pub text: String,
}

/// Commands as one buffer, and the progress of their replies.
#[derive(Debug)]
pub struct Exchange<S> {
    subject: S,
    asking: bool,
    /// True if the next reply is that of ASKING.
    allowance: bool,
    buffer: Vec<u8>,
    replies: Replies,
    /// The shard whose replies are due, and how many of them have arrived.
    at: (usize, usize),
    refusals: Vec<Refusal>,
}

const ASKING: &[u8] = b"*1\r\n$6\r\nASKING\r\n";

impl<S: Subject> Exchange<S> {
    /// With `asking` each command follows an ASKING, as a node needs that takes over a slot.
    pub fn new(subject: S, asking: bool) -> Result<Self> {
        let (buffer, replies, refusals) = (Vec::new(), Replies::default(), Vec::new());
        let mut exchange = Exchange { subject, asking, allowance: asking, buffer, replies, at: (0, 0), refusals };
        exchange.write()?;
        Ok(exchange)
    }

    fn write(&mut self) -> Result<()> {
        self.buffer.clear();
        self.subject.write(&mut self.buffer)?;
        if self.asking {
            self.buffer = behind_asking(&self.buffer)?;
        }
        Ok(())
    }

    /// Its subject, with the results.
    pub fn subject(&self) -> &S {
        &self.subject
    }

    /// The bytes to send.
    pub fn buffer(&self) -> &[u8] {
        &self.buffer
    }

    /// Replies that are due, from the first on.
    pub fn due(&self) -> usize {
        let commands = (0..self.subject.shards()).map(|shard| self.subject.replies(shard)).sum::<usize>();
        commands * (1 + usize::from(self.asking))
    }

    /// Processes received bytes; true if all replies have arrived.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<bool> {
        match self.feed_part(bytes)? {
            Some(1..) => Err(unexpected_error("more replies than commands")),
            left => Ok(left.is_some()),
        }
    }

    /// [`Self::feed`], if replies to other commands may follow: the number of bytes left over, `None` while replies are
    /// due.
    pub fn feed_part(&mut self, bytes: &[u8]) -> Result<Option<usize>> {
        self.replies.feed(bytes)?;
        let mut replies = std::mem::take(&mut self.replies);
        let fed = self.read(&mut replies);
        self.replies = replies;
        fed
    }

    fn read(&mut self, replies: &mut Replies) -> Result<Option<usize>> {
        while !self.is_done() {
            // The reply to ASKING is a line.
            let limit = if self.allowance { Limit::LINE } else { self.subject.limit(self.at.0, self.at.1) };
            match replies.read(limit)? {
                Some(reply) => self.accept(reply)?,
                None => return Ok(None),
            }
        }
        let left = replies.remaining();
        replies.clear();
        Ok(Some(left))
    }

    /// True if all replies have arrived.
    pub fn is_done(&self) -> bool {
        self.at.0 >= self.subject.shards()
    }

    /// Processes the next reply.
    pub fn accept(&mut self, reply: Reply<'_>) -> Result<()> {
        let (shard, step) = self.at;
        if self.is_done() {
            return Err(unexpected_error("more replies than commands"));
        }
        let allowed = self.asking && !self.allowance;
        if std::mem::replace(&mut self.allowance, allowed) {
            return Ok(()); // a node that refuses it refuses what comes next, too
        }
        self.at = if step + 1 == self.subject.replies(shard) { (shard + 1, 0) } else { (shard, step + 1) };
        let Reply::Error(text) = reply else { return self.subject.take(shard, step, reply) };
        let text = String::from_utf8_lossy(text).into_owned();
        let refusal = Refusal { shard: self.subject.state(shard).shard, text };
        if self.refusals.last() != Some(&refusal) {
            self.refusals.push(refusal);
        }
        Ok(())
    }

    /// Starts over, to send the commands again; keeps the results.
    pub fn restart(&mut self) -> Result<()> {
        self.replies.clear();
        self.refusals.clear();
        (self.at, self.allowance) = ((0, 0), self.asking);
        if self.subject.restart() { self.write() } else { Ok(()) }
    }

    /// The error replies of the server; consecutive equal ones count once.
    pub fn refusals(&self) -> &[Refusal] {
        &self.refusals
    }

    /// The state of each shard.
    pub fn states(&self) -> impl Iterator<Item = State<'_>> {
        (0..self.subject.shards()).map(|shard| self.subject.state(shard))
    }
}

/// The owner tag in a reply; empty if there is no string, or a shorter one.
pub(super) fn mark(reply: Reply<'_>) -> Result<Vec<u8>> {
    match reply {
        Reply::Nil => Ok(Vec::new()),
        Reply::Bulk(mark) if mark.len() as u64 <= MARK_BYTES => Ok(mark.to_vec()),
        _ => Err(unexpected_error("a reply of another kind")),
    }
}

/// The same commands, each after an ASKING.
fn behind_asking(commands: &[u8]) -> Result<Vec<u8>> {
    let (mut out, mut at) = (Vec::new(), 0);
    while let Some(end) = past(commands, at, Limit::TRUSTED)?.filter(|_| at < commands.len()) {
        reserve(&mut out, ASKING.len() + end - at)?;
        out.extend_from_slice(ASKING);
        out.extend_from_slice(&commands[at..end]);
        at = end;
    }
    Ok(out)
}

pub(super) fn unexpected_error(what: &str) -> Error {
    Error::format(format!("the server's reply does not match the request ({what}); is there a proxy in between?"))
}
