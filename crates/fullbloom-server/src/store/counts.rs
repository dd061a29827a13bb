//! Counts of a filter's cells. Those of a large filter are counted in slices.
//!
//! Each slice is counted under the filter's lock, which is fair, so a change waits for one slice at most. Each cell is
//! counted as it is at some moment between the start and the end of the count. In kinds in which adding only sets cells
//! and nothing is removed in the meantime, the counts therefore lie between the true ones at the start and at the end,
//! and so do the fill, the rate and the estimate that follow from them. In all kinds, they differ from the true ones at
//! the end by at most the cells that changed in the meantime. A change of the whole filter, such as clearing it, starts
//! the count over, and so do growth and the expiry of keys. Kinds that cannot be counted in slices are counted at
//! once, under the lock.
//!
//! A count of a filter that does not change is kept until the next change. The rate without a count comes from the
//! number of keys if there is a law for it; otherwise a count is used until twenty times its duration have passed.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use fullbloom_core::structure::CellCounts;

use super::Entry;
use super::entry::SMALL;
use super::stats::{Cached, FilterStats};
use crate::blocking::run_blocking;
use crate::kind::Kind;

/// The words counted while changes wait: 0.01 ms of work for bits, 0.3 ms for cells that straddle words.
const SLICE: usize = if cfg!(test) { 512 } else { 16 << 10 };
/// The longest pause between two slices of a filter that changes; otherwise it lasts as long as the slice took.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);
/// The number of attempts before the cells are counted at once.
const TRIES: usize = 3;
/// A rate that took a count is used for this many times as long as the count took.
const REUSES: u32 = 20;

/// The result of one attempt to count in slices.
enum Attempt {
    Counted(FilterStats),
    /// There was a change other than of single keys.
    Changed,
    /// The cells can only be counted at once.
    AtOnce,
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
        let mut known = last.try_lock().unwrap_or_else(|| run_blocking(|| last.lock()));
        let lsn = self.lsn.load(Ordering::Acquire);
        if let Some(known) = known.as_ref().filter(|known| known.begun >= asked || known.is_of(lsn)) {
            return known.value.clone();
        }
        known.insert(Cached::of(&self.lsn, || Arc::new(self.count_cells()))).value.clone()
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

    pub(super) fn is_usable(&self, fpr: &Cached<f64>) -> bool {
        let is_recent = fpr.ended.elapsed() < (fpr.ended - fpr.begun) * REUSES;
        is_recent || fpr.is_of(self.lsn.load(Ordering::Acquire))
    }

    /// The rate of a large filter, by the number of its keys or by the last count.
    fn fpr_of_large(&self) -> f64 {
        let last = &self.large().last_fpr;
        let mut known = last.try_lock().unwrap_or_else(|| run_blocking(|| last.lock()));
        if let Some(known) = known.as_ref().filter(|known| self.is_usable(known)) {
            return known.value;
        }
        let by_keys = || self.peek().fpr_by_count();
        let by_cells = || self.count_in_slices().map(|stats| stats.fpr);
        // Without a pause for changes, unlike other work over a whole filter: it is rare enough by itself.
        let found = Cached::of(&self.lsn, || by_keys().or_else(by_cells).unwrap_or_else(|| self.peek().fpr()));
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
                Attempt::AtOnce => return None,
            }
        }
        None
    }

    fn try_count_slices(&self) -> Attempt {
        let (state, slices) = {
            let filter = self.peek();
            let Some(steps) = filter.count_steps() else { return Attempt::AtOnce };
            let lengths = filter.container().sections.into_iter().map(|section| section.bytes.len().div_ceil(8));
            let sections = lengths.zip(steps).enumerate().filter(|(_, (_, step))| *step > 0);
            let slices: Vec<_> = sections.flat_map(|(at, (words, step))| slices_of(at, words, step)).collect();
            (self.state_of(filter.as_ref()), slices)
        };
        let mut counts = CellCounts::default();
        for (section, words) in slices {
            let (begun, lsn, filter) = (Instant::now(), self.lsn.load(Ordering::Acquire), self.read());
            if self.state_of(filter.as_ref()) != state {
                return Attempt::Changed;
            }
            filter.count_words(section, words, &mut counts);
            drop(filter);
            // Otherwise the system may suspend this thread in the middle of a slice, while changes wait.
            if self.lsn.load(Ordering::Acquire) != lsn {
                run_blocking(|| std::thread::sleep(begun.elapsed().min(LONGEST_PAUSE)));
            }
        }
        let filter = self.read();
        if self.state_of(filter.as_ref()) != state {
            return Attempt::Changed;
        }
        Attempt::Counted(FilterStats::with_count(filter.as_ref(), filter.stats_of(&counts)))
    }

    /// Differs after a change other than of single keys.
    fn state_of(&self, filter: &dyn Kind) -> (u64, u64) {
        (self.journals.rewrites(), filter.epoch())
    }
}

/// The slices of a section, and its number.
fn slices_of(section: usize, words: usize, step: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
    let slice = step * (SLICE / step).max(1);
    (0..words).step_by(slice).map(move |start| (section, start..words.min(start + slice)))
}
