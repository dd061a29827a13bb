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
    /// The answer for one hash; none while the filter is being changed.
    pub fn contains_now(&self, entry: &Entry, hash: u64) -> Option<bool> {
        let mut found = [0];
        entry.try_look()?.contains(&[hash], &mut found);
        let counter = if found[0] == 1 { &entry.traffic.hits } else { &entry.traffic.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        Some(found[0] == 1)
    }
}
