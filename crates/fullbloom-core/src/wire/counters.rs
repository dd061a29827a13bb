//! [`Counters`]: the counters of a counting filter as strings of a server.
//!
//! A key's counters lie in one line, and are changed by one BITFIELD, which no other command comes between. Adding is
//! `OVERFLOW SAT INCRBY 1`: a counter that has reached its maximum T stays there. T may represent more than T keys, so that it
//! must never be taken from again, and no counter may fall below 0. Both are held by four steps in the BITFIELD that removes,
//! whatever other clients do; the first one's replies give the previous counters:
//!
//! | step | T | c | 0 |
//! |---|---|---|---|
//! | `FAIL INCRBY -1` | T - 1 | c - 1 | 0, and nil is answered |
//! | `WRAP INCRBY +1` | T | c | 1 |
//! | `FAIL INCRBY -T` | 0 | c, which would fall below 0 | 1 |
//! | `WRAP INCRBY -1` | T | c - 1 | 0 |

use super::cells::{LONGEST, MARK_BYTES};
use super::command;
use super::cut::ShardLayout;
use super::reply::{Limit, Reply, items};
use crate::cells::{LINE_BYTES, LINE_WORDS};
use crate::counting::nibbles::Nibbles;
use crate::counting::{Layout, Shape};
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::scheme::fastrange;

/// An operation on keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Returns the smallest of a key's counters.
    Count,
    /// Adds one to each.
    Add,
    /// Decrements each counter of a key that seems to be present.
    Remove,
    /// Increments the counters that were decremented.
    Restore,
}

/// The result of a reply for a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The smallest counter; 1 for a key that was new, or present; 0 for others.
    pub answer: u8,
    /// The counters that were decremented, a bit each.
    pub taken: u8,
    /// True if the string ends before the counters of the key.
    pub short: bool,
}

/// A shape of counters, its hash, and its cut into strings.
#[derive(Clone, Debug)]
pub struct Counters {
    shape: Shape,
    hasher: KeyHasher,
    nibbles: Nibbles,
    cut: ShardLayout,
}

const LINE: u64 = LINE_BYTES as u64;

impl Counters {
    /// A shape in `shards`.
    pub fn new(shape: Shape, hasher: KeyHasher, shards: u64) -> Result<Self> {
        let shape = shape.check()?;
        if shape.layout != Layout::Blocked || !matches!(shape.counter_bits, 2 | 4 | 8) {
            return Err(Error::Parameter(format!(
                "a server takes layout \"blocked\" with counter_bits 2, 4 or 8, got {:?} with {}",
                shape.layout.name(),
                shape.counter_bits
            )));
        }
        let lines = shape.words() / LINE_WORDS as u64;
        let nibbles = Nibbles::new(shape.counter_bits, shape.num_hashes);
        let counters = Counters { cut: ShardLayout::new(lines, shards)?, shape, hasher, nibbles };
        let longest = counters.range(0).1 + MARK_BYTES;
        if longest > LONGEST {
            return Err(Error::Parameter(format!(
                "a string of a server has at most {LONGEST} bytes and this shard needs {longest}; take shards={} or more",
                lines.div_ceil((LONGEST - MARK_BYTES) / LINE)
            )));
        }
        Ok(counters)
    }

    /// Counters, probes and layout.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The hash of keys.
    pub fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    /// Number of shards.
    pub fn shards(&self) -> u64 {
        self.cut.shards()
    }

    /// The first byte of a shard in the filter, and how many it has, without its mark.
    pub fn range(&self, shard: u64) -> (u64, u64) {
        let (first, len) = self.cut.range(shard);
        (first * LINE, len * LINE)
    }

    /// The counters' maximum.
    pub fn most(&self) -> u8 {
        u8::MAX >> (8 - self.shape.counter_bits.min(8))
    }

    /// Estimated number of keys, its standard deviation, and the rate at that number, from the counters in `sample`:
    /// whole lines, from anywhere.
    pub fn estimate(&self, sample: &[u8]) -> (f64, f64, f64) {
        let per_byte = 8 / self.shape.counter_bits;
        let used =
            |byte: u8| (0..per_byte).filter(|i| byte >> (i * self.shape.counter_bits) & self.most() != 0).count();
        let set: usize = sample.iter().map(|&byte| used(byte)).sum();
        let shape = Shape { num_cells: sample.len() as u64 * u64::from(per_byte), ..self.shape };
        let (items, deviation) = shape.law().estimate(set as f64 / shape.num_cells as f64);
        if !items.is_finite() {
            return (f64::INFINITY, f64::INFINITY, 1.0);
        }
        let parts = self.shape.num_cells as f64 / shape.num_cells as f64;
        // Each key is in the sample with probability 1 / parts.
        let keys = items * parts;
        let variance = (deviation * parts).powi(2) + keys * (parts - 1.0).max(0.0);
        (keys, variance.sqrt(), self.shape.fpr(keys, 1))
    }

    fn lines(&self) -> u64 {
        self.shape.words() / LINE_WORDS as u64
    }

    /// The shard of a hash.
    pub fn shard(&self, hash: u64) -> u64 {
        self.cut.place(fastrange(hash, self.lines())).0
    }

    /// The first byte of the line of a hash in its shard.
    fn line(&self, hash: u64) -> u64 {
        self.cut.place(fastrange(hash, self.lines())).1 * LINE
    }

