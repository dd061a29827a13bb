//! Long batches work in slices: between two slices the thread attaches, other threads may run, and signals are checked.

use std::ops::Range;
use std::time::{Duration, Instant};

use fullbloom_core::Result;
use fullbloom_core::cells::allocation::reserve;
use pyo3::prelude::*;

use crate::errors::OrRaise;
use crate::locking::biased_lock::{BiasedLock, Session};

/// Shortest slice: attaching takes 0.1 us while nobody else computes.
const LEAST: Duration = Duration::from_millis(5);
/// If other threads compute, attaching takes up to the interpreter's switch interval of 5 ms; slices are then longer, so
/// that a batch waits for a tenth of its time at most.
const WORK_TO_WAIT: u32 = 10;

/// Python objects that are read or created while attached, before other threads may run: 256 KiB of hashes, 1 to 2 ms of
/// work.
pub(crate) const OBJECTS_PER_SLICE: usize = 1 << 15;

/// Rows of a column that are read while attached: 0.05 ms.
const FEW: usize = 1 << 15;

/// Runs `work` over `rows` rows of a column: detached, unless they are few.
pub(crate) fn detach_if_long<R: Send>(py: Python<'_>, rows: usize, work: impl FnOnce() -> R + Send) -> R {
    if rows < FEW { work() } else { py.detach(work) }
}

/// The first row of `0..len` that `find` returns, a part of the rows at a time. Many rows are searched detached, and
/// signals are checked, because `len` is only what a producer states.
pub(crate) fn find_first(
    py: Python<'_>,
    len: usize,
    find: impl Fn(Range<usize>) -> Option<usize> + Send + Sync,
) -> PyResult<Option<usize>> {
    find_first_wide(py, len, 1, find)
}

/// [`find_first`] for rows of `parts` parts each, all of which are read.
pub(crate) fn find_first_wide(
    py: Python<'_>,
    len: usize,
    parts: usize,
    find: impl Fn(Range<usize>) -> Option<usize> + Send + Sync,
) -> PyResult<Option<usize>> {
    let few = FEW.div_ceil(parts.max(1));
    if len < few {
        return Ok(find(0..len));
    }
    let mut found = None;
    run_detached(py, len, |start| {
        let end = len.min(start + few);
        found = find(start..end);
        if found.is_some() { len } else { end }
    })?;
    Ok(found)
}

/// Between two pieces of work on objects: lets other threads run and checks for signals.
pub(crate) fn yield_to_others(py: Python<'_>) -> PyResult<()> {
    py.detach(|| ());
    py.check_signals()
}

/// Adds `value`, which was read from a Python object, to `values`; other threads may run now and then.
///
/// A long vector grows detached: moving 16 MB took 10 ms.
pub(crate) fn push<T: Send>(py: Python<'_>, values: &mut Vec<T>, value: T) -> PyResult<()> {
    if values.len() == values.capacity() {
        detach_if_long(py, values.len(), || reserve(values, 1)).or_raise(py)?;
    }
    values.push(value);
    if values.len().is_multiple_of(OBJECTS_PER_SLICE) { yield_to_others(py) } else { Ok(()) }
}

/// The slices of one batch.
struct Slices {
    end: Instant,
}

impl Slices {
    fn new() -> Self {
        Slices { end: Instant::now() + LEAST }
    }

    /// Steps from `at` on, at least one, until the slice ends; returns where it ended, and when.
    fn run(&self, mut at: usize, len: usize, mut step: impl FnMut(usize) -> Result<usize>) -> Result<(usize, Instant)> {
        loop {
            at = step(at)?;
            let now = Instant::now();
            if at >= len || now >= self.end {
                return Ok((at, now));
            }
        }
    }

    /// Checks for signals; their exceptions end the batch. `worked` is when the last slice ended.
    fn pause(&mut self, py: Python<'_>, worked: Instant) -> PyResult<()> {
        let now = Instant::now();
        py.check_signals()?;
        self.end = Instant::now() + LEAST.max((now - worked) * WORK_TO_WAIT);
        Ok(())
    }
}

/// Steps through `0..len` detached: `step` takes where to begin and returns where it ended.
pub(crate) fn run_detached(py: Python<'_>, len: usize, mut step: impl FnMut(usize) -> usize + Send) -> PyResult<()> {
    let (mut slices, mut at) = (Slices::new(), 0);
    while at < len {
        let slice = py.detach(|| slices.run(at, len, |at| Ok(step(at))));
        let worked;
        (at, worked) = slice.or_raise(py)?;
        if at < len {
            slices.pause(py, worked)?;
        }
    }
    Ok(())
}

/// [`run_detached`] with sessions of `lock`, which end with each slice: a signal handler finds the filter unlocked.
///
/// Work done before an error or a signal is kept.
pub(crate) fn run_locked<T: Send + Sync>(
    lock: &BiasedLock<T>,
    py: Python<'_>,
    len: usize,
    mut step: impl FnMut(&Session<'_, T>, usize) -> Result<usize> + Send,
) -> PyResult<()> {
    run_locked_any(lock, py, len, &mut step)
}

/// [`run_locked`], compiled once per structure and not once per operation: the call costs nothing compared with a step.
#[inline(never)]
fn run_locked_any<T: Send + Sync>(
    lock: &BiasedLock<T>,
    py: Python<'_>,
    len: usize,
    step: &mut (dyn FnMut(&Session<'_, T>, usize) -> Result<usize> + Send),
) -> PyResult<()> {
    let (mut slices, mut at) = (Slices::new(), 0);
    while at < len {
        let slice = lock.detach(py, |session| slices.run(at, len, |at| step(&session, at)));
        let worked;
        (at, worked) = slice.or_raise(py)?;
        if at < len {
            slices.pause(py, worked)?;
        }
    }
    Ok(())
}
