//! Counts of a filter's cells. Those of a large filter are counted in slices.
//!
//! Each slice is counted under the filter's lock, which is fair, so a change waits for one slice at most. Adding a key
//! only sets bits: the number of set bits that such a count finds lies between the true numbers at its start and at its
//! end, and so do the fill, the rate and the estimate that follow from it. Any other change, such as clearing the
//! filter, starts the count over. Filters whose stats do not follow from the number of set bits are counted at once, under
//! the lock.
//!
//! A count of a filter that does not change is kept until the next change. The rate without a count comes from the
//! number of keys if there is a law for it; otherwise a count is used until twenty times its duration have passed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Entry;
use super::entry::SMALL;
use super::stats::{FilterStats, Known};
use crate::blocking::aside;

/// The bytes counted while changes wait: 0.1 ms of work.
const SLICE: usize = if cfg!(test) { 4 << 10 } else { 512 << 10 };
/// The longest pause between two slices of a filter that changes; otherwise it lasts as long as the slice took.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);
/// The number of attempts before the cells are counted at once.
const TRIES: usize = 3;
/// A rate that took a count is used for this many times as long as the count took.
const REUSES: u32 = 20;

/// The result of one attempt to count in slices.
enum Attempt {
    Counted(FilterStats),
    /// There was a change other than adding keys.
    Changed,
    /// The number of set bits does not determine the stats.
    NotBits,
}

impl Entry {
    /// The numbers of the filter, with a count of its cells. The count may miss keys added in the meantime.
    pub fn count_stats(&self) -> Arc<FilterStats> {
        if self.nbytes() < SMALL {
            let filter = self.read();
            return Arc::new(FilterStats::with_count(filter.as_ref(), filter.cell_stats()));
        }
        let asked = Instant::now();
        let last = &self.large().last_count;
        let mut known = last.try_lock().unwrap_or_else(|| aside(|| last.lock()));
        let lsn = self.lsn.load(Ordering::Acquire);
        if let Some(known) = known.as_ref().filter(|known| known.begun >= asked || known.is_of(lsn)) {
            return known.value.clone();
        }
        known.insert(Known::of(&self.lsn, || Arc::new(self.count_cells()))).value.clone()
    }

    /// The numbers of the filter, without a count of its cells if it is large.
    pub fn stats(&self) -> FilterStats {
        let fpr = (self.nbytes() >= SMALL).then(|| self.fpr_of_large());
        let filter = self.peek();
        FilterStats::without_count(filter.as_ref(), fpr.unwrap_or_else(|| filter.fpr()))
    }

    /// True if it holds more keys than it was sized for, so that its rate exceeds the requested one.
    pub fn is_over_capacity(&self) -> bool {
        if let Some(is_over) = self.try_is_over_capacity() {
            return is_over;
        }
        let may_be = {
            let filter = self.read();
            filter.num_added() > filter.capacity()
        };
        may_be && self.stats().is_over_capacity()
    }

    /// [`Entry::is_over_capacity`]; `None` if the filter is being changed, or if its rate is yet to be computed.
    pub fn try_is_over_capacity(&self) -> Option<bool> {
        let filter = self.try_read()?;
        if filter.num_added() <= filter.capacity() {
            return Some(false);
        }
        if self.nbytes() < SMALL {
            return Some(filter.is_over_capacity());
        }
        let fpr = self.large().last_fpr.try_lock()?.as_ref().filter(|known| self.is_usable(known))?.value;
        Some(fpr > filter.target_fpr())
    }

    fn is_usable(&self, fpr: &Known<f64>) -> bool {
        let is_recent = fpr.ended.elapsed() < (fpr.ended - fpr.begun) * REUSES;
        is_recent || fpr.is_of(self.lsn.load(Ordering::Acquire))
    }

    /// The rate of a large filter, by the number of its keys or by the last count.
    fn fpr_of_large(&self) -> f64 {
        let last = &self.large().last_fpr;
        let mut known = last.try_lock().unwrap_or_else(|| aside(|| last.lock()));
        if let Some(known) = known.as_ref().filter(|known| self.is_usable(known)) {
            return known.value;
        }
        let by_keys = || self.peek().fpr_by_count();
        let by_bits = || self.count_in_slices().map(|stats| stats.fpr);
        // Without a pause for changes, unlike other work over a whole filter: it is rare enough by itself.
        let found = Known::of(&self.lsn, || by_keys().or_else(by_bits).unwrap_or_else(|| self.peek().fpr()));
        known.insert(found).value
    }

    fn count_cells(&self) -> FilterStats {
        let at_once = || self.with_whole(|filter| FilterStats::with_count(filter, filter.cell_stats()));
        self.count_in_slices().unwrap_or_else(at_once)
    }

    /// `None` for a filter that cannot be counted in slices, or that is changed too often.
    fn count_in_slices(&self) -> Option<FilterStats> {
        for _ in 0..TRIES {
            match self.try_count_slices() {
                Attempt::Counted(stats) => return Some(stats),
                Attempt::Changed => {}
                Attempt::NotBits => return None,
            }
        }
        None
    }

    fn try_count_slices(&self) -> Attempt {
        let (rewrites, lengths) = {
            let filter = self.peek();
            let lengths: Vec<usize> = filter.container().sections.iter().map(|section| section.bytes.len()).collect();
            if filter.stats_of_bits(&vec![0; lengths.len()]).is_none() {
                return Attempt::NotBits;
            }
            (self.journals.rewrites(), lengths)
        };
        let mut set = vec![0; lengths.len()];
        for (at, &length) in lengths.iter().enumerate() {
            for start in (0..length).step_by(SLICE) {
                let (begun, lsn, filter) = (Instant::now(), self.lsn.load(Ordering::Acquire), self.read());
                let container = filter.container();
                let slice = start..length.min(start + SLICE);
                let bytes = container.sections.get(at).and_then(|section| section.bytes.get(slice));
                let (Some(bytes), true) = (bytes, self.journals.rewrites() == rewrites) else {
                    return Attempt::Changed;
                };
                set[at] += count_ones(bytes);
                drop(container);
                drop(filter);
                // Otherwise the system may suspend this thread in the middle of a slice, while changes wait.
                if self.lsn.load(Ordering::Acquire) != lsn {
                    aside(|| std::thread::sleep(begun.elapsed().min(LONGEST_PAUSE)));
                }
            }
        }
        let filter = self.read();
        let sections = filter.container().sections;
        let is_same = sections.iter().map(|section| section.bytes.len()).eq(lengths);
        match filter.stats_of_bits(&set) {
            Some(stats) if is_same && self.journals.rewrites() == rewrites => {
                Attempt::Counted(FilterStats::with_count(filter.as_ref(), stats))
            }
            _ => Attempt::Changed,
        }
    }
}

fn count_ones(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks();
    let of_words: u64 = words.iter().map(|&word| u64::from(u64::from_ne_bytes(word).count_ones())).sum();
    of_words + rest.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>()
}
