//! Several threads build one filter: deal the keys to the owners of their words, then add.
//!
//! Each thread owns a range of words. Keys come in rounds: one thread hashes the keys of a round and
//! deals them, or their positions, to the owners; then every owner plays its hand. Owners play the rounds
//! in order, so that the bits and the answers are those of one thread; each key is hashed once and
//! each word has one writer.
//!
//! A thread that has nothing to play deals the next round, whoever dealt the last one. Threads that met
//! in each round lost the time that the machine took from either, twice: on a busy one, adding 10 million
//! keys was 1.50 instead of 1.57 times as fast as on one thread, with answers 1.42 instead of 1.64.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use super::patience::Patience;
use crate::key::source::{CHUNK, HashSource};
use crate::team::{self, lock};

pub mod lines;
pub mod probes;

/// Rounds under way at a time: what they touch stays in the second-level cache. With 3 or 6, two threads
/// are slower.
const PLACES: usize = 4;

/// What is dealt, and how it is played.
trait Game: Sync {
    /// What one owner gets of one round.
    type Hand: Send;
    /// Keys of a round.
    const ROUND: usize;

    /// An empty hand.
    fn hand(&self) -> Self::Hand;
    /// Empties a hand for the next round.
    fn clear(hand: &mut Self::Hand);
    /// Deals `hashes` to `hands`, one an owner; the first one is number `start` of the round.
    fn deal(&self, hashes: &[u64], start: usize, hands: &mut [MutexGuard<'_, Self::Hand>]);
    /// Adds the hand of `owner` to its `words`; returns how many keys it knows to be new.
    fn play(&self, owner: usize, words: &mut [u64], hand: &mut Self::Hand) -> u64;
    /// Brings what the owners found about the `keys` of a round into `new`, which is empty when nobody
    /// asks; returns how many more keys are new.
    fn settle(&self, hands: &[Mutex<Self::Hand>], keys: usize, new: &mut [u8]) -> u64;
}

/// Builds a filter: plays `game` with all keys of `source`, one thread for each of `parts`, the words of the filter;
/// answers go to `new`, one a key, unless it is empty. Returns how many keys were new.
fn build<G: Game>(game: &G, parts: Vec<&mut [u64]>, source: &dyn HashSource, new: &mut [u8]) -> u64 {
    let table = Table::new(game, parts.len(), source, new);
    match team::share(parts, |me, words| table.sit(me, words)) {
        Ok(counts) => counts.into_iter().sum(),
        Err(parts) => table.sit_alone(parts),
    }
}

/// Where one round at a time lies. The counters only rise: how often the place was dealt to, how many
/// hands were played in it, how often it was cleared.
struct Place<H> {
    dealt: AtomicUsize,
    played: AtomicUsize,
    cleared: AtomicUsize,
    /// One an owner.
    hands: Vec<Mutex<H>>,
}

impl<H> Place<H> {
    fn new(hands: impl Iterator<Item = H>) -> Self {
        let [dealt, played, cleared] = [0; 3].map(AtomicUsize::new);
        Place { dealt, played, cleared, hands: hands.map(Mutex::new).collect() }
    }
}

/// What the threads share.
struct Table<'a, G: Game> {
    game: &'a G,
    source: &'a dyn HashSource,
    rounds: usize,
    /// Rounds that somebody has dealt or is dealing.
    claimed: AtomicUsize,
    /// Whether a thread left by a panic: the others need not wait for it.
    abandoned: AtomicBool,
    /// Round `r` lies at `places[r % PLACES]`.
    places: Vec<Place<G::Hand>>,
    /// One part a round; none when nobody asks for answers.
    answers: Vec<Mutex<&'a mut [u8]>>,
}

impl<'a, G: Game> Table<'a, G> {
    fn new(game: &'a G, owners: usize, source: &'a dyn HashSource, new: &'a mut [u8]) -> Self {
        debug_assert!(new.is_empty() || new.len() == source.len());
        Table {
            game,
            source,
            rounds: source.len().div_ceil(G::ROUND),
            claimed: AtomicUsize::new(0),
            abandoned: AtomicBool::new(false),
            places: (0..PLACES).map(|_| Place::new((0..owners).map(|_| game.hand()))).collect(),
            answers: new.chunks_mut(G::ROUND).map(Mutex::new).collect(),
        }
    }

    /// The game of thread `me`, which owns `words`: plays its hand of every round in order, deals a round
    /// when there is none to play. Returns how many keys it found to be new.
    fn sit(&self, me: usize, words: &mut [u64]) -> u64 {
        let (mut count, mut next) = (0, 0);
        let mut patience = Patience::default();
        let _alarm = Alarm(&self.abandoned);
        while next < self.rounds {
            let place = &self.places[next % PLACES];
            if place.dealt.load(Ordering::Acquire) > next / PLACES {
                count += self.play(next, me, words);
                next += 1;
            } else if let Some(round) = self.claim() {
                self.deal(round);
            } else if self.abandoned.load(Ordering::Relaxed) {
                break;
            } else {
                patience.pause();
                continue;
            }
            patience = Patience::default();
        }
        count
    }

