//! Building the levels: the first over the smaller set, each further one over the false positives of the one before.

use super::level::{Level, MOST_LEVELS, later, numbers};
use super::parts::{LevelKind, MOST_FPR, Part};
use crate::cells::allocation::reserve;
use crate::cells::bits::mask;
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::sizing::cascade as sizing;
use crate::structure::Job;
use crate::structure::records::{BUCKET_BITS, SortedRecords};

/// From this number of keys on, a level other than the first pays for a separate filter: its tables take some 300
/// bytes, as much as a ribbon filter saves over a Bloom filter at 6,000 keys.
const LEAST_KEYS: usize = 8192;

/// The caller's choices.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    /// The structure of levels.
    pub kind: LevelKind,
    /// The rule of keys.
    pub hasher: KeyHasher,
    /// Another version of the sets, reused where possible.
    pub like: Option<&'a Shapes>,
}

/// The reusable parts of a version: the filters that are levels, and the shapes of the runs of packed bits.
pub struct Shapes {
    pub(super) kind: LevelKind,
    pub(super) parts: Vec<Part>,
    pub(super) later: usize,
    pub(super) rows: Vec<Level>,
}

impl Shapes {
    /// The shape of run `number`.
    fn row(&self, number: usize) -> Option<Level> {
        let mut rows = numbers(self.later, self.parts.len()).zip(&self.rows);
        rows.find(|&(own, _)| own == number).map(|(_, row)| *row)
    }

    /// The filter of level `i`, if it still suits a level of `keys` keys at this rate that does not find `missing` of
    /// them: an eighth of the keys may be missing, an eighth more than there are may be in it, and its rate may differ
    /// by an eighth.
    fn suits(part: &Part, keys: usize, missing: usize, fpr: f64) -> bool {
        let (most, own) = (keys as u64 + keys as u64 / 8, part.rate());
        missing <= keys / 8 && part.keys() <= most && (own / fpr - 1.0).abs() <= 0.125
    }
}

/// Levels as they grow.
#[derive(Default)]
pub(super) struct Levels {
    /// The first levels, if they are separate filters.
    pub(super) parts: Vec<Part>,
    /// How many of these, from the first on, are of another version.
    kept: usize,
    /// Number of separate filters with a run of bits beside them for the keys that they do not find: zero after the
    /// last that needs one.
    pub(super) later: usize,
    /// A row for each of these runs, and for each packed level.
    pub(super) rows: Vec<u64>,
    /// The bits of these.
    pub(super) words: Vec<u64>,
    end: u64,
}

impl Levels {
    /// Number of levels.
    pub(super) fn len(&self) -> usize {
        self.parts.len() + self.rows.len() - self.later
    }

    /// Adds a level over `keys` that finds other keys at about rate `fpr`.
    fn push(&mut self, keys: &[u64], fpr: f64, plan: Plan<'_>, job: &Job<'_>) -> Result<()> {
        let i = self.len();
        if i == MOST_LEVELS {
            return Err(Error::parameter(
                "the two sets have a key in common, or two keys whose hashes are equal; take the key out of one set, or \
                 choose another seed",
            ));
        }
        if self.keep(keys, fpr, plan)? {
            return Ok(());
        }
        let small = i > 0 && keys.len() < LEAST_KEYS;
        if plan.kind != LevelKind::Packed && self.rows.len() == self.later && !small {
            self.parts.push(Part::of(plan.kind, keys, i, fpr, plan.hasher, job)?);
            return Ok(());
        }
        self.write(keys, fpr, i, plan)
    }

    /// Adds the filter that was this level in another version, and beside it a run of bits for those of `keys` that it
    /// does not find; false if it does not suit, or one below did not.
    fn keep(&mut self, keys: &[u64], fpr: f64, plan: Plan<'_>) -> Result<bool> {
        let i = self.parts.len();
        let Some(like) = plan.like.filter(|like| like.kind == plan.kind) else { return Ok(false) };
        let Some(part) = like.parts.get(i).filter(|_| self.kept == i && self.rows.len() == self.later) else {
            return Ok(false);
        };
        let fpr = fpr.min(MOST_FPR);
        let mut missing = Vec::new();
        for &hash in keys.iter().filter(|&&hash| !part.takes(i, hash)) {
            reserve(&mut missing, 1)?;
            missing.push(hash);
        }
        if !Shapes::suits(part, keys.len(), missing.len(), fpr) {
            return Ok(false);
        }
        self.parts.push(part.copy()?);
        self.kept += 1;
        if missing.is_empty() {
            return Ok(true);
        }
        for below in self.later..i {
            self.write(&[], fpr, later(below), plan)?;
        }
        self.later = i + 1;
        // So that the run's false positives are as few as the keys added later.
        let share = missing.len() as f64 / keys.len() as f64;
        self.write(&missing, fpr * share, later(i), plan)?;
        Ok(true)
    }

