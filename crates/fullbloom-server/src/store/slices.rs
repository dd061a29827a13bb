//! Copies a filter in slices, between which keys are added and removed.
//!
//! Each slice is copied under the filter's lock. The lock is fair, so a change waits for one slice at most. Words that
//! keys wrote in the meantime are copied again, the last few together with the filter's numbers. The copy therefore
//! equals the filter at that moment, cell by cell and number by number, and names the log record of that moment. Kinds
//! in which adding moves other keys, and filters with other changes in the meantime, are copied at once under the lock,
//! into memory that the system has supplied before: supplying 240 MB may take it a second, copying them 50 ms.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use fullbloom_core::structure::parts::Parts;

use super::entry::SMALL;
use super::journal::{JournalGuard, MOST, Runs};
use super::{Entry, Snapshot};
use crate::blocking::run_blocking;
use crate::budget::Budget;
use crate::fault::Result;
use crate::kind::Kind;

/// The bytes copied while changes wait: 0.1 ms of work.
const SLICE: usize = if cfg!(test) { 4 << 10 } else { 256 << 10 };
/// The words of keys whose cells are copied again while changes wait.
const AGAIN: usize = 256;
/// The most rounds to catch up with added keys; the rest is copied while changes wait.
const ROUNDS: usize = 10_000;
/// The longest pause between two slices of a filter that changes; otherwise it lasts as long as the slice took. Without
/// pauses, the system sometimes suspends the copying thread while it holds the lock.
const LONGEST_PAUSE: Duration = Duration::from_millis(2);
/// The number of attempts before the filter is copied at once.
const TRIES: usize = 3;

/// A copy of a filter at one moment. The journal has the keys added since then.
pub(super) struct FilterCopy<'a> {
    pub(super) filter: Box<dyn Kind>,
    /// The number of the last record that it includes.
    pub(super) lsn: u64,
    /// The moment of the copy.
    pub(super) taken_at: Instant,
    pub(super) journal: JournalGuard<'a>,
}

/// Words of keys whose cells must be copied again, from `done` on.
#[derive(Default)]
struct DirtyWords {
    words: Vec<u64>,
    done: usize,
}

impl DirtyWords {
    fn extend(&mut self, runs: &Runs) {
        self.words.drain(..std::mem::take(&mut self.done));
        self.words.extend_from_slice(runs.words());
    }

    fn len(&self) -> usize {
        self.words.len() - self.done
    }

    /// Copies the cells of at most `most` words again.
    fn copy(&mut self, filter: &dyn Kind, parts: &mut Parts, most: usize) -> Result<()> {
        let next = self.words.len().min(self.done.saturating_add(most));
        let (container, mut copied) = (filter.container(), Ok(()));
        filter.visit_written_words(&self.words[self.done..next], &mut |section, word| {
            if copied.is_ok() {
                copied = parts.copy_word(&container, section, word);
            }
        });
        self.done = next;
        Ok(copied?)
    }
}

impl Entry {
    /// A copy of the filter at one moment after the call.
    pub fn snapshot(&self, budget: &Arc<Budget>) -> Result<Arc<Snapshot>> {
        if self.nbytes() < SMALL {
            let filter = self.read();
            return Snapshot::new(filter.as_ref(), self.lsn.load(Ordering::Acquire), budget);
        }
        let asked = Instant::now();
        let scan = &self.large().scan;
        let mut whole = scan.try_lock().unwrap_or_else(|| run_blocking(|| scan.lock()));
        let lsn = self.lsn.load(Ordering::Acquire);
        if let Some(known) = whole.copy.upgrade().filter(|copy| copy.lsn == lsn || copy.taken_at >= asked) {
            return Ok(known);
        }
        self.pause(&whole);
        let begun = Instant::now();
        let snapshot = self.copy(budget);
        whole.last = Some((Instant::now(), begun.elapsed(), self.lsn.load(Ordering::Acquire)));
        let snapshot = snapshot?;
        whole.copy = Arc::downgrade(&snapshot);
        Ok(snapshot)
    }

    fn copy(&self, budget: &Arc<Budget>) -> Result<Arc<Snapshot>> {
        let held = budget.take(self.nbytes())?;
        let copied = match self.copy_in_slices()? {
            Some(copied) => copied,
            None => self.copy_at_once(self.supplied_parts()?)?,
        };
        Ok(Snapshot::from_copy(copied.filter, copied.lsn, copied.taken_at, held))
    }

    /// A copy in its own memory, if `check` accepts the filter's version.
    pub fn duplicate(&self, check: impl Fn(u64) -> Result<()>) -> Result<Box<dyn Kind>> {
        let copied = self.copy_with_journal()?;
        check(copied.lsn).map(|()| copied.filter)
    }

