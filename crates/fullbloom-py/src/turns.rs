//! Long batches work in turns: between two of them they are attached, and signals are looked for.

use std::ops::Range;
use std::time::{Duration, Instant};

use fullbloom_core::Result;
use fullbloom_core::cells::allocation::reserve;
use pyo3::prelude::*;

use crate::biased_lock::{BiasedLock, Session};
use crate::errors::OrRaise;

/// The least that a turn lasts: attaching takes 0.1 us while nobody else computes.
const LEAST: Duration = Duration::from_millis(5);
/// Where others do, attaching takes up to the interpreter's switch interval of 5 ms; turns are then longer, so that a
/// batch waits for a tenth of its time at most.
const WORK_TO_WAIT: u32 = 10;

/// Python objects that are read or created while attached, before other threads get their turn: 256 KiB of hashes, 1 to
/// 2 ms of work.
pub(crate) const OBJECTS_A_TURN: usize = 1 << 15;

/// Rows of a column that are looked at attached: 0.05 ms.
const FEW: usize = 1 << 15;

/// Runs `work` over so many rows of a column: detached, unless they are few.
pub(crate) fn over<R: Send>(py: Python<'_>, rows: usize, work: impl FnOnce() -> R + Send) -> R {
    if rows < FEW { work() } else { py.detach(work) }
}

/// The first row of `0..len` that `find` finds, a part of the rows at a time: detached where they are many, and with a
/// look for signals now and then, for a length is what somebody says.
pub(crate) fn first(
    py: Python<'_>,
    len: usize,
    find: impl Fn(Range<usize>) -> Option<usize> + Send + Sync,
) -> PyResult<Option<usize>> {
    first_of_wide(py, len, 1, find)
}

/// [`first`] of rows of so many parts each, which all are looked at.
pub(crate) fn first_of_wide(
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
    detached(py, len, |start| {
        let end = len.min(start + few);
        found = find(start..end);
        if found.is_some() { len } else { end }
    })?;
    Ok(found)
}

/// Between two pieces of work on objects: others may have the interpreter, and signals are looked for.
pub(crate) fn breathe(py: Python<'_>) -> PyResult<()> {
    py.detach(|| ());
    py.check_signals()
}

/// Adds `value`, which was read from a Python object, to `values`; others have their turn now and then.
///
/// A long vector grows detached: moving 16 MB took 10 ms.
pub(crate) fn push<T: Send>(py: Python<'_>, values: &mut Vec<T>, value: T) -> PyResult<()> {
    if values.len() == values.capacity() {
        over(py, values.len(), || reserve(values, 1)).or_raise(py)?;
    }
    values.push(value);
    if values.len().is_multiple_of(OBJECTS_A_TURN) { breathe(py) } else { Ok(()) }
}

/// The turns of one batch.
struct Turns {
    end: Instant,
}

impl Turns {
    fn new() -> Self {
        Turns { end: Instant::now() + LEAST }
    }

    /// Steps from `at` on, at least one, until the turn ends; where it ended, and when.
    fn take(
        &self,
        mut at: usize,
        len: usize,
        mut step: impl FnMut(usize) -> Result<usize>,
    ) -> Result<(usize, Instant)> {
        loop {
            at = step(at)?;
            let now = Instant::now();
            if at >= len || now >= self.end {
                return Ok((at, now));
            }
        }
    }

    /// Looks for signals; their exceptions end the batch. `worked` is when the last turn ended.
    fn pause(&mut self, py: Python<'_>, worked: Instant) -> PyResult<()> {
        let now = Instant::now();
        py.check_signals()?;
        self.end = Instant::now() + LEAST.max((now - worked) * WORK_TO_WAIT);
        Ok(())
    }
}

/// Steps through `0..len` detached: `step` is told where to begin and tells where it ended.
pub(crate) fn detached(py: Python<'_>, len: usize, mut step: impl FnMut(usize) -> usize + Send) -> PyResult<()> {
    let (mut turns, mut at) = (Turns::new(), 0);
    while at < len {
        let taken = py.detach(|| turns.take(at, len, |at| Ok(step(at))));
        let worked;
        (at, worked) = taken.or_raise(py)?;
        if at < len {
            turns.pause(py, worked)?;
        }
    }
    Ok(())
}

/// [`detached`] with sessions of `lock`, which end with each turn: code that a signal runs finds the filter free.
///
/// What was done before an error or a signal stays done.
pub(crate) fn of<T: Send + Sync>(
    lock: &BiasedLock<T>,
    py: Python<'_>,
    len: usize,
    mut step: impl FnMut(&Session<'_, T>, usize) -> Result<usize> + Send,
) -> PyResult<()> {
    of_any(lock, py, len, &mut step)
}

/// [`of`], once for a structure and not for each of its operations: a call is nothing beside a step.
#[inline(never)]
fn of_any<T: Send + Sync>(
    lock: &BiasedLock<T>,
    py: Python<'_>,
    len: usize,
    step: &mut (dyn FnMut(&Session<'_, T>, usize) -> Result<usize> + Send),
) -> PyResult<()> {
    let (mut turns, mut at) = (Turns::new(), 0);
    while at < len {
        let taken = lock.detach(py, |session| turns.take(at, len, |at| step(&session, at)));
        let worked;
        (at, worked) = taken.or_raise(py)?;
        if at < len {
            turns.pause(py, worked)?;
        }
    }
    Ok(())
}
