//! Partitioned lines: each key goes to the owner of its line.

use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard};

use super::compact::{Compacted, Range, scatter};
use super::rounds::{Partition, build};
use super::workers::lock;
use crate::key::source::{CHUNK, HashSource};
use crate::scheme::block::Block;
use crate::scheme::lines::{Lines, add_lines};
use crate::scheme::pattern::LineScheme;

/// Keys of a round, which touches 164 KiB with answers.
const ROUND: usize = 1 << 14;
/// Each chunk put into buckets begins at a byte of [`Bucket::mask`].
const _: () = assert!(CHUNK.is_multiple_of(8) && ROUND.is_multiple_of(CHUNK));

/// Adds all keys of `source` to the filter in `words` on `threads` threads; writes 1 for each new
/// key and 0 for the others into `new`, returns how many were new.
pub fn add<S: LineScheme>(words: &mut [u64], source: &dyn HashSource, threads: usize, new: Option<&mut [u8]>) -> u64 {
    match new {
        Some(new) => add_rounds::<S, true>(words, source, threads, new),
        None => add_rounds::<S, false>(words, source, threads, &mut []),
    }
}

/// [`add`], with the answers collected (`TELL`) or not.
fn add_rounds<S: LineScheme, const TELL: bool>(
    words: &mut [u64],
    source: &dyn HashSource,
    threads: usize,
    new: &mut [u8],
) -> u64 {
    let unit = S::Words::WORDS;
    let total = (words.len() / unit) as u64;
    let per_owner = total.div_ceil(threads as u64).max(1);
    let parts: Vec<&mut [u64]> = words.chunks_mut(per_owner as usize * unit).collect();
    let ranges = (0..parts.len() as u64).map(|i| range_of::<S>(i * per_owner, per_owner, total)).collect();
    build(&ByLine::<S, TELL> { total, per_owner, ranges, scheme: PhantomData }, parts, source, new)
}

/// The hashes whose line is one of `lines` from `first_line` on.
fn range_of<S: LineScheme>(first_line: u64, lines: u64, total: u64) -> Range {
    let first = first_hash::<S>(first_line, total).unwrap_or(u64::MAX);
    let last = first_hash::<S>(first_line + lines, total).map_or(u64::MAX, |next| next - 1);
    Range { first, span: last - first }
}

/// The lowest hash whose line is `line` or later, by bisection.
fn first_hash<S: LineScheme>(line: u64, total: u64) -> Option<u64> {
    let mut below = 0u64;
    for bit in (0..64).rev() {
        let next = below | 1 << bit;
        if S::line(next - 1, total) < line {
            below = next;
        }
    }
    (S::line(below, total) >= line).then_some(below)
}

/// Keys of one round for one owner.
struct Bucket {
    /// How many they are: the first of `hashes` and `new`.
    len: usize,
    hashes: Box<[u64]>,
    /// A bit for each key of the round: 1 if it is in this bucket; empty if answers are not wanted.
    mask: Box<[u8]>,
    /// The answers for this owner's keys.
    new: Box<[u8]>,
}

impl Bucket {
    /// The free space of the bucket; its first hash is number `start` of the round.
    fn rest(&mut self, start: usize) -> Compacted<'_> {
        Compacted { kept: &mut self.hashes[self.len..], mask: self.mask.get_mut(start / 8..).unwrap_or_default() }
    }
}

/// A filter of lines, `per_owner` of `total` each.
struct ByLine<S, const TELL: bool> {
    total: u64,
    per_owner: u64,
    ranges: Vec<Range>,
    scheme: PhantomData<fn() -> S>,
}

impl<S: LineScheme, const TELL: bool> Partition for ByLine<S, TELL> {
    type Bucket = Bucket;
    const ROUND: usize = ROUND;

    fn bucket(&self) -> Bucket {
        let answers = if TELL { ROUND } else { 0 };
        let bytes = |len: usize| vec![0; len].into();
        Bucket { len: 0, hashes: vec![0; ROUND].into(), mask: bytes(answers / 8), new: bytes(answers) }
    }

    fn clear(bucket: &mut Bucket) {
        bucket.len = 0;
    }

    fn fill(&self, hashes: &[u64], start: usize, buckets: &mut [MutexGuard<'_, Bucket>]) {
        if let [low, high] = buckets {
            let lens = self.ranges[0].compact(hashes, [low.rest(start), high.rest(start)]);
            (low.len, high.len) = (low.len + lens[0], high.len + lens[1]);
            return;
        }
        for (bucket, range) in buckets.iter_mut().zip(&self.ranges) {
            let [len] = range.compact(hashes, [bucket.rest(start)]);
            bucket.len += len;
        }
    }

    fn apply(&self, owner: usize, words: &mut [u64], bucket: &mut Bucket) -> u64 {
        let lines = Lines { base: words.as_mut_ptr(), first: owner as u64 * self.per_owner, total: self.total };
        let (hashes, new) = (&bucket.hashes[..bucket.len], &mut bucket.new);
        let tell = |i: usize, fresh: bool| {
            if TELL {
                new[i] = u8::from(fresh);
            }
        };
        // SAFETY: `fill` put into this owner's bucket only hashes whose line is in its range, which
        // is what `words` holds; `&mut` excludes everyone else.
        unsafe { add_lines::<S>(lines, hashes, tell) }
    }

    fn merge(&self, buckets: &[Mutex<Bucket>], _keys: usize, new: &mut [u8]) -> u64 {
        if TELL {
            new.fill(0);
            buckets.iter().map(lock).for_each(|bucket| scatter(&bucket.mask, &bucket.new, new));
        }
        0
    }
}