    /// The server's numbers of the first bits of a key's counters: it counts the bits of a byte from the other end.
    fn places(&self, hash: u64) -> impl Iterator<Item = u64> {
        let (width, line) = (u64::from(self.shape.counter_bits), self.line(hash) * 8);
        // In a filter of one line every hash has that line, and the counters there that it has in its own.
        let counters = self.nibbles.positions(LINE * 8 / width, hash).into_iter();
        counters.map(move |counter| line + counter * width).map(move |bit| bit & !7 | (8 - width - (bit & 7)))
    }

    /// Appends the question for the mark of a shard.
    pub fn ask_mark(&self, out: &mut Vec<u8>, key: &[u8], shard: u64) {
        let end = self.range(shard).1;
        get_range(out, key, end, end + MARK_BYTES);
    }

    /// Maximum bytes of the command for a key, besides its string's name.
    pub fn longest(&self, verb: Verb) -> usize {
        let step = 44 * self.shape.num_hashes as usize;
        match verb {
            Verb::Count => 64,
            Verb::Add | Verb::Restore => 80 + step,
            Verb::Remove => 160 + 4 * step,
        }
    }

    /// Appends the operation on a hash in the string `key`; to restore, the counters in `taken`.
    pub fn write(&self, out: &mut Vec<u8>, key: &[u8], hash: u64, verb: Verb, taken: u8) {
        if verb == Verb::Count {
            let first = self.line(hash);
            return get_range(out, key, first, first + LINE);
        }
        let most = i64::from(self.most());
        let remove = [("FAIL", -1), ("WRAP", 1), ("FAIL", -most), ("WRAP", -1)];
        let steps = if verb == Verb::Remove { &remove[..] } else { &[("SAT", 1)] };
        let taken = if verb == Verb::Restore { taken } else { u8::MAX };
        let places = || self.places(hash).enumerate().filter(|(at, _)| taken >> at & 1 == 1).map(|(_, place)| place);
        let each = 2 + 4 * places().count() as u64;
        command::begin(out, 2 + steps.len() as u64 * each);
        out.extend_from_slice(b"$8\r\nBITFIELD\r\n");
        command::word(out, key);
        for (overflow, by) in steps {
            out.extend_from_slice(b"$8\r\nOVERFLOW\r\n");
            command::word(out, overflow.as_bytes());
            for place in places() {
                out.extend_from_slice(b"$6\r\nINCRBY\r\n$2\r\nu");
                out.push(b'0' + self.shape.counter_bits as u8);
                out.extend_from_slice(b"\r\n");
                command::number(out, place);
                command::word(out, by.to_string().as_bytes());
            }
        }
    }

    /// How much a reply to [`Counters::write`] may hold.
    pub fn limit(&self, verb: Verb) -> Limit {
        match verb {
            Verb::Count => Limit::text(LINE),
            Verb::Add | Verb::Restore => Limit::numbers(self.shape.num_hashes as usize),
            Verb::Remove => Limit::numbers(4 * self.shape.num_hashes as usize),
        }
    }

    /// The result of the reply; `None` for an invalid one.
    pub fn parse(&self, hash: u64, verb: Verb, reply: Reply<'_>) -> Option<Outcome> {
        match (verb, reply) {
            (Verb::Count, Reply::Nil) => Some(Outcome { short: true, ..Outcome::default() }),
            (Verb::Count, Reply::Bulk(bytes)) if bytes.len() as u64 <= LINE => {
                let mut line = [0u64; LINE_WORDS];
                let words = bytes.as_chunks::<8>().0;
                line.iter_mut().zip(words).for_each(|(word, bytes)| *word = u64::from_ne_bytes(*bytes));
                let answer = self.nibbles.count_one(&line, hash) as u8;
                Some(Outcome { answer, short: (bytes.len() as u64) < LINE, taken: 0 })
            }
            (Verb::Add, Reply::Array(array)) => self.read_added(array),
            (Verb::Remove, Reply::Array(array)) => self.read_removed(array),
            (Verb::Restore, Reply::Array(_)) => Some(Outcome::default()),
            _ => None,
        }
    }

    fn read_added(&self, array: &[u8]) -> Option<Outcome> {
        let (mut count, mut new) = (0, false);
        for counter in items(array) {
            new |= counter.filter(|counter| (1..=i64::from(self.most())).contains(counter))? == 1;
            count += 1;
        }
        (count == self.shape.num_hashes).then_some(Outcome { answer: u8::from(new), ..Outcome::default() })
    }

    /// The first replies are the remaining counts, nil where the counter was 0.
    fn read_removed(&self, array: &[u8]) -> Option<Outcome> {
        let (mut outcome, mut count) = (Outcome { answer: 1, ..Outcome::default() }, 0);
        let last = i64::from(self.most()) - 1;
        for (at, left) in items(array).enumerate() {
            count += 1;
            match left {
                _ if at >= self.shape.num_hashes as usize => {}
                None => outcome.answer = 0,
                Some(left) if left == last => {}
                Some(left) if (0..last).contains(&left) => outcome.taken |= 1 << at,
                Some(_) => return None,
            }
        }
        (count == 4 * self.shape.num_hashes).then_some(outcome)
    }
}

/// Appends the question for the bytes from `first` to before `end`.
fn get_range(out: &mut Vec<u8>, key: &[u8], first: u64, end: u64) {
    out.extend_from_slice(b"*4\r\n$8\r\nGETRANGE\r\n");
    command::word(out, key);
    command::number(out, first);
    command::number(out, end - 1);
}
