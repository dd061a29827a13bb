//! [`Batch`] and [`Counted`]: keys of counters by shard, the commands for them, and the results of their replies.
//!
//! Setting a bit twice is harmless; changing a counter twice is not. So the batch records which keys have had a reply,
//! and only the others are sent again: after a redirect if the shard has moved, or after a lost connection.

use std::collections::HashMap;
use std::sync::Arc;

use super::Shard;
use super::cells::MARK_BYTES;
use super::counters::{Counters, Outcome, Verb};
use super::exchange::{Exchange, State, Subject, mark, unexpected_error};
use super::groups::Groups;
use super::reply::{Limit, Reply};
use crate::cells::allocation::{reserve, zeroed};
use crate::error::{Error, Result};

/// Keys in the order of their shards, and their results.
#[derive(Debug)]
pub struct Batch {
    counters: Arc<Counters>,
    verb: Verb,
    keys: Groups,
    /// For keys to restore: the counters.
    back: Vec<u8>,
    outcome: Vec<Option<Outcome>>,
    /// Keys of the batch that it began with.
    began: usize,
}

impl Batch {
    /// Hashes, and the operation on their keys.
    pub fn new(counters: &Arc<Counters>, hashes: Vec<u64>, verb: Verb) -> Result<Self> {
        let (began, counters) = (hashes.len(), Arc::clone(counters));
        let keys = Groups::new(hashes, counters.shards(), |hash| counters.shard(hash))?;
        Ok(Batch { counters, verb, keys, back: Vec::new(), outcome: no_outcomes(began)?, began })
    }

    /// The keys that a count found, to be removed; those that a removal changed although they were absent, to be
    /// restored.
    pub fn then(&self) -> Result<Self> {
        let verb = if self.verb == Verb::Count { Verb::Remove } else { Verb::Restore };
        let (mut keys, mut back) = (Groups::default(), Vec::new());
        // A key that is repeated more often than its count is removed as often as its count.
        let mut left: HashMap<u64, u8> = HashMap::new();
        let mut goes = |hash: u64, outcome: Outcome| {
            if verb == Verb::Restore {
                return outcome.answer == 0 && outcome.taken > 0;
            }
            let left = left.entry(hash).or_insert(outcome.answer);
            let goes = *left > 0;
            *left -= u8::from(goes && outcome.answer < self.counters.most());
            goes
        };
        for (shard, range) in &self.keys.shards {
            let first = keys.hashes.len();
            for at in range.clone() {
                let outcome = self.outcome[at].unwrap_or_default();
                if goes(self.keys.hashes[at], outcome) {
                    keys.hashes.push(self.keys.hashes[at]);
                    keys.order.push(self.keys.order[at]);
                    back.push(outcome.taken);
                }
            }
            if keys.hashes.len() > first {
                keys.shards.push((*shard, first..keys.hashes.len()));
            }
        }
        let outcome = no_outcomes(keys.hashes.len())?;
        Ok(Batch { counters: Arc::clone(&self.counters), verb, keys, back, outcome, began: self.began })
    }

    /// The operation on the keys.
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

    /// The shards of the keys, ascending.
    pub fn shards(&self) -> impl Iterator<Item = u64> + '_ {
        self.keys.shards.iter().map(|(shard, _)| *shard)
    }

    /// The commands for the keys of some shards that have no result yet; the caller supplies the strings of the shards.
    ///
    /// With `asking` each follows an ASKING, as a node needs that takes over a slot.
    pub fn exchange(&self, shards: Vec<Shard>, asking: bool) -> Result<Exchange<CountedKeys>> {
        let mut work = Vec::new();
        for shard in shards {
            let number = shard.number;
            let Some((_, range)) = self.keys.shards.iter().find(|(group, _)| *group == number) else {
                return Err(Error::Parameter(format!("no key of the batch lies in shard {number}")));
            };
            let due = range.clone().filter(|&at| self.outcome[at].is_none());
            let keys: Vec<Key> = due.map(|at| self.key(at)).collect();
            work.push(Work { shard, keys, done: Vec::new(), mark: Vec::new(), short: false });
        }
        Exchange::new(CountedKeys { counters: Arc::clone(&self.counters), verb: self.verb, work }, asking)
    }

    fn key(&self, at: usize) -> Key {
        Key { at, hash: self.keys.hashes[at], back: self.back.get(at).copied().unwrap_or(0), outcome: None }
    }

    /// Stores the results of an exchange.
    pub fn take(&mut self, exchange: &Exchange<CountedKeys>) {
        for key in exchange.subject().work.iter().flat_map(|work| work.done.iter().chain(&work.keys)) {
            if let (Some(outcome), Some(mine)) = (key.outcome, self.outcome.get_mut(key.at)) {
                *mine = Some(outcome);
            }
        }
    }

    /// The result of each key of the original batch, in its order: the smallest counter; 1 for keys that were new, or
    /// present, and 0 for others.
    pub fn answers(&self) -> Result<Vec<u8>> {
        let mut answers = zeroed(self.began)?;
        for (&came, outcome) in self.keys.order.iter().zip(&self.outcome) {
            answers[came as usize] = outcome.map_or(0, |outcome| outcome.answer);
        }
        Ok(answers)
    }

    /// The hashes of keys whose result exceeds 0; of all with `all`.
    pub fn hashes(&self, all: bool) -> impl Iterator<Item = u64> + '_ {
        let with = self.keys.hashes.iter().zip(&self.outcome);
        with.filter(move |(_, outcome)| all || outcome.is_some_and(|outcome| outcome.answer > 0)).map(|(&hash, _)| hash)
    }
}

