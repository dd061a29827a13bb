//! What an entry tells of itself without its filter, and a look that does not wait.

use std::sync::atomic::Ordering;

use super::{Entry, Store};

impl Entry {
    /// Changes with every change of the filter.
    pub fn version(&self) -> u64 {
        self.lsn.load(Ordering::Relaxed)
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