    /// The game of one thread that owns all words.
    fn sit_alone(&self, mut parts: Vec<&mut [u64]>) -> u64 {
        let mut count = 0;
        for round in 0..self.rounds {
            self.deal(round);
            count += (0..).zip(&mut parts).map(|(me, words)| self.play(round, me, words)).sum::<u64>();
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

    /// Plays the hand of owner `me` of `round`. The last player settles the round and clears its place.
    fn play(&self, round: usize, me: usize, words: &mut [u64]) -> u64 {
        let place = &self.places[round % PLACES];
        let count = self.game.play(me, words, &mut lock(&place.hands[me]));
        let owners = place.hands.len();
        if place.played.fetch_add(1, Ordering::AcqRel) + 1 < (round / PLACES + 1) * owners {
            return count;
        }
        let keys = G::ROUND.min(self.source.len() - round * G::ROUND);
        let more = match self.answers.get(round) {
            Some(new) => self.game.settle(&place.hands, keys, &mut lock(new)),
            None => self.game.settle(&place.hands, keys, &mut []),
        };
        place.cleared.store(round / PLACES + 1, Ordering::Release);
        count + more
    }

    /// Hashes the keys of `round` and deals them.
    fn deal(&self, round: usize) {
        let place = &self.places[round % PLACES];
        let from = round * G::ROUND;
        let to = (from + G::ROUND).min(self.source.len());
        let mut hands: Vec<_> = place.hands.iter().map(lock).collect();
        hands.iter_mut().for_each(|hand| G::clear(hand));
        let mut hashes = [0u64; CHUNK];
        for start in (from..to).step_by(CHUNK) {
            let hashes = &mut hashes[..CHUNK.min(to - start)];
            self.source.fill(start, hashes);
            self.game.deal(hashes, start - from, &mut hands);
        }
        drop(hands);
        place.dealt.store(round / PLACES + 1, Ordering::Release);
    }
}

/// Raises the alarm when the thread that holds it panics.
struct Alarm<'a>(&'a AtomicBool);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys go round the owners; a word depends on the order in which its keys came.
    struct Toy {
        /// Whose hand cannot be played.
        faulty: usize,
    }

    impl Game for Toy {
        type Hand = Vec<(usize, u64)>;
        const ROUND: usize = 8;

        fn hand(&self) -> Self::Hand {
            Vec::new()
        }

        fn clear(hand: &mut Self::Hand) {
            hand.clear();
        }

        fn deal(&self, hashes: &[u64], start: usize, hands: &mut [MutexGuard<'_, Self::Hand>]) {
            for (i, &hash) in hashes.iter().enumerate() {
                hands[hash as usize % 3].push((start + i, hash));
            }
        }

        fn play(&self, owner: usize, words: &mut [u64], hand: &mut Self::Hand) -> u64 {
            assert!(owner != self.faulty);
            hand.iter().for_each(|(_, hash)| words[0] = words[0].wrapping_mul(31).wrapping_add(*hash));
            hand.len() as u64
        }

        fn settle(&self, hands: &[Mutex<Self::Hand>], _keys: usize, new: &mut [u8]) -> u64 {
            for hand in hands {
                lock(hand).iter().for_each(|&(i, hash)| new[i] = hash as u8);
            }
            0
        }
    }

    #[test]
    fn one_thread_alone_and_several_play_in_the_order_of_keys() {
        let game = Toy { faulty: usize::MAX };
        let keys: Vec<u64> = (0..1003).map(|i| i * i).collect();
        let mut want = [0u64; 3];
        for &key in &keys {
            let word = &mut want[key as usize % 3];
            *word = word.wrapping_mul(31).wrapping_add(key);
        }
        for alone in [false, true] {
            let (mut words, mut new) = ([0u64; 3], vec![0; keys.len()]);
            let parts = words.chunks_mut(1).collect();
            let source: &[u64] = &keys;
            let count = match alone {
                true => Table::new(&game, 3, &source, &mut new).sit_alone(parts),
                false => build(&game, parts, &source, &mut new),
            };
            assert_eq!((words, count), (want, 1003), "{alone}");
            assert_eq!(new, keys.iter().map(|&key| key as u8).collect::<Vec<_>>());
        }
    }

    #[test]
    fn nobody_waits_for_a_thread_that_panicked() {
        let keys: Vec<u64> = (0..1003).collect();
        for faulty in 0..3 {
            let mut words = [0u64; 3];
            let play = || {
                let source: &[u64] = &keys;
                build(&Toy { faulty }, words.chunks_mut(1).collect(), &source, &mut [0; 1003])
            };
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(play)).is_err());
        }
    }
}
