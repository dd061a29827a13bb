//! Making the levels: the first over the smaller set, each further one over what the one before takes wrongly.

use super::level::Level;
use super::parts::{LevelKind, Part};
use crate::cells::allocation::reserve;
use crate::cells::bits::mask;
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::sizing::cascade as sizing;
use crate::structure::Job;
use crate::structure::records::{BUCKET_BITS, Sorted};

/// Levels halve what goes on every second time: 2^64 keys end by 128 of them but once in 2^64 worlds.
pub(super) const MOST_LEVELS: usize = 255;

/// Keys of a level, but for the first, that a filter of its own pays for: its tables take some 300 bytes, as much as a
/// ribbon filter is smaller than a Bloom filter of 6,000 keys.
const LEAST_KEYS: usize = 8192;

/// What the caller chose.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    /// The structure of levels.
    pub kind: LevelKind,
    /// The rule of keys.
    pub hasher: KeyHasher,
    /// Those of another version of the sets, which levels keep where they suit.
    pub like: Option<&'a Shapes>,
}

/// The shapes of levels among the bits of all, and how many others stand before them.
#[derive(Debug)]
pub struct Shapes {
    pub(super) parts: usize,
    pub(super) rows: Vec<Level>,
}

impl Shapes {
    fn get(&self, i: usize) -> Option<Level> {
        i.checked_sub(self.parts).and_then(|i| self.rows.get(i)).copied()
    }
}

/// Levels as they grow.
#[derive(Default)]
pub(super) struct Levels {
    /// The first of them, where they are filters of their own.
    pub(super) parts: Vec<Part>,
    /// A row each for the others.
    pub(super) rows: Vec<u64>,
    /// The bits of these.
    pub(super) words: Vec<u64>,
    end: u64,
}

impl Levels {
    fn len(&self) -> usize {
        self.parts.len() + self.rows.len()
    }

    /// Puts a level over `keys` on top, by which another key is taken at about rate `fpr`.
    fn push(&mut self, keys: &[u64], fpr: f64, plan: Plan<'_>, job: &Job<'_>) -> Result<()> {
        let i = self.len();
        if i == MOST_LEVELS {
            return Err(Error::parameter(
                "the two sets have a key in common, or two keys whose hashes are equal; take the key out of one set, or \
                 choose another seed",
            ));
        }
        if plan.kind != LevelKind::Packed && self.rows.is_empty() && (i == 0 || keys.len() >= LEAST_KEYS) {
            self.parts.push(Part::of(plan.kind, keys, i, fpr, plan.hasher, job)?);
            return Ok(());
        }
        let (num_bits, num_hashes) = sizing::level(keys.len() as u64, fpr);
        let level = match plan.like.and_then(|like| like.get(i)) {
            Some(other) if sizing::keeps(num_bits, other.num_bits) => other,
            _ => Level { num_bits, num_hashes },
        };
        let start = self.end;
        self.end += level.num_bits;
        self.rows.push(level.row());
        let (words, before) = (self.end.div_ceil(64) as usize, self.words.len());
        reserve(&mut self.words, words - before)?;
        self.words.resize(words, 0);
        for bit in keys.iter().flat_map(|&hash| level.bits(i, start, hash)) {
            self.words[(bit >> 6) as usize] |= mask(bit);
        }
        Ok(())
    }

    /// Whether the topmost level takes a key.
    fn takes(&self) -> impl Fn(u64) -> bool {
        let i = self.len() - 1;
        let level = self.rows.last().map(|&row| Level::of(row));
        let start = level.map_or(0, |level| self.end - level.num_bits);
        move |hash| match (level, self.parts.last()) {
            (Some(level), _) => level.takes(i, start, &self.words, hash),
            (None, Some(part)) => part.takes(i, hash),
            (None, None) => false,
        }
    }

    /// The levels that tell `smaller` from `larger`.
    pub(super) fn of(smaller: &Sorted<1>, larger: &Sorted<1>, plan: Plan<'_>, job: &Job<'_>) -> Result<Self> {
        let mut levels = Levels::default();
        if smaller.is_empty() {
            return Ok(levels);
        }
        let (r, s) = (smaller.len(), larger.len());
        let rate = sizing::first_rate(r as f64, s as f64);
        check_granted(smaller, larger, rate)?;
        // What the level above holds, and of those it should not take the ones that it does.
        let mut held = Vec::new();
        each_bucket(smaller, job, |hashes| {
            reserve(&mut held, hashes.len())?;
            held.extend(hashes.iter().map(|[hash]| *hash));
            Ok(())
        })?;
        levels.push(&held, rate, plan, job)?;
        let mut wrong = Vec::new();
        let takes = levels.takes();
        each_bucket(larger, job, |hashes| {
            hashes.iter().map(|[hash]| *hash).filter(|&hash| takes(hash)).try_for_each(|hash| {
                reserve(&mut wrong, 1)?;
                wrong.push(hash);
                Ok(())
            })
        })?;
        drop(takes);
        while !wrong.is_empty() {
            job.expect(1);
            levels.push(&wrong, sizing::HALF, plan, job)?;
            let takes = levels.takes();
            held.retain(|&hash| takes(hash));
            drop(takes);
            std::mem::swap(&mut held, &mut wrong);
            job.report(1)?;
        }
        Ok(levels)
    }
}

/// Refuses work that does not fit into the memory that was granted: hashes of the smaller set and of the keys of the
/// larger one that the first level takes, the levels twice.
fn check_granted(smaller: &Sorted<1>, larger: &Sorted<1>, rate: f64) -> Result<()> {
    let (r, s) = (smaller.len() as f64, larger.len() as f64);
    let needed = (8.0 * r + 16.0 * rate * s + sizing::bits(r, s) / 4.0) as u64 + (1 << 16);
    // Each set was granted its part.
    let granted = smaller.granted().zip(larger.granted()).map(|(one, other)| one.saturating_add(other));
    match granted {
        Some(granted) if granted < needed => Err(Error::Memory(format!(
            "{r} keys and {s} others need {needed} bytes of memory, got memory={granted}; raise it"
        ))),
        _ => Ok(()),
    }
}

/// Gives `take` the records of each bucket; each counts as one part of the work.
fn each_bucket(keys: &Sorted<1>, job: &Job<'_>, mut take: impl FnMut(&[[u64; 1]]) -> Result<()>) -> Result<()> {
    job.expect(1 << BUCKET_BITS);
    let mut read = Vec::new();
    for bucket in 0..1 << BUCKET_BITS {
        keys.read(BUCKET_BITS, bucket, &mut read)?;
        take(&read)?;
        job.report(1)?;
    }
    Ok(())
}

/// A hash that both sets have, if there is one.
pub fn common(one: &Sorted<1>, other: &Sorted<1>) -> Result<Option<u64>> {
    let (mut mine, mut theirs) = (Vec::new(), Vec::new());
    for bucket in 0..1 << BUCKET_BITS {
        one.read(BUCKET_BITS, bucket, &mut mine)?;
        other.read(BUCKET_BITS, bucket, &mut theirs)?;
        let mut left = theirs.iter().peekable();
        let both = mine.iter().find(|hash| {
            while left.next_if(|other| other < hash).is_some() {}
            left.peek() == Some(hash)
        });
        if let Some([hash]) = both {
            return Ok(Some(*hash));
        }
    }
    Ok(None)
}
