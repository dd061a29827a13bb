//! The three batch operations: check, add, hash.

use bloomery_core::batch::{self, Part};
use bloomery_core::filter::{Addable, Filter, HashSource};
use pyo3::prelude::*;

use crate::errors::{OrRaise, warn_overfull};
use crate::gate::Gate;
use crate::keys::batch::Operation;

/// Keys a batch keeps a filter for itself: 1 to 3 ms, the longest an attached visitor waits.
const HELD: usize = 1 << 17;
/// With several threads more, so that starting them is 1 % of the work.
const HELD_THREADED: usize = 1 << 22;

fn held(threads: usize) -> usize {
    if threads > 1 { HELD_THREADED } else { HELD }
}

/// A filter that knows when it is past its capacity.
pub(crate) trait Counted: Addable {
    /// (keys, capacity) for the warning.
    fn load(&self) -> (u64, u64);
    /// True when one more key is neither refused nor worth a warning.
    fn is_roomy(&self) -> bool;
}

/// Checking.
pub(crate) struct Check<'a, F> {
    pub(crate) gate: &'a Gate<F>,
    pub(crate) threads: usize,
}

impl<F: Filter> Operation for Check<'_, F> {
    type Out = u8;
    const SKIPS_NULLS: bool = false;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, out: Option<&mut [u8]>) -> PyResult<()> {
        let Some(out) = out else { return Ok(()) };
        let held = held(self.threads);
        self.gate.detach(py, |session| {
            for (i, out) in out.chunks_mut(held).enumerate() {
                session.read(|filter| batch::contains_threads(filter, source, i * held, out, self.threads));
            }
        });
        Ok(())
    }
}

/// Adding.
pub(crate) struct Add<'a, F> {
    pub(crate) gate: &'a Gate<F>,
    pub(crate) threads: usize,
}

impl<F: Counted> Operation for Add<'_, F> {
    type Out = u8;
    const SKIPS_NULLS: bool = true;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, mut out: Option<&mut [u8]>) -> PyResult<()> {
        let held = held(self.threads);
        let overfull = self.gate.detach(py, |session| {
            let mut overfull = None;
            let mut start = 0;
            while start < source.len() {
                let part = Part { source, start, len: held.min(source.len() - start) };
                let new = out.as_deref_mut().map(|out| &mut out[start..start + part.len]);
                session.write(|filter| {
                    let added = filter.add_source(&part, self.threads, new);
                    if filter.newly_overfull() {
                        overfull = Some(filter.load());
                    }
                    added
                })?;
                start += part.len;
            }
            Ok(overfull)
        });
        if let Some((count, capacity)) = overfull.or_raise(py)? {
            warn_overfull(py, count, capacity)?;
        }
        Ok(())
    }
}

/// Hashing.
pub(crate) struct Hash;

impl Operation for Hash {
    type Out = u64;
    const SKIPS_NULLS: bool = false;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, out: Option<&mut [u64]>) -> PyResult<()> {
        let Some(out) = out else { return Ok(()) };
        py.detach(|| source.fill(0, out));
        Ok(())
    }
}