fn no_outcomes(len: usize) -> Result<Vec<Option<Outcome>>> {
    let mut outcome = Vec::new();
    reserve(&mut outcome, len)?;
    outcome.resize(len, None);
    Ok(outcome)
}

#[derive(Debug)]
struct Key {
    at: usize,
    hash: u64,
    back: u8,
    outcome: Option<Outcome>,
}

/// The keys of one shard.
#[derive(Debug)]
struct Work {
    shard: Shard,
    keys: Vec<Key>,
    /// Keys that already had replies when the batch was sent again.
    done: Vec<Key>,
    mark: Vec<u8>,
    short: bool,
}

/// The keys of some shards, and their results.
#[derive(Debug)]
pub struct CountedKeys {
    counters: Arc<Counters>,
    verb: Verb,
    work: Vec<Work>,
}

impl Subject for CountedKeys {
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
        let outcome = self.counters.parse(key.hash, self.verb, reply);
        let outcome = outcome.ok_or_else(|| unexpected_error("a reply of another kind"))?;
        work.short |= outcome.short;
        key.outcome = Some(outcome);
        Ok(())
    }

    /// Continues with the keys that have no reply.
    fn restart(&mut self) -> bool {
        let mut outcome = false;
        for work in &mut self.work {
            let (done, due): (Vec<Key>, Vec<Key>) = work.keys.drain(..).partition(|key| key.outcome.is_some());
            outcome |= !done.is_empty();
            work.done.extend(done);
            (work.keys, work.short) = (due, false);
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    //! Exchanges with a small server of counters.

    use super::super::reply::{Limit, past};
    use super::*;
    use crate::counting::{CountingBloomFilter, Layout, Shape};
    use crate::key::KeyHasher;
    use crate::structure::{Addable, Countable, Removable};

    /// Strings of a server, by shard, and what it does with the commands of this module.
    struct Server(Vec<Vec<u8>>);

    impl Server {
        fn new(counters: &Counters) -> Self {
            let marked = |shard| [vec![0; counters.range(shard).1 as usize], vec![shard as u8; 16]].concat();
            Server((0..counters.shards()).map(marked).collect())
        }

        fn answer(&mut self, bytes: &[u8]) -> Vec<u8> {
            let text: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').map(|line| line.trim_ascii()).collect();
            let (mut out, mut at) = (Vec::new(), 0);
            while text[at].first() == Some(&b'*') {
                let words: usize = parse(&text[at][1..]);
                let command: Vec<&[u8]> = (0..words).map(|word| text[at + 2 + 2 * word]).collect();
                at += 1 + 2 * words;
                self.run(&command, &mut out);
            }
            out
        }

        fn run(&mut self, command: &[&[u8]], out: &mut Vec<u8>) {
            let string = &mut self.0[parse::<usize>(command[1])];
            if command[0] == b"GETRANGE" {
                let part = &string[parse(command[2])..=parse(command[3])];
                out.extend_from_slice(format!("${}\r\n", part.len()).as_bytes());
                out.extend_from_slice(part);
                return out.extend_from_slice(b"\r\n");
            }
            let (mut overflow, mut at, mut replies) = (&b"WRAP"[..], 2, Vec::new());
            while at < command.len() {
                if command[at] == b"OVERFLOW" {
                    (overflow, at) = (command[at + 1], at + 2);
                    continue;
                }
                let width: u32 = parse(&command[at + 1][1..]);
                let (place, by): (u32, i64) = (parse(command[at + 2]), parse(command[at + 3]));
                let (byte, shift) = (&mut string[place as usize / 8], 8 - width - place % 8);
                let most = (1i64 << width) - 1;
                let next = i64::from(*byte >> shift) % (most + 1) + by;
                let kept = match overflow {
                    b"SAT" => Some(next.clamp(0, most)),
                    b"WRAP" => Some(next.rem_euclid(most + 1)),
                    _ => Some(next).filter(|next| (0..=most).contains(next)),
                };
                if let Some(kept) = kept {
                    *byte = *byte & !((most as u8) << shift) | (kept as u8) << shift;
                }
                replies.push(kept.map_or("$-1\r\n".into(), |kept| format!(":{kept}\r\n")));
                at += 4;
            }
            out.extend_from_slice(format!("*{}\r\n{}", replies.len(), replies.concat()).as_bytes());
        }
    }

    fn parse<T: std::str::FromStr<Err: std::fmt::Debug>>(word: &[u8]) -> T {
        std::str::from_utf8(word).unwrap().parse().unwrap()
    }

    /// Sends a batch; the connection breaks once the server has done some of the commands.
    fn send(server: &mut Server, batch: &mut Batch, some: usize) {
        let shards = batch
            .shards()
            .map(|number| Shard { number, key: number.to_string().into_bytes(), beside: Vec::new() })
            .collect();
        let mut exchange = batch.exchange(shards, false).unwrap();
        let (mut at, commands) = (0, exchange.buffer().to_vec());
        for _ in 0..some.min(exchange.due().saturating_sub(1)) {
            let end = past(&commands, at, Limit::TRUSTED).unwrap().unwrap();
            assert!(!exchange.feed(&server.answer(&commands[at..end])).unwrap());
            at = end;
        }
        exchange.restart().unwrap();
        for piece in server.answer(exchange.buffer()).chunks(7) {
            exchange.feed(piece).unwrap();
        }
        assert!(exchange.is_done() && exchange.refusals().is_empty());
        assert!(exchange.states().all(|it| it.mark == [it.shard as u8; 16] && !it.short));
        batch.take(&exchange);
    }

    #[test]
    fn histories_give_the_counters_and_answers_of_memory_and_nothing_is_done_twice() {
        for (bits, fpr, shards) in [(2, 0.02, 1), (4, 0.1, 3), (8, 1e-6, 1)] {
            let shape = Shape::for_capacity(Layout::Blocked, bits, 1, 200, fpr).unwrap();
            let hasher = KeyHasher::seeded(0);
            let counters = Arc::new(Counters::new(shape, hasher, shards).unwrap());
            let mut here = CountingBloomFilter::new(shape, 200, fpr, hasher).unwrap();
            let mut server = Server::new(&counters);
            let mix = |i: u64| crate::hash::splitmix::mix(i);
            for turn in 0..60u64 {
                let keys: Vec<u64> = (0..20).map(|i| mix(mix(turn * 100 + i) % 150)).collect();
                let mut added = Batch::new(&counters, keys.clone(), Verb::Add).unwrap();
                send(&mut server, &mut added, mix(turn) as usize % 40);
                let new: Vec<u8> = keys.iter().map(|&key| u8::from(here.add_hash(key).unwrap())).collect();
                assert_eq!(added.answers().unwrap(), new);
                let keys: Vec<u64> = (0..15).map(|i| mix(mix(turn * 77 + i) % 170)).collect();
                let mut looked = Batch::new(&counters, keys.clone(), Verb::Count).unwrap();
                send(&mut server, &mut looked, 3);
                let counts: Vec<u8> = keys.iter().map(|&key| here.count_hash(key) as u8).collect();
                assert_eq!(looked.answers().unwrap(), counts);
                let mut taken = looked.then().unwrap();
                send(&mut server, &mut taken, mix(turn) as usize % 9);
                let mut back = taken.then().unwrap();
                send(&mut server, &mut back, 0);
                let outcome = taken.answers().unwrap();
                // In memory the keys go one after the other; those that do not go here are not removed there.
                keys.iter().zip(outcome).filter(|(_, outcome)| *outcome == 1).for_each(|(&key, _)| {
                    assert!(here.remove_hash(key).unwrap());
                });
                let stored = server.0.iter().flat_map(|string| &string[..string.len() - 16]);
                assert!(here.cells().iter().flat_map(|word| word.to_ne_bytes()).eq(stored.copied()));
            }
        }
    }

    #[test]
    fn invalid_shapes_and_replies_are_refused() {
        let shape = |layout, bits| Shape::for_capacity(layout, bits, 1, 100, 0.01).unwrap();
        let create = |shape, shards| Counters::new(shape, KeyHasher::seeded(0), shards);
        assert!(create(shape(Layout::Classic, 4), 1).is_err() && create(shape(Layout::Blocked, 16), 1).is_err());
        assert!(create(shape(Layout::Blocked, 4), 10_000).is_err() && create(shape(Layout::Blocked, 4), 0).is_err());
        let counters = Arc::new(create(shape(Layout::Blocked, 4), 1).unwrap());
        for (verb, reply) in [
            (Verb::Count, &b"*1\r\n:1\r\n"[..]),
            (Verb::Count, b"$65\r\n"),
            (Verb::Add, b"*2\r\n:1\r\n:1\r\n"),
            (Verb::Add, b"*8\r\n:0\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n"),
            (Verb::Add, b"$1\r\n1\r\n"),
        ] {
            let batch = Batch::new(&counters, vec![5], verb).unwrap();
            let mut exchange =
                batch.exchange(vec![Shard { number: 0, key: b"f".to_vec(), beside: Vec::new() }], false).unwrap();
            let whole = if reply == b"$65\r\n" { [reply, &[0; 65], b"\r\n"].concat() } else { reply.to_vec() };
            assert!(exchange.feed(&whole).is_err(), "{verb:?}");
        }
    }
}
