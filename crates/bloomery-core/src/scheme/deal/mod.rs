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

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::patience::Patience;
use crate::source::{CHUNK, HashSource};
use crate::team;

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

fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Builds a filter: plays `game` with all keys of `source`, one thread for each of `parts`, the words of the filter;
/// answers go to `new` unless it is empty. Returns how many keys were new.
fn build<G: Game>(game: &G, parts: Vec<&mut [u64]>, source: &dyn HashSource, new: &mut [u8]) -> u64 {
    let owners = parts.len();
    let table = Table {
        game,
        source,
        rounds: source.len().div_ceil(G::ROUND),
        claimed: AtomicUsize::new(0),
        places: (0..PLACES).map(|_| Place::new((0..owners).map(|_| game.hand()))).collect(),
        answers: new.chunks_mut(G::ROUND).map(Mutex::new).collect(),
    };
    team::share(parts, |me, words| table.sit(me, words)).into_iter().sum()
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
    /// Round `r` lies at `places[r % PLACES]`.
    places: Vec<Place<G::Hand>>,
    /// One part a round; none when nobody asks for answers.
    answers: Vec<Mutex<&'a mut [u8]>>,
}

impl<G: Game> Table<'_, G> {
    /// The game of thread `me`, which owns `words`: plays its hand of every round in order, deals a round
    /// when there is none to play. Returns how many keys it found to be new.
    fn sit(&self, me: usize, words: &mut [u64]) -> u64 {
        let (mut count, mut next) = (0, 0);
        let mut patience = Patience::default();
        while next < self.rounds {
            let place = &self.places[next % PLACES];
            if place.dealt.load(Ordering::Acquire) > next / PLACES {
                count += self.game.play(me, words, &mut lock(&place.hands[me]));
                count += self.leave(next, place);
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

    /// The last player of a round settles it and clears the place.
    fn leave(&self, round: usize, place: &Place<G::Hand>) -> u64 {
        let owners = place.hands.len();
        if place.played.fetch_add(1, Ordering::AcqRel) + 1 < (round / PLACES + 1) * owners {
            return 0;
        }
        let keys = G::ROUND.min(self.source.len() - round * G::ROUND);
        let count = match self.answers.get(round) {
            Some(new) => self.game.settle(&place.hands, keys, &mut lock(new)),
            None => self.game.settle(&place.hands, keys, &mut []),
        };
        place.cleared.store(round / PLACES + 1, Ordering::Release);
        count
    }

    /// Hashes the keys of `round` and deals them to `hands`.
    fn deal(&self, round: usize, hands: &[Mutex<G::Hand>]) {
        let from = round * G::ROUND;
        let to = (from + G::ROUND).min(self.source.len());
        let mut hands: Vec<_> = hands.iter().map(lock).collect();
        hands.iter_mut().for_each(|hand| G::clear(hand));
        let mut hashes = [0u64; CHUNK];
        for start in (from..to).step_by(CHUNK) {
            let hashes = &mut hashes[..CHUNK.min(to - start)];
            self.source.fill(start, hashes);
            self.game.deal(hashes, start - from, &mut hands);
        }
    }
}
