//! [`Batch`] and [`Counted`]: keys of counters by shard, the commands for them, and what their replies say.
//!
//! Unlike a bit that is set, a counter that is changed twice is another one. So it is remembered of which keys a reply has come,
//! and only the others are sent once more: after another node if the shard has moved, or when a connection broke.

use std::collections::HashMap;
use std::sync::Arc;

use super::Shard;
use super::cells::MARK_BYTES;
use super::counters::{Counters, Told, Verb};
use super::exchange::{Exchange, State, Subject, mark, unexpected};
use super::groups::Groups;
use super::reply::{Limit, Reply};
use crate::cells::allocation::{reserve, zeroed};
use crate::error::{Error, Result};

/// Keys in the order of their shards, and what was told of them.
#[derive(Debug)]
pub struct Batch {
    counters: Arc<Counters>,
    verb: Verb,
    keys: Groups,
    /// Of keys of which something is given back: the counters.
    back: Vec<u8>,
    told: Vec<Option<Told>>,
    /// Keys of the batch that it began with.
    began: usize,
}

impl Batch {
    /// Hashes, and what is to be done with their keys.
    pub fn new(counters: &Arc<Counters>, hashes: Vec<u64>, verb: Verb) -> Result<Self> {
        let (began, counters) = (hashes.len(), Arc::clone(counters));
        let keys = Groups::new(hashes, counters.shards(), |hash| counters.shard(hash))?;
        Ok(Batch { counters, verb, keys, back: Vec::new(), told: untold(began)?, began })
    }

    /// The keys that were found by a count, to be removed; those that a removal took from although they were not there, to be
    /// given back.
    pub fn then(&self) -> Result<Self> {
        let verb = if self.verb == Verb::Count { Verb::Remove } else { Verb::Restore };
        let (mut keys, mut back) = (Groups::default(), Vec::new());
        // A key that comes more often than it is there is removed as often as it is there.
        let mut left: HashMap<u64, u8> = HashMap::new();
        let mut goes = |hash: u64, told: Told| {
            if verb == Verb::Restore {
                return told.answer == 0 && told.taken > 0;
            }
            let left = left.entry(hash).or_insert(told.answer);
            let goes = *left > 0;
            *left -= u8::from(goes && told.answer < self.counters.most());
            goes
        };
        for (shard, range) in &self.keys.shards {
            let first = keys.hashes.len();
            for at in range.clone() {
                let told = self.told[at].unwrap_or_default();
                if goes(self.keys.hashes[at], told) {
                    keys.hashes.push(self.keys.hashes[at]);
                    keys.order.push(self.keys.order[at]);
                    back.push(told.taken);
                }
            }
            if keys.hashes.len() > first {
                keys.shards.push((*shard, first..keys.hashes.len()));
            }
        }
        let told = untold(keys.hashes.len())?;
        Ok(Batch { counters: Arc::clone(&self.counters), verb, keys, back, told, began: self.began })
    }

    /// What is done with the keys.
    pub fn verb(&self) -> Verb {
        self.verb
    }

    /// How many keys it has.
    pub fn len(&self) -> usize {
        self.keys.hashes.len()
    }

    /// True of a batch without keys.
    pub fn is_empty(&self) -> bool {
        self.keys.hashes.is_empty()
    }

