//! The batch operations: check, add, remove, ask, hash.

use std::cell::Cell;

use fullbloom_core::Result;
use fullbloom_core::key::source::CHUNK;
use fullbloom_core::structure::batch::{self, Part};
use fullbloom_core::structure::{Addable, Filter, HashSource, Removable};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;

use crate::answers::Answer;
use crate::biased_lock::BiasedLock;
use crate::classes::shared::warn_overfull;
use crate::domains::expect_all;
use crate::keys::batch::Operation;
use crate::turns;

/// Keys a batch keeps a filter for itself: 1 to 3 ms, the longest an attached visitor waits.
const HELD: usize = 1 << 17;
/// With several threads more, 10 to 100 ms, so that starting them is 1 % of the work.
const HELD_THREADED: usize = 1 << 22;

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
        expect_all(py, self.lock, source)?;
        let held = held(out.len(), self.threads);
        turns::of(self.lock, py, out.len(), |session, start| {
            let end = out.len().min(start + held);
            let out = &mut out[start..end];
            session.read(|filter| batch::contains_threads(filter, source, start, out, self.threads));
            Ok(end)
        })
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
        let threads = if F::ADDS_ON_THREADS { self.threads } else { 1 };
        let held = held(source.len(), threads);
        let mut overfull = false;
        let added = turns::of(self.lock, py, source.len(), |session, start| {
            let part = Part { source, start, len: held.min(source.len() - start) };
            let new = out.as_deref_mut().map(|out| &mut out[start..start + part.len]);
            session.write(|filter| {
                let added = filter.add_source(&part, threads, new);
                let added = filter.recorded(part.domains(), added);
                overfull |= filter.newly_overfull();
                added
            })?;
            Ok(start + part.len)
        });
        added?;
        if overfull { warn_overfull(py, self.lock, None) } else { Ok(()) }
    }
}

/// Gives `step` the filter and every chunk of hashes in turn, with its place; keeps the filter for `held` keys.
pub(crate) fn write_chunks<F: Send + Sync>(
    lock: &BiasedLock<F>,
    py: Python<'_>,
    source: &dyn HashSource,
    held: usize,
    mut step: impl FnMut(&mut F, usize, &[u64]) -> Result<()> + Send,
) -> PyResult<()> {
    let mut hashes = [0u64; CHUNK];
    turns::of(lock, py, source.len(), |session, first| {
        let end = source.len().min(first + held);
        session.write(|filter| {
            for start in (first..end).step_by(CHUNK) {
                let hashes = &mut hashes[..CHUNK.min(end - start)];
                source.fill(start, hashes);
                step(filter, start, hashes)?;
            }
            Ok(())
        })?;
        Ok(end)
    })
}

/// Removing.
pub(crate) struct Remove<'a, F> {
    pub(crate) lock: &'a BiasedLock<F>,
}

impl<F: Removable> Operation for Remove<'_, F> {
    type Out = u8;
    const SKIPS_NULLS: bool = true;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, mut out: Option<&mut [u8]>) -> PyResult<()> {
        expect_all(py, self.lock, source)?;
        write_chunks(self.lock, py, source, HELD, |filter, start, hashes| {
            let removed = out.as_deref_mut().map(|out| &mut out[start..start + hashes.len()]);
            filter.remove_hashes(hashes, removed)
        })
    }
}

/// Removing up to the first key that is not there.
pub(crate) struct RemoveEach<'a, F> {
    pub(crate) lock: &'a BiasedLock<F>,
    /// Keys removed so far.
    pub(crate) done: Cell<usize>,
}

impl<'a, F> RemoveEach<'a, F> {
    pub(crate) fn of(lock: &'a BiasedLock<F>) -> Self {
        RemoveEach { lock, done: Cell::new(0) }
    }
}

impl<F: Removable> Operation for RemoveEach<'_, F> {
    type Out = u8;
    const SKIPS_NULLS: bool = true;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, _: Option<&mut [u8]>) -> PyResult<()> {
        expect_all(py, self.lock, source)?;
        let mut missing = None;
        let mut found = [0u8; CHUNK];
        write_chunks(self.lock, py, source, HELD, |filter, start, hashes| {
            if missing.is_some() {
                return Ok(());
            }
            // Has the cells of all of them in the cache.
            filter.contains_hashes(hashes, &mut found[..hashes.len()]);
            for (i, &hash) in hashes.iter().enumerate() {
                if !filter.remove_hash(hash)? {
                    missing = Some(start + i);
                    break;
                }
            }
            Ok(())
        })?;
        let before = self.done.replace(self.done.get() + source.len());
        missing.map_or(Ok(()), |at| {
            let at = before + at;
            Err(PyKeyError::new_err(format!(
                "key number {at} of the batch (from 0, nulls left out) is not there or cannot be taken out; those before \
                 it are removed; discard_many() tells which are"
            )))
        })
    }
}

/// One answer a hash; the slices are equally long.
type Question<'a, F, T> = dyn Fn(&F, &[u64], &mut [T]) + Sync + 'a;

/// Asking for something of each key, such as its count.
pub(crate) struct Ask<'a, F, T> {
    pub(crate) lock: &'a BiasedLock<F>,
    pub(crate) ask: &'a Question<'a, F, T>,
}

impl<F: Filter, T: Answer> Operation for Ask<'_, F, T> {
    type Out = T;
    const SKIPS_NULLS: bool = false;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, out: Option<&mut [T]>) -> PyResult<()> {
        let Some(out) = out else { return Ok(()) };
        expect_all(py, self.lock, source)?;
        let mut hashes = [0u64; CHUNK];
        turns::of(self.lock, py, out.len(), |session, start| {
            let end = out.len().min(start + CHUNK);
            let hashes = &mut hashes[..end - start];
            source.fill(start, hashes);
            session.read(|filter| (self.ask)(filter, hashes, &mut out[start..end]));
            Ok(end)
        })
    }
}

/// [`Ask`] on several threads.
pub(crate) struct AskOnThreads<'a, F, T> {
    pub(crate) lock: &'a BiasedLock<F>,
    pub(crate) ask: &'a Question<'a, F, T>,
    pub(crate) threads: usize,
}

impl<F: Filter, T: Answer> Operation for AskOnThreads<'_, F, T> {
    type Out = T;
    const SKIPS_NULLS: bool = false;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, out: Option<&mut [T]>) -> PyResult<()> {
        let Some(out) = out else { return Ok(()) };
        expect_all(py, self.lock, source)?;
        let held = held(out.len(), self.threads);
        turns::of(self.lock, py, out.len(), |session, start| {
            let end = out.len().min(start + held);
            let out = &mut out[start..end];
            session.read(|filter| {
                let ask = |hashes: &[u64], out: &mut [T]| (self.ask)(filter, hashes, out);
                batch::ask_threads(source, start, out, self.threads, &ask);
            });
            Ok(end)
        })
    }
}

/// Hashing.
pub(crate) struct Hash;

impl Operation for Hash {
    type Out = u64;
    const SKIPS_NULLS: bool = false;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, out: Option<&mut [u64]>) -> PyResult<()> {
        let Some(out) = out else { return Ok(()) };
        turns::detached(py, out.len(), |start| {
            let end = out.len().min(start + HELD);
            source.fill(start, &mut out[start..end]);
            end
        })
    }
}
