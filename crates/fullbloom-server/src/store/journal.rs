//! [`Journals`]: the keys added to a filter while it is copied or merged, in the order of the log, and those removed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use fullbloom_core::key::KeyDomains;
use parking_lot::Mutex;

use crate::kind::Kind;
use crate::log::Record;

/// The most words of one journal, 8 MiB: beyond that the filter is copied under its lock.
pub(super) const MOST: usize = 1 << 20;

/// Keys that were added in sequence, or otherwise changed: their domains and their words.
pub(super) type Run = (KeyDomains, Vec<u64>);

#[derive(Default)]
struct Journal {
    runs: Vec<Run>,
    words: usize,
    /// True once keys of these runs were removed, or added with a value.
    has_others: bool,
    /// True once there was a change other than of single keys, or of too many keys.
    is_invalid: bool,
}

struct Shared {
    journal: Mutex<Journal>,
    /// The filter's epoch when the journal began.
    epoch: u64,
}

#[derive(Default)]
pub(super) struct Journals {
    count: AtomicUsize,
    /// The number of changes other than of single keys.
    rewrites: AtomicU64,
    all: Mutex<Vec<Arc<Shared>>>,
}

/// An active journal, until it is dropped.
pub(super) struct JournalGuard<'a> {
    journals: &'a Journals,
    shared: Arc<Shared>,
}

impl Journals {
    /// Begins a journal of a filter in this epoch. The caller excludes changes.
    pub(super) fn begin(&self, epoch: u64) -> JournalGuard<'_> {
        let shared = Arc::new(Shared { journal: Mutex::default(), epoch });
        let mut all = self.all.lock();
        all.push(shared.clone());
        self.count.store(all.len(), Ordering::Release);
        JournalGuard { journals: self, shared }
    }

    /// Records a change of a filter. The caller excludes other changes and copies.
    #[inline]
    pub(super) fn record(&self, record: &Record<'_>, filter: &dyn Kind) {
        if !matches!(record, Record::Add { .. } | Record::Remove { .. } | Record::Pairs { .. }) {
            self.rewrites.fetch_add(1, Ordering::Release);
        }
        if self.count.load(Ordering::Acquire) > 0 {
            self.record_in_all(record, filter.epoch());
        }
    }

    #[cold]
    fn record_in_all(&self, record: &Record<'_>, epoch: u64) {
        let run = match record {
            Record::Add { domains, hashes, .. } => Some((*domains, *hashes, false)),
            Record::Pairs { domains, hashes, .. } => Some((*domains, *hashes, true)),
            Record::Remove { hashes, .. } => Some((KeyDomains::default(), *hashes, true)),
            _ => None,
        };
        for shared in self.all.lock().iter() {
            let mut journal = shared.journal.lock();
            match run {
                Some((domains, words, is_other)) if epoch == shared.epoch && journal.words + words.len() <= MOST => {
                    journal.add(domains, words);
                    journal.has_others |= is_other;
                }
                _ => journal.invalidate(),
            }
        }
    }

    /// The number of changes other than of single keys. The caller excludes changes.
    pub(super) fn rewrites(&self) -> u64 {
        self.rewrites.load(Ordering::Acquire)
    }

    /// Invalidates all journals, because the filter was replaced.
    pub(super) fn invalidate(&self) {
        self.rewrites.fetch_add(1, Ordering::Release);
        self.all.lock().iter().for_each(|shared| shared.journal.lock().invalidate());
    }
}

impl Journal {
    fn add(&mut self, domains: KeyDomains, words: &[u64]) {
        self.words += words.len();
        match self.runs.last_mut() {
            Some((last, run)) if *last == domains => run.extend_from_slice(words),
            _ => self.runs.push((domains, words.to_vec())),
        }
    }

    fn take(&mut self) -> Option<Vec<Run>> {
        if self.is_invalid {
            return None;
        }
        (self.words, self.has_others) = (0, false);
        Some(std::mem::take(&mut self.runs))
    }

    fn invalidate(&mut self) {
        *self = Journal { is_invalid: true, ..Journal::default() };
    }
}

impl JournalGuard<'_> {
    /// The keys changed since the last call; `None` once there was a change other than of single keys.
    pub(super) fn take(&self) -> Option<Vec<Run>> {
        self.shared.journal.lock().take()
    }

    /// The keys added since the last call; `None` once there was another change, which cannot be repeated after a
    /// merge: a key that was absent when it was removed may be among the merged ones.
    pub(super) fn take_added(&self) -> Option<Vec<Run>> {
        let mut journal = self.shared.journal.lock();
        if journal.has_others { None } else { journal.take() }
    }
}

impl Drop for JournalGuard<'_> {
    fn drop(&mut self) {
        let mut all = self.journals.all.lock();
        all.retain(|shared| !Arc::ptr_eq(shared, &self.shared));
        self.journals.count.store(all.len(), Ordering::Release);
    }
}
