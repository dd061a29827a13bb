//! [`Journals`]: the keys added to a filter while it is copied or merged, in the order of the log, and those removed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use fullbloom_core::key::KeyDomains;
use parking_lot::Mutex;

use crate::kind::Kind;
use crate::log::Record;

/// The most words of one journal, 8 MiB: beyond that the filter is copied under its lock.
pub(super) const MOST: usize = 1 << 20;
/// The words of memory of a run, beside those of its keys.
const RUN: usize = size_of::<(KeyDomains, usize)>() / size_of::<u64>();

/// Keys that were added or otherwise changed, in order: their words, in runs of equal domains. Each run has 16 bytes
/// beside its words, because the types of single keys may alternate.
#[derive(Default)]
pub(super) struct Runs {
    words: Vec<u64>,
    /// The domains of each run, and the end of its words.
    ends: Vec<(KeyDomains, usize)>,
}

impl Runs {
    fn add(&mut self, domains: KeyDomains, words: &[u64]) {
        self.words.extend_from_slice(words);
        let end = self.words.len();
        match self.ends.last_mut() {
            Some((last, last_end)) if *last == domains => *last_end = end,
            _ => self.ends.push((domains, end)),
        }
    }

    /// Appends the runs of `later`; false, without any change, if both would take more than `most` words of memory.
    pub(super) fn extend(&mut self, later: &Runs, most: usize) -> bool {
        let fits = self.num_words_held() + later.num_words_held() <= most;
        if fits {
            let before = self.words.len();
            self.words.extend_from_slice(&later.words);
            self.ends.extend(later.ends.iter().map(|(domains, end)| (*domains, before + end)));
        }
        fits
    }

    /// The domains and words of each run.
    pub(super) fn iter(&self) -> impl Iterator<Item = (KeyDomains, &[u64])> {
        let mut start = 0;
        self.ends.iter().map(move |(domains, end)| (*domains, &self.words[std::mem::replace(&mut start, *end)..*end]))
    }

    /// The words of all runs.
    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    /// The number of runs.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Its memory, in words.
    fn num_words_held(&self) -> usize {
        self.words.len() + self.ends.len() * RUN
    }
}

#[derive(Default)]
struct Journal {
    runs: Runs,
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
                Some((domains, words, is_other)) if epoch == shared.epoch && journal.has_space(words.len()) => {
                    journal.runs.add(domains, words);
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
    /// True if there is space for these words, in a run of their own.
    fn has_space(&self, words: usize) -> bool {
        self.runs.num_words_held() + RUN + words <= MOST
    }

    fn take(&mut self) -> Option<Runs> {
        if self.is_invalid {
            return None;
        }
        self.has_others = false;
        Some(std::mem::take(&mut self.runs))
    }

    fn invalidate(&mut self) {
        *self = Journal { is_invalid: true, ..Journal::default() };
    }
}

impl JournalGuard<'_> {
    /// The keys changed since the last call; `None` once there was a change other than of single keys.
    pub(super) fn take(&self) -> Option<Runs> {
        self.shared.journal.lock().take()
    }

    /// The keys added since the last call; `None` once there was another change, which cannot be repeated after a
    /// merge: a key that was absent when it was removed may be among the merged ones.
    pub(super) fn take_added(&self) -> Option<Runs> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_alternating_types_stay_within_the_memory_of_a_journal() {
        for batch in [1, 2, 100, MOST - RUN, MOST] {
            let journals = Journals::default();
            let (guard, words) = (journals.begin(1), vec![7; batch]);
            let (mut highest, mut adds) = (0, 0);
            while !guard.shared.journal.lock().is_invalid {
                let domains = if adds % 2 == 0 { KeyDomains::TEXT } else { KeyDomains::default() };
                journals.record_in_all(&Record::Add { id: 1, domains, hashes: &words }, 1);
                let runs = &guard.shared.journal.lock().runs;
                highest = highest.max(size_of_val(&runs.words[..]) + size_of_val(&runs.ends[..]));
                adds += 1;
            }
            assert!(highest <= 8 * MOST, "{highest} bytes, batches of {batch}");
            assert!(highest >= 7 * MOST || batch == MOST, "{highest} bytes, batches of {batch}");
        }
    }

    #[test]
    fn runs_keep_the_order_and_the_domains_of_keys() {
        let (text, other) = (KeyDomains::TEXT, KeyDomains::default());
        let [mut all, mut later] = [Runs::default(), Runs::default()];
        for (runs, domains, words) in
            [(0, text, [1, 2]), (0, text, [3, 4]), (0, other, [5, 6]), (1, other, [7, 8]), (1, text, [9, 10])]
        {
            [&mut all, &mut later][runs].add(domains, &words);
        }
        let most = all.num_words_held() + later.num_words_held();
        assert!(!all.extend(&later, most - 1));
        assert_eq!((all.len(), all.words().len()), (2, 6));
        assert!(all.extend(&later, most));
        let expected = [(text, &[1, 2, 3, 4][..]), (other, &[5, 6]), (other, &[7, 8]), (text, &[9, 10])];
        assert_eq!(all.iter().collect::<Vec<_>>(), expected);
        assert_eq!((all.len(), all.words().len()), (4, 10));
    }
}
