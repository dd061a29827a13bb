//! Lines dealt: each key goes to the owner of its line.

use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard};

use super::{Game, build};
use crate::key::source::{CHUNK, HashSource};
use crate::scheme::lines::{LineKernel, LineScheme, Lines, add_lines};
use crate::scheme::sift::{Picked, Range, split, unsift};
use crate::team::lock;

/// Keys of a round, which touches 164 KiB with answers.
const ROUND: usize = 1 << 14;
/// What is dealt at a time begins at a byte of [`Hand::taken`].
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
    let unit = S::Portable::WORDS;
    let total = (words.len() / unit) as u64;
    let per_owner = total.div_ceil(threads as u64).max(1);
    let parts: Vec<&mut [u64]> = words.chunks_mut(per_owner as usize * unit).collect();
    let ranges = (0..parts.len() as u64).map(|i| range_of::<S::Portable>(i * per_owner, per_owner, total)).collect();
    build(&Dealt::<S, TELL> { total, per_owner, ranges, scheme: PhantomData }, parts, source, new)
}

/// The hashes whose line is one of `lines` from `first_line` on.
fn range_of<K: LineKernel>(first_line: u64, lines: u64, total: u64) -> Range {
    let first = first_hash::<K>(first_line, total).unwrap_or(u64::MAX);
    let last = first_hash::<K>(first_line + lines, total).map_or(u64::MAX, |next| next - 1);
    Range { first, span: last - first }
}

/// The lowest hash whose line is `line` or later, by bisection.
fn first_hash<K: LineKernel>(line: u64, total: u64) -> Option<u64> {
    let mut below = 0u64;
    for bit in (0..64).rev() {
        let next = below | 1 << bit;
        if K::line(next - 1, total) < line {
            below = next;
        }
    }
    (K::line(below, total) >= line).then_some(below)
}

/// Keys of one round for one owner.
struct Hand {
    /// How many they are: the first of `hashes` and `new`.
    len: usize,
    hashes: Box<[u64]>,
    /// A bit for each key of the round: 1 when it is in this hand; empty when nobody asks for answers.
    taken: Box<[u8]>,
    /// The owner's answers.
    new: Box<[u8]>,
}

impl Hand {
    /// Takes those of `hashes` that fall in `range`; the first one's number is `start`.
    fn take(&mut self, hashes: &[u64], start: usize, range: Range) {
        self.len += range.sift(hashes, self.rest(start));
    }

    /// Deals `hashes` to two hands, those from `bound` on to the second; the first one's number is `start`.
    fn share(low: &mut Hand, high: &mut Hand, hashes: &[u64], start: usize, bound: u64) {
        let lens = split(bound, hashes, [low.rest(start), high.rest(start)]);
        low.len += lens[0];
        high.len += lens[1];
    }

    /// Where hashes go, the first of which is number `start` of the round.
    fn rest(&mut self, start: usize) -> Picked<'_> {
        Picked { kept: &mut self.hashes[self.len..], taken: self.taken.get_mut(start / 8..).unwrap_or_default() }
    }
}

/// A filter of lines, `per_owner` of `total` each.
struct Dealt<S, const TELL: bool> {
    total: u64,
    per_owner: u64,
    ranges: Vec<Range>,
    scheme: PhantomData<fn() -> S>,
}

impl<S: LineScheme, const TELL: bool> Game for Dealt<S, TELL> {
    type Hand = Hand;
    const ROUND: usize = ROUND;

    fn hand(&self) -> Hand {
        let answers = if TELL { ROUND } else { 0 };
        let bytes = |len: usize| vec![0; len].into();
        Hand { len: 0, hashes: vec![0; ROUND].into(), taken: bytes(answers / 8), new: bytes(answers) }
    }

    fn clear(hand: &mut Hand) {
        hand.len = 0;
    }

    fn deal(&self, hashes: &[u64], start: usize, hands: &mut [MutexGuard<'_, Hand>]) {
        match hands {
            [low, high] => Hand::share(low, high, hashes, start, self.ranges[1].first),
            hands => hands.iter_mut().zip(&self.ranges).for_each(|(hand, &range)| hand.take(hashes, start, range)),
        }
    }

    fn play(&self, owner: usize, words: &mut [u64], hand: &mut Hand) -> u64 {
        let lines = Lines { base: words.as_mut_ptr(), first: owner as u64 * self.per_owner, total: self.total };
        let (hashes, new) = (&hand.hashes[..hand.len], &mut hand.new);
        let tell = |i: usize, fresh: bool| {
            if TELL {
                new[i] = u8::from(fresh);
            }
        };
        // SAFETY: `deal` put into this owner's hand only hashes whose line is in its range, which
        // is what `words` holds; `&mut` excludes everyone else.
        unsafe { add_lines::<S>(lines, hashes, tell) }
    }

    fn settle(&self, hands: &[Mutex<Hand>], _keys: usize, new: &mut [u8]) -> u64 {
        if TELL {
            new.fill(0);
            hands.iter().map(lock).for_each(|hand| unsift(&hand.taken, &hand.new, new));
        }
        0
    }
}