    /// Puts run `number` of bits on top, over `keys`.
    fn write(&mut self, keys: &[u64], fpr: f64, number: usize, plan: Plan<'_>) -> Result<()> {
        let (num_bits, num_hashes) = sizing::level(keys.len() as u64, fpr);
        let (other, grows) = (plan.like.and_then(|like| like.row(number)), number >= MOST_LEVELS);
        let level = match other {
            Some(other) if sizing::keeps(num_bits, other.num_bits, grows) => other,
            // A run of later keys grows from version to version.
            Some(other) if grows && num_bits > other.num_bits => {
                Level { num_bits: num_bits + num_bits / 2, num_hashes }
            }
            _ => Level { num_bits, num_hashes },
        };
        let start = self.end;
        self.end += level.num_bits;
        self.rows.push(level.row());
        let (words, before) = (self.end.div_ceil(64) as usize, self.words.len());
        reserve(&mut self.words, words - before)?;
        self.words.resize(words, 0);
        for bit in keys.iter().flat_map(|&hash| level.bits(number, start, hash)) {
            self.words[(bit >> 6) as usize] |= mask(bit);
        }
        Ok(())
    }

    /// Whether the last level finds a key.
    fn takes(&self) -> impl Fn(u64) -> bool {
        let i = self.len() - 1;
        // A filter is last until a packed level follows; then a run beside it comes last.
        let packed = i >= self.parts.len();
        let number = if packed { i } else { later(i) };
        let row = self.rows.last().filter(|_| packed || self.later > i).map(|&row| Level::of(row));
        let start = row.map_or(0, |row| self.end - row.num_bits);
        let part = if packed { None } else { self.parts.last() };
        move |hash| {
            part.is_some_and(|part| part.takes(i, hash))
                || row.is_some_and(|row| row.takes(number, start, &self.words, hash))
        }
    }

    /// The levels that separate `smaller` from `larger`.
    pub(super) fn of(
        smaller: &SortedRecords<1>,
        larger: &SortedRecords<1>,
        plan: Plan<'_>,
        job: &Job<'_>,
    ) -> Result<Self> {
        let mut levels = Levels::default();
        if smaller.is_empty() {
            return Ok(levels);
        }
        let (r, s) = (smaller.len(), larger.len());
        let rate = sizing::first_rate(r as f64, s as f64);
        check_granted(smaller, larger, rate)?;
        // The keys of the level above, and its false positives.
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

/// Refuses work that exceeds the memory limit: hashes of the smaller set and of the keys of the larger one that the
/// first level finds, and the levels twice.
fn check_granted(smaller: &SortedRecords<1>, larger: &SortedRecords<1>, rate: f64) -> Result<()> {
    let (r, s) = (smaller.len() as f64, larger.len() as f64);
    let needed = (8.0 * r + 16.0 * rate * s + sizing::bits(r, s) / 4.0) as u64 + (1 << 16);
    // Each set was granted its part.
    let granted = smaller.memory_limit().zip(larger.memory_limit()).map(|(one, other)| one.saturating_add(other));
    match granted {
        Some(granted) if granted < needed => Err(Error::Memory(format!(
            "{r} keys and {s} others need {needed} bytes of memory, got memory={granted}; raise it"
        ))),
        _ => Ok(()),
    }
}

/// Passes the records of each bucket to `take`; each bucket is one part of the work.
fn each_bucket(keys: &SortedRecords<1>, job: &Job<'_>, mut take: impl FnMut(&[[u64; 1]]) -> Result<()>) -> Result<()> {
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
pub fn common(one: &SortedRecords<1>, other: &SortedRecords<1>) -> Result<Option<u64>> {
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
