//! What an entry tells of itself without its filter, and a look that does not wait.

use std::sync::atomic::Ordering;

use super::{Entry, Store};

impl Entry {
    /// Changes with every change of the filter.
    pub fn version(&self) -> u64 {
        self.lsn.load(Ordering::Relaxed)
    }

    /// Grows with every change of the filter, and with every question.
    pub fn moves(&self) -> u64 {
        let t = &self.traffic;
        let asked = [&t.hits, &t.misses, &t.adds, &t.new, &t.removed].map(|counter| counter.load(Ordering::Relaxed));
        asked.iter().fold(self.version(), |sum, count| sum.wrapping_add(*count))
    }

    /// Bytes of its cells.
    pub fn nbytes(&self) -> u64 {
        self.counted.load(Ordering::Relaxed)
    }
}

impl Store {
    /// [`Store::contains`], but false, with nothing answered, while the filter is being changed.
    pub fn contains_now(&self, entry: &Entry, hashes: &[u64], found: &mut [u8]) -> bool {
        let Some(filter) = entry.try_look() else { return false };
        filter.contains(hashes, found);
        drop(filter);
        self.count_answers(entry, found);
        true
    }
}
