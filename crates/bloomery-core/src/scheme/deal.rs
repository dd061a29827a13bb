//! Several threads build one filter of lines: deal the keys to the owners of their lines, then add.
//!
//! Each thread owns a range of lines. Keys come in rounds: one thread hashes the keys of a round and
//! deals each to the owner of its line, then every owner adds its hand. Owners play the rounds in
//! order, so that the bits and the answers are those of one thread; each key is hashed once, and each line
//! and each answer has one writer, so that no word is shared.
//!
//! A thread that has nothing to play deals the next round, whoever dealt the last one. Threads that met
//! in each round lost the time that the machine took from either, twice: on a busy one, adding 10 million
//! keys was 1.50 instead of 1.57 times as fast as on one thread, with answers 1.42 instead of 1.64.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::lines::{LineKernel, LineScheme, Lines, add_lines};
use super::patience::Patience;
use super::sift::{Range, SLACK, Sieve, split};
use crate::source::{CHUNK, HashSource};
use crate::team;

/// Keys of a round; a number in the round fits 16 bits.
const ROUND: usize = 1 << 14;
/// Rounds under way at a time. A round touches 176 KiB with answers: together they stay in the second-level
/// cache. With 3 or 6, two threads are slower.
const PLACES: usize = 4;

/// Keys of one round for one owner: the first `len` of each row.
struct Hand {
    len: usize,
    hashes: Box<[u64]>,
    /// Number of the key in the round; empty when nobody asks for answers.
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

    /// Brings the owner's answers into the order of the round.
    fn collect(&self, round: &mut [u8]) {
        for (&i, &new) in self.index[..self.len].iter().zip(&self.new[..self.len]) {
            round[usize::from(i)] = new;
        }
    }
}

fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
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
    let table = Table {
        source,
        total,
        per_owner,
        rounds: source.len().div_ceil(ROUND),
        ranges: (0..owners as u64).map(|i| range_of::<S::Portable>(i * per_owner, per_owner, total)).collect(),
        claimed: AtomicUsize::new(0),
        places: (0..PLACES).map(|_| Place::new(owners, TELL)).collect(),
        answers: new.chunks_mut(ROUND).map(Mutex::new).collect(),
    };
    team::share(parts, |me, words| table.sit::<S, TELL>(me, words)).into_iter().sum()
}

/// Where one round at a time lies. The counters only rise: how often the place was dealt to, how many
/// hands were played in it, how often it was cleared.
struct Place {
    dealt: AtomicUsize,
    played: AtomicUsize,
    cleared: AtomicUsize,
    /// One an owner.
    hands: Vec<Mutex<Hand>>,
}

impl Place {
    fn new(owners: usize, with_answers: bool) -> Self {
        let hands = (0..owners).map(|_| Hand::new(with_answers)).collect();
        let [dealt, played, cleared] = [0; 3].map(AtomicUsize::new);
        Place { dealt, played, cleared, hands }
    }
}

/// What the threads share.
struct Table<'a> {
    source: &'a dyn HashSource,
    total: u64,
    per_owner: u64,
    rounds: usize,
    ranges: Vec<Range>,
    /// Rounds that somebody has dealt or is dealing.
    claimed: AtomicUsize,
    /// Round `r` lies at `places[r % PLACES]`.
    places: Vec<Place>,
    /// One part a round; none when nobody asks for answers.
    answers: Vec<Mutex<&'a mut [u8]>>,
}

impl Table<'_> {
    /// The game of thread `me`, which owns `words`: plays its hand of every round in order, deals a round
    /// when there is none to play. Returns how many of its keys were new.
    fn sit<S: LineScheme, const TELL: bool>(&self, me: usize, words: &mut [u64]) -> u64 {
        let (mut count, mut next) = (0, 0);
        let mut patience = Patience::default();
        while next < self.rounds {
            let place = &self.places[next % PLACES];
            if place.dealt.load(Ordering::Acquire) > next / PLACES {
                count += self.play::<S, TELL>(me, words, &mut lock(&place.hands[me]));
                self.leave::<TELL>(next, place);
                next += 1;
            } else if let Some(round) = self.claim() {
                let place = &self.places[round % PLACES];
                self.deal(round, &place.hands);
                place.dealt.store(round / PLACES + 1, Ordering::Release);
            } else {
                patience.pause();
                continue;
            }
            patience = Patience::default();
        }
        count
    }

    /// The next round to deal, if its place is clear and no other thread is quicker.
    fn claim(&self) -> Option<usize> {
        let round = self.claimed.load(Ordering::Relaxed);
        let clear = || self.places[round % PLACES].cleared.load(Ordering::Acquire) == round / PLACES;
        let claim = || self.claimed.compare_exchange(round, round + 1, Ordering::Relaxed, Ordering::Relaxed);
        (round < self.rounds && clear() && claim().is_ok()).then_some(round)
    }

    /// The last player of a round brings its answers into order and clears the place.
    fn leave<const TELL: bool>(&self, round: usize, place: &Place) {
        let owners = place.hands.len();
        if place.played.fetch_add(1, Ordering::AcqRel) + 1 < (round / PLACES + 1) * owners {
            return;
        }
        if TELL {
            let mut answers = lock(&self.answers[round]);
            place.hands.iter().for_each(|hand| lock(hand).collect(&mut answers));
        }
        place.cleared.store(round / PLACES + 1, Ordering::Release);
    }

    /// Hashes the keys of `round` and deals them to `hands`, one an owner.
    fn deal(&self, round: usize, hands: &[Mutex<Hand>]) {
        let from = round * ROUND;
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