    /// A copy of the filter at one moment after the call; `None` if it cannot be copied in slices. The caller charges
    /// its bytes to the budget.
    pub(super) fn copy_in_slices(&self) -> Result<Option<FilterCopy<'_>>> {
        if self.nbytes() < SMALL {
            return Ok(None);
        }
        for _ in 0..TRIES {
            let (journal, parts) = {
                let filter = self.read();
                if !filter.visit_written_words(&[], &mut |_, _| {}) {
                    return Ok(None);
                }
                (self.journals.begin(filter.epoch()), Parts::new(&filter.container())?)
            };
            if let Some(copied) = self.try_copy_slices(journal, parts)? {
                return Ok(Some(copied));
            }
        }
        Ok(None)
    }

    /// A copy in its own memory: in slices, or else at once. The caller charges its bytes to the budget.
    pub(super) fn copy_with_journal(&self) -> Result<FilterCopy<'_>> {
        if let Some(copied) = self.copy_in_slices()? {
            return Ok(copied);
        }
        if self.nbytes() < SMALL {
            return self.copy_at_once(None);
        }
        let parts = self.supplied_parts()?;
        let mut whole = self.lock_scan();
        let begun = Instant::now();
        let copied = self.copy_at_once(parts)?;
        whole.last = Some((Instant::now(), begun.elapsed(), self.lsn.load(Ordering::Acquire)));
        Ok(copied)
    }

    /// Memory for a copy, supplied by the system; `None` for a kind that is not copied so.
    fn supplied_parts(&self) -> Result<Option<Parts>> {
        let mut parts = {
            let filter = self.read();
            if !filter.takes_parts() {
                return Ok(None);
            }
            Parts::new(&filter.container())?
        };
        let end = parts.len();
        for start in (0..end).step_by(SLICE) {
            parts.supply(start..end.min(start + SLICE))?;
        }
        Ok(Some(parts))
    }

    /// A copy while changes wait; into `parts`, unless the filter's sections have changed.
    fn copy_at_once(&self, parts: Option<Parts>) -> Result<FilterCopy<'_>> {
        let _long = self.begin_task(&self.long_reads);
        let filter = self.read();
        let (journal, taken_at) = (self.journals.begin(filter.epoch()), Instant::now());
        let lsn = self.lsn.load(Ordering::Acquire);
        let into_parts = |mut parts: Parts| {
            let container = filter.container();
            let lengths = container.sections.iter().map(|section| section.bytes.len()).sum::<usize>();
            (parts.len() == lengths).then(|| {
                parts.copy(&container, 0..lengths)?;
                filter.with_parts(parts)
            })
        };
        let copied = match parts.and_then(into_parts) {
            Some(copied) => copied?,
            None => filter.duplicate()?,
        };
        Ok(FilterCopy { filter: copied, lsn, taken_at, journal })
    }

    /// `None` if there was a change other than of single keys.
    fn try_copy_slices<'a>(&'a self, journal: JournalGuard<'a>, mut parts: Parts) -> Result<Option<FilterCopy<'a>>> {
        let (mut at, end, mut late, mut rounds) = (0, parts.len(), DirtyWords::default(), 0);
        loop {
            let slice = at..end.min(at + SLICE);
            parts.supply(slice.clone())?;
            let (begun, filter) = (Instant::now(), self.read());
            let Some(runs) = journal.take() else { return Ok(None) };
            let is_changing = !runs.words().is_empty();
            late.extend(&runs);
            if late.len() > MOST {
                return Ok(None);
            }
            if slice.is_empty() && (late.len() <= AGAIN || rounds == ROUNDS) {
                late.copy(filter.as_ref(), &mut parts, usize::MAX)?;
                let (lsn, taken_at) = (self.lsn.load(Ordering::Acquire), Instant::now());
                let filter = filter.with_parts(parts)?;
                return Ok(Some(FilterCopy { filter, lsn, taken_at, journal }));
            }
            copy_slice(filter.as_ref(), &mut parts, slice.clone(), &mut late)?;
            drop(filter);
            if is_changing {
                run_blocking(|| std::thread::sleep(begun.elapsed().min(LONGEST_PAUSE)));
            }
            rounds += usize::from(slice.is_empty());
            at = slice.end;
        }
    }
}

/// The part that is copied while changes wait.
fn copy_slice(filter: &dyn Kind, parts: &mut Parts, slice: Range<usize>, late: &mut DirtyWords) -> Result<()> {
    parts.copy(&filter.container(), slice)?;
    late.copy(filter, parts, AGAIN)
}