    /// The shards that keys lie in, rising.
    pub fn shards(&self) -> impl Iterator<Item = u64> + '_ {
        self.keys.shards.iter().map(|(shard, _)| *shard)
    }

    /// The commands for the keys of some shards that nothing was told of yet; the strings of the shards are given.
    ///
    /// With `asking` each goes behind an ASKING, as a node wants that takes over a slot.
    pub fn exchange(&self, shards: Vec<Shard>, asking: bool) -> Result<Exchange<Counted>> {
        let mut work = Vec::new();
        for shard in shards {
            let number = shard.number;
            let Some((_, range)) = self.keys.shards.iter().find(|(group, _)| *group == number) else {
                return Err(Error::Parameter(format!("no key of the batch lies in shard {number}")));
            };
            let due = range.clone().filter(|&at| self.told[at].is_none());
            let keys: Vec<Key> = due.map(|at| self.key(at)).collect();
            work.push(Work { shard, keys, done: Vec::new(), mark: Vec::new(), short: false });
        }
        Exchange::new(Counted { counters: Arc::clone(&self.counters), verb: self.verb, work }, asking)
    }

    fn key(&self, at: usize) -> Key {
        Key { at, hash: self.keys.hashes[at], back: self.back.get(at).copied().unwrap_or(0), told: None }
    }

    /// Takes what an exchange was told.
    pub fn take(&mut self, exchange: &Exchange<Counted>) {
        for key in exchange.subject().work.iter().flat_map(|work| work.done.iter().chain(&work.keys)) {
            if let (Some(told), Some(mine)) = (key.told, self.told.get_mut(key.at)) {
                *mine = Some(told);
            }
        }
    }

    /// What was told of each key of the batch that it began with, in the order in which they came: the least counter; 1 for
    /// those that were new, or were there, and 0 for others.
    pub fn answers(&self) -> Result<Vec<u8>> {
        let mut answers = zeroed(self.began)?;
        for (&came, told) in self.keys.order.iter().zip(&self.told) {
            answers[came as usize] = told.map_or(0, |told| told.answer);
        }
        Ok(answers)
    }

    /// The hashes of keys that were told more than 0 of; of all with `all`.
    pub fn hashes(&self, all: bool) -> impl Iterator<Item = u64> + '_ {
        let with = self.keys.hashes.iter().zip(&self.told);
        with.filter(move |(_, told)| all || told.is_some_and(|told| told.answer > 0)).map(|(&hash, _)| hash)
    }
}

fn untold(len: usize) -> Result<Vec<Option<Told>>> {
    let mut told = Vec::new();
    reserve(&mut told, len)?;
    told.resize(len, None);
    Ok(told)
}

#[derive(Debug)]
struct Key {
    at: usize,
    hash: u64,
    back: u8,
    told: Option<Told>,
}

/// The keys of one shard.
#[derive(Debug)]
struct Work {
    shard: Shard,
    keys: Vec<Key>,
    /// Those of which replies had come when it was sent once more.
    done: Vec<Key>,
    mark: Vec<u8>,
    short: bool,
}

/// The keys of some shards, and what is told of them.
#[derive(Debug)]
pub struct Counted {
    counters: Arc<Counters>,
    verb: Verb,
    work: Vec<Work>,
}

impl Subject for Counted {
    fn shards(&self) -> usize {
        self.work.len()
    }

    fn state(&self, shard: usize) -> State<'_> {
        let work = &self.work[shard];
        State { shard: work.shard.number, mark: &work.mark, short: work.short, bits_set: 0 }
    }

    fn replies(&self, shard: usize) -> usize {
        1 + self.work[shard].keys.len()
    }

    fn limit(&self, shard: usize, step: usize) -> Limit {
        if step < self.work[shard].keys.len() { self.counters.limit(self.verb) } else { Limit::text(MARK_BYTES) }
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        let (counters, each) = (&self.counters, self.counters.longest(self.verb));
        for Work { shard, keys, .. } in &self.work {
            reserve(out, (keys.len() + 1) * (each + shard.key.len()))?;
            for key in keys {
                counters.write(out, &shard.key, key.hash, self.verb, key.back);
            }
            counters.ask_mark(out, &shard.key, shard.number);
        }
        Ok(())
    }

    fn take(&mut self, shard: usize, step: usize, reply: Reply<'_>) -> Result<()> {
        let work = &mut self.work[shard];
        let Some(key) = work.keys.get_mut(step) else {
            work.mark = mark(reply)?;
            return Ok(());
        };
        let told = self.counters.told(key.hash, self.verb, reply);
        let told = told.ok_or_else(|| unexpected("a reply of another kind"))?;
        work.short |= told.short;
        key.told = Some(told);
        Ok(())
    }

    /// Goes on with the keys of which no reply has come.
    fn restart(&mut self) -> bool {
        let mut told = false;
        for work in &mut self.work {
            let (done, due): (Vec<Key>, Vec<Key>) = work.keys.drain(..).partition(|key| key.told.is_some());
            told |= !done.is_empty();
            work.done.extend(done);
            (work.keys, work.short) = (due, false);
        }
        told
    }
}

#[cfg(test)]
mod tests;
