//! [`Apart`]: an exact table of hashes and counts, for the keys that a spectral filter counts apart.
//!
//! ```text
//! slot = fastrange(h * M1 mod 2^64, slots), then the next ones, WALK at most, around the end
//! slots = max(8, capacity / 2); a slot is two words: h, and its count (0: empty)
//! ```

use std::ops::Range;

use crate::cells::Memory;
use crate::scheme::fastrange;

/// The first multiplier of `columns`.
const M1: u64 = 0xd134_2543_de82_ef95;
/// Slots searched for a key.
const WALK: u64 = 32;

/// Keys that are counted apart, exactly: hash and count in successive words.
pub struct Apart {
    /// Slots, two words each.
    pub slots: u64,
    /// The slots.
    pub memory: Memory,
}

/// Words of a slot.
pub const SLOT_WORDS: usize = 2;

/// Where a walk through the table ends.
enum WalkEnd {
    At(usize),
    Free(usize),
    Full,
}

impl Apart {
    /// Slots, of two words each, of a table for a filter of `capacity` keys.
    pub fn slots_for(capacity: u64) -> u64 {
        (capacity / 2).max(8)
    }

    /// The word with the count of `hash`, or that of the first free slot on its way.
    fn walk(&self, hash: u64) -> WalkEnd {
        let words = self.memory.words();
        let start = fastrange(hash.wrapping_mul(M1), self.slots);
        for step in 0..WALK.min(self.slots) {
            let slot = (start + step) % self.slots;
            match words.get(slot as usize * 2..slot as usize * 2 + 2) {
                Some(&[_, 0]) => return WalkEnd::Free(slot as usize * 2 + 1),
                Some(&[key, _]) if u64::from_le(key) == hash => return WalkEnd::At(slot as usize * 2 + 1),
                _ => {}
            }
        }
        WalkEnd::Full
    }

    /// The count of a key that is here.
    pub fn count(&self, hash: u64) -> Option<u64> {
        match self.walk(hash) {
            WalkEnd::At(i) => self.memory.words().get(i).map(|&count| u64::from_le(count)),
            _ => None,
        }
    }

    /// Counts `more` for a key in the table; or inserts it with `least` if only one of its counters had the minimum.
    pub fn add(&mut self, hash: u64, least: u64, alone: bool, more: u64) {
        if more == 0 {
            return;
        }
        let (at, key) = match self.walk(hash) {
            WalkEnd::At(i) => (i, None),
            WalkEnd::Free(i) if alone => (i, Some(hash)),
            _ => return,
        };
        let Some(words) = self.memory.words_mut() else { return };
        if let Some([hash_word, count]) = words.get_mut(at - 1..=at) {
            match key {
                Some(key) => (*hash_word, *count) = (key.to_le(), least.to_le()),
                None => *count = u64::from_le(*count).saturating_add(more).to_le(),
            }
        }
    }

    /// Keys that are here.
    #[allow(clippy::len_without_is_empty)] // unused
    pub fn len(&self) -> u64 {
        self.len_in(0..self.memory.words().len())
    }

    /// Keys in these words, whole slots.
    pub fn len_in(&self, words: Range<usize>) -> u64 {
        let slots = self.memory.words()[words].as_chunks::<SLOT_WORDS>().0;
        slots.iter().filter(|[_, count]| *count != 0).count() as u64
    }
}
