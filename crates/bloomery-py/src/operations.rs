//! The batch operations: check, add, remove, ask, hash.

use bloomery_core::Result;
use bloomery_core::key::source::CHUNK;
use bloomery_core::structure::batch::{self, Part};
use bloomery_core::structure::{Addable, Filter, HashSource, Removable};
use pyo3::prelude::*;

use crate::answers::Answer;
use crate::biased_lock::{BiasedLock, Session};
use crate::errors::{OrRaise, warn_overfull};
use crate::keys::batch::Operation;

/// Keys a batch keeps a filter for itself: 1 to 3 ms, the longest an attached visitor waits.
const HELD: usize = 1 << 17;
/// With several threads more, some 50 ms, so that starting them is 1 % of the work.
const HELD_THREADED: usize = 1 << 24;

fn held(keys: usize, threads: usize) -> usize {
    let most = if threads > 1 { HELD_THREADED } else { HELD };
    // Equal parts: a short last one would start its threads for little.
    keys.div_ceil(keys.div_ceil(most).max(1)).max(1)
}

/// Checking.
pub(crate) struct Check<'a, F> {
    pub(crate) lock: &'a BiasedLock<F>,
    pub(crate) threads: usize,
}

impl<F: Filter> Operation for Check<'_, F> {
    type Out = u8;
    const SKIPS_NULLS: bool = false;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, out: Option<&mut [u8]>) -> PyResult<()> {
        let Some(out) = out else { return Ok(()) };
        let held = held(out.len(), self.threads);
        self.lock.detach(py, |session| {
            for (i, out) in out.chunks_mut(held).enumerate() {
                session.read(|filter| batch::contains_threads(filter, source, i * held, out, self.threads));
            }
        });
        Ok(())
    }
}

/// Adding.
pub(crate) struct Add<'a, F> {
    pub(crate) lock: &'a BiasedLock<F>,
    pub(crate) threads: usize,
}

impl<F: Addable> Operation for Add<'_, F> {
    type Out = u8;
    const SKIPS_NULLS: bool = true;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, mut out: Option<&mut [u8]>) -> PyResult<()> {
        let held = held(source.len(), self.threads);
        let overfull = self.lock.detach(py, |session| {
            let mut overfull = None;
            let mut start = 0;
            while start < source.len() {
                let part = Part { source, start, len: held.min(source.len() - start) };
                let new = out.as_deref_mut().map(|out| &mut out[start..start + part.len]);
                session.write(|filter| {
                    let added = filter.add_source(&part, self.threads, new);
                    if filter.newly_overfull() {
                        overfull = Some((filter.num_added(), filter.capacity()));
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

/// Gives `step` the filter and every chunk of hashes in turn, with its place; keeps the filter for `held` keys.
pub(crate) fn write_chunks<F>(
    session: &Session<'_, F>,
    source: &dyn HashSource,
    held: usize,
    mut step: impl FnMut(&mut F, usize, &[u64]) -> Result<()>,
) -> Result<()> {
    let mut hashes = [0u64; CHUNK];
    for first in (0..source.len()).step_by(held) {
        session.write(|filter| {
            for start in (first..source.len().min(first + held)).step_by(CHUNK) {
                let hashes = &mut hashes[..CHUNK.min(source.len() - start)];
                source.fill(start, hashes);
                step(filter, start, hashes)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Removing.
pub(crate) struct Remove<'a, F> {
    pub(crate) lock: &'a BiasedLock<F>,
}

impl<F: Removable> Operation for Remove<'_, F> {
    type Out = u8;
    const SKIPS_NULLS: bool = true;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, mut out: Option<&mut [u8]>) -> PyResult<()> {
        let removed = self.lock.detach(py, |session| {
            write_chunks(&session, source, HELD, |filter, start, hashes| {
                let removed = out.as_deref_mut().map(|out| &mut out[start..start + hashes.len()]);
                filter.remove_hashes(hashes, removed)
            })
        });
        removed.or_raise(py)
    }
}

/// One answer a hash; the slices are equally long.
type Question<'a, F, T> = dyn Fn(&F, &[u64], &mut [T]) + Sync + 'a;

/// Asking for something of each key, such as its count.
pub(crate) struct Ask<'a, F, T> {
    pub(crate) lock: &'a BiasedLock<F>,
    pub(crate) ask: &'a Question<'a, F, T>,
}

impl<F: Send + Sync, T: Answer> Operation for Ask<'_, F, T> {
    type Out = T;
    const SKIPS_NULLS: bool = false;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, out: Option<&mut [T]>) -> PyResult<()> {
        let Some(out) = out else { return Ok(()) };
        self.lock.detach(py, |session| {
            let mut hashes = [0u64; CHUNK];
            for (i, out) in out.chunks_mut(CHUNK).enumerate() {
                let hashes = &mut hashes[..out.len()];
                source.fill(i * CHUNK, hashes);
                session.read(|filter| (self.ask)(filter, hashes, out));
            }
        });
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
