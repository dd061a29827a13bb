//! Several threads build one filter of lines: deal the keys to the owners of their lines, then add.
//!
//! Each thread owns a range of lines and takes an equal share of the keys. In a round it hashes its
//! share and deals each key to the owner of its line; then every owner adds what all dealers dealt
//! to it, in their order. Each key is hashed once, each line and each answer has one writer, so
//! there are no atomics, and the bits and the answers are those of one thread. Hands exist twice:
//! a thread may deal the next round while others still play this one.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::lines::{LineKernel, LineScheme, Lines, add_lines};
use super::rendezvous::Rendezvous;
use super::sift::{Range, SLACK, Sieve, split};
use crate::source::{CHUNK, HashSource};
use crate::team;

/// Keys a thread deals in a round; a number in the round fits 16 bits. Two rounds of hashes,
/// numbers and answers are 352 KiB, which stay in the second-level cache.
const ROUND: usize = 1 << 14;

/// Keys dealt by one thread to one owner: the first `len` of each row.
struct Hand {
    len: usize,
    hashes: Box<[u64]>,
    /// Number of the key in the dealer's share; empty when nobody asks for answers.
    index: Box<[u16]>,
    /// The owner's answers.
    new: Box<[u8]>,
}

impl Hand {
    fn new(with_answers: bool) -> Mutex<Self> {
        let answers = if with_answers { ROUND + SLACK } else { 0 };
        Mutex::new(Hand {
            len: 0,
            hashes: vec![0; ROUND + SLACK].into(),
            index: vec![0; answers].into(),
            new: vec![0; answers].into(),
        })
    }

    /// Takes those of `hashes` that fall in `range`; the first one's number is `start`.
    fn take(&mut self, hashes: &[u64], start: usize, range: Range) {
        let index = self.index.get_mut(self.len..).unwrap_or_default();
        self.len += range.sift(hashes, start as u16, &mut self.hashes[self.len..], index);
    }

    /// Deals `hashes` to two hands, those from `bound` on to the second; the first one's number is `start`.
    fn share(low: &mut Hand, high: &mut Hand, hashes: &[u64], start: usize, bound: u64) {
        let lens = split(bound, hashes, start as u16, [low.rest(), high.rest()]);
        low.len += lens[0];
        high.len += lens[1];
    }

    /// Where the next hashes go.
    fn rest(&mut self) -> Sieve<'_> {
        Sieve { kept: &mut self.hashes[self.len..], index: self.index.get_mut(self.len..).unwrap_or_default() }
    }

    /// Brings the owner's answers into the order of the dealer's share.
    fn collect(&self, share: &mut [u8]) {
        for (&i, &new) in self.index[..self.len].iter().zip(&self.new[..self.len]) {
            share[usize::from(i)] = new;
        }
    }
}

fn lock(hand: &Mutex<Hand>) -> MutexGuard<'_, Hand> {
    hand.lock().unwrap_or_else(PoisonError::into_inner)
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
    let owners = parts.len();
    // The shares of dealer `me` are number `me`, `me + owners`, ...
    let mut answers: Vec<Vec<&mut [u8]>> = (0..owners).map(|_| Vec::new()).collect();
    new.chunks_mut(ROUND).enumerate().for_each(|(i, share)| answers[i % owners].push(share));
    let table = Table {
        source,
        total,
        per_owner,
        ranges: (0..owners as u64).map(|i| range_of::<S::Portable>(i * per_owner, per_owner, total)).collect(),
        hands: [0, 1].map(|_| (0..owners).map(|_| (0..owners).map(|_| Hand::new(TELL)).collect()).collect()),
        barrier: Rendezvous::new(owners),
    };
    let players = parts.into_iter().zip(answers).collect();
    team::share(players, |me, (words, answers)| table.sit::<S, TELL>(me, words, answers)).into_iter().sum()
}

/// What the threads share.
struct Table<'a> {
    source: &'a dyn HashSource,
    total: u64,
    per_owner: u64,
    ranges: Vec<Range>,
    /// `hands[round % 2][dealer][owner]`.
    hands: [Vec<Vec<Mutex<Hand>>>; 2],
    barrier: Rendezvous,
}

impl Table<'_> {
    /// The rounds of thread `me`, which owns `words`; returns how many of its keys were new.
    fn sit<S: LineScheme, const TELL: bool>(&self, me: usize, words: &mut [u64], mut answers: Vec<&mut [u8]>) -> u64 {
        let keys_a_round = ROUND * self.ranges.len();
        let rounds = self.source.len().div_ceil(keys_a_round);
        let mut count = 0;
        // Two rounds more, in which only the last answers are left to collect.
        for round in 0..rounds + 2 {
            let hands = &self.hands[round % 2];
            if let Some(share) = round.checked_sub(2).and_then(|done| answers.get_mut(done)) {
                hands[me].iter().for_each(|hand| lock(hand).collect(share));
            }
            self.deal((round * keys_a_round + me * ROUND).min(self.source.len()), &hands[me]);
            self.barrier.meet();
            for dealer in hands {
                count += self.play::<S, TELL>(me, words, &mut lock(&dealer[me]));
            }
        }
        count
    }

    /// Hashes a round of keys from number `from` on and deals them to `hands`, one an owner.
    fn deal(&self, from: usize, hands: &[Mutex<Hand>]) {
        let to = (from + ROUND).min(self.source.len());
        let mut hands: Vec<_> = hands.iter().map(lock).collect();
        hands.iter_mut().for_each(|hand| hand.len = 0);
        let mut hashes = [0u64; CHUNK];
        for start in (from..to).step_by(CHUNK) {
            let hashes = &mut hashes[..CHUNK.min(to - start)];
            self.source.fill(start, hashes);
            match &mut hands[..] {
                [low, high] => Hand::share(low, high, hashes, start - from, self.ranges[1].first),
                hands => hands.iter_mut().zip(&self.ranges).for_each(|(hand, &range)| {
                    hand.take(hashes, start - from, range);
                }),
            }
        }
    }

    /// Adds the keys of a hand to their owner's lines; returns how many were new.
    fn play<S: LineScheme, const TELL: bool>(&self, owner: usize, words: &mut [u64], hand: &mut Hand) -> u64 {
        let first = owner as u64 * self.per_owner;
        let lines = Lines { base: words.as_mut_ptr(), first, total: self.total };
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
}
