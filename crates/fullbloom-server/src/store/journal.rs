//! [`Journals`]: the keys added to a filter while it is copied or merged, in the order of the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use fullbloom_core::key::KeyDomains;
use parking_lot::Mutex;

use crate::log::Record;

/// The most words of one journal, 8 MiB: beyond that the filter is copied under its lock.
pub(super) const MOST: usize = 1 << 20;

/// Keys added in sequence: their domains and their words.
pub(super) type Run = (KeyDomains, Vec<u64>);

#[derive(Default)]
struct Journal {
    runs: Vec<Run>,
    words: usize,
    /// True once there was a change other than adding keys, or too many keys were added.
    is_invalid: bool,
}

struct Shared {
    journal: Mutex<Journal>,
    /// The bytes of the filter's cells when the journal began: a filter that has grown has other sections.
    nbytes: u64,
}

#[derive(Default)]
pub(super) struct Journals {
    count: AtomicUsize,
    /// The number of changes other than adding keys.
    rewrites: AtomicU64,
    all: Mutex<Vec<Arc<Shared>>>,
}

/// An active journal, until it is dropped.
pub(super) struct JournalGuard<'a> {
    journals: &'a Journals,
    shared: Arc<Shared>,
}

impl Journals {
    /// Begins a journal of a filter with this many bytes. The caller excludes changes.
    pub(super) fn begin(&self, nbytes: u64) -> JournalGuard<'_> {
        let shared = Arc::new(Shared { journal: Mutex::default(), nbytes });
        let mut all = self.all.lock();
        all.push(shared.clone());
        self.count.store(all.len(), Ordering::Release);
        JournalGuard { journals: self, shared }
    }

    /// Records a change of the filter, which now has this many bytes. The caller excludes other changes and copies.
    #[inline]
    pub(super) fn record(&self, record: &Record<'_>, nbytes: u64) {
        if !matches!(record, Record::Add { .. }) {
            self.rewrites.fetch_add(1, Ordering::Release);
        }
        if self.count.load(Ordering::Acquire) > 0 {
            self.record_in_all(record, nbytes);
        }
    }

    #[cold]
    fn record_in_all(&self, record: &Record<'_>, nbytes: u64) {
        for shared in self.all.lock().iter() {
            let mut journal = shared.journal.lock();
            match record {
                Record::Add { domains, hashes: words, .. }
                    if nbytes == shared.nbytes && journal.words + words.len() <= MOST =>
                {
                    journal.add(*domains, words);
                }
                _ => journal.invalidate(),
            }
        }
    }

    /// The number of changes other than adding keys. The caller excludes changes.
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

    fn invalidate(&mut self) {
        *self = Journal { is_invalid: true, ..Journal::default() };
    }
}

impl JournalGuard<'_> {
    /// The keys added since the last call; `None` once there was another change.
    pub(super) fn take(&self) -> Option<Vec<Run>> {
        let mut journal = self.shared.journal.lock();
        if journal.is_invalid {
            return None;
        }
        journal.words = 0;
        Some(std::mem::take(&mut journal.runs))
    }
}

impl Drop for JournalGuard<'_> {
    fn drop(&mut self) {
        let mut all = self.journals.all.lock();
        all.retain(|shared| !Arc::ptr_eq(shared, &self.shared));
        self.journals.count.store(all.len(), Ordering::Release);
    }
}
