//! What batches do with hashes: check, add, remove, query, hash, collect, find.
//!
//! The readers of keys are compiled once per kind of result, not once per operation of each class: this saves 2 MB of code,
//! and costs one call per thousands of keys.
//!
//! * [`values`]: numbers that come with keys;
//! * [`warnings`]: keys of a type that was never added, and filters beyond their capacity.

use std::cell::{Cell, RefCell};

use fullbloom_core::Result;
use fullbloom_core::cells::allocation::reserve;
use fullbloom_core::key::source::CHUNK;
use fullbloom_core::structure::batch::{self, Part};
use fullbloom_core::structure::{Addable, Filter, HashSource, Removable};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;

use crate::errors::OrRaise;
use crate::keys::batch::Operation;
use crate::locking::biased_lock::BiasedLock;
use crate::locking::slices;
use crate::python_objects::answers::Answer;

use warnings::{expect_batch, warn_overfull};

pub(crate) mod values;
pub(crate) mod warnings;

/// Keys for which a batch keeps a filter locked: 1 to 3 ms, the longest an attached visitor waits.
const LOCKED: usize = 1 << 17;
/// With several threads more, 10 to 100 ms, so that starting them is 1 % of the work.
const LOCKED_THREADED: usize = 1 << 22;

/// How many of `keys` keys are processed per lock.
pub(crate) fn keys_per_lock(keys: usize, threads: usize) -> usize {
    let most = if threads > 1 { LOCKED_THREADED } else { LOCKED };
    // Equal parts: starting threads is not worth it for a short last one.
    keys.div_ceil(keys.div_ceil(most).max(1)).max(1)
}

/// Looks keys up.
pub(crate) struct Check<'a, F> {
    pub(crate) lock: &'a BiasedLock<F>,
    pub(crate) threads: usize,
}

impl<F: Filter> Operation for Check<'_, F> {
    type Out = u8;
    const SKIPS_NULLS: bool = false;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, out: Option<&mut [u8]>) -> PyResult<()> {
        read_parts(self.lock, py, source, out, self.threads, |filter, start, out| {
            batch::contains_threads(filter, source, start, out, self.threads);
        })
    }
}

/// Passes the filter, the position of a part of the keys and the place of its results to `read`; keeps the filter locked
/// for each part.
fn read_parts<F: Filter, T: Send>(
    lock: &BiasedLock<F>,
    py: Python<'_>,
    source: &dyn HashSource,
    out: Option<&mut [T]>,
    threads: usize,
    read: impl Fn(&F, usize, &mut [T]) + Sync,
) -> PyResult<()> {
    let Some(out) = out else { return Ok(()) };
    expect_batch(py, lock, source)?;
    let locked = keys_per_lock(out.len(), threads);
    slices::run_locked(lock, py, out.len(), |session, start| {
        let end = out.len().min(start + locked);
        let out = &mut out[start..end];
        session.read(|filter| read(filter, start, out));
        Ok(end)
    })
}

/// Adds keys.
pub(crate) struct Add<'a, F> {
    pub(crate) lock: &'a BiasedLock<F>,
    pub(crate) threads: usize,
}

impl<F: Addable> Operation for Add<'_, F> {
    type Out = u8;
    const SKIPS_NULLS: bool = true;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, mut out: Option<&mut [u8]>) -> PyResult<()> {
        let threads = if F::ADDS_ON_THREADS { self.threads } else { 1 };
        let locked = keys_per_lock(source.len(), threads);
        let mut overfull = false;
        let added = slices::run_locked(self.lock, py, source.len(), |session, start| {
            let part = Part { source, start, len: locked.min(source.len() - start) };
            let new = out.as_deref_mut().map(|out| &mut out[start..start + part.len]);
            session.write(|filter| {
                let added = filter.add_source(&part, threads, new);
                let added = filter.record_domains(part.domains(), added);
                overfull |= filter.newly_overfull();
                added
            })?;
            Ok(start + part.len)
        });
        added?;
        if overfull { warn_overfull(py, self.lock, None) } else { Ok(()) }
    }
}

/// Passes the filter and every chunk of hashes to `step`, with its position; keeps the filter locked for `locked` keys.
pub(crate) fn write_chunks<F: Send + Sync>(
    lock: &BiasedLock<F>,
    py: Python<'_>,
    source: &dyn HashSource,
    locked: usize,
    mut step: impl FnMut(&mut F, usize, &[u64]) -> Result<()> + Send,
) -> PyResult<()> {
    let mut hashes = [0u64; CHUNK];
    slices::run_locked(lock, py, source.len(), |session, first| {
        let end = source.len().min(first + locked);
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

/// Passes every chunk of hashes to `take`, detached, with the position of its first; an error ends it.
pub(crate) fn each_chunk(
    py: Python<'_>,
    source: &dyn HashSource,
    mut take: impl FnMut(usize, &[u64]) -> Result<()> + Send,
) -> PyResult<()> {
    let (mut hashes, mut failed) = ([0u64; CHUNK], None);
    slices::run_detached(py, source.len(), |start| {
        let hashes = &mut hashes[..CHUNK.min(source.len() - start)];
        source.fill(start, hashes);
        failed = take(start, hashes).err();
        if failed.is_some() { source.len() } else { start + hashes.len() }
    })?;
    failed.map_or(Ok(()), Err).or_raise(py)
}

/// Removes keys.
pub(crate) struct Remove<'a, F> {
    pub(crate) lock: &'a BiasedLock<F>,
}

impl<F: Removable> Operation for Remove<'_, F> {
    type Out = u8;
    const SKIPS_NULLS: bool = true;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, mut out: Option<&mut [u8]>) -> PyResult<()> {
        expect_batch(py, self.lock, source)?;
        write_chunks(self.lock, py, source, LOCKED, |filter, start, hashes| {
            let removed = out.as_deref_mut().map(|out| &mut out[start..start + hashes.len()]);
            filter.remove_hashes(hashes, removed)
        })
    }
}

/// Removes keys up to the first that is absent or cannot be removed.
pub(crate) struct RemoveEach<'a, F> {
    pub(crate) lock: &'a BiasedLock<F>,
    /// Keys removed so far.
    pub(crate) done: Cell<usize>,
}

impl<'a, F> RemoveEach<'a, F> {
    pub(crate) fn new(lock: &'a BiasedLock<F>) -> Self {
        RemoveEach { lock, done: Cell::new(0) }
    }
}

impl<F: Removable> Operation for RemoveEach<'_, F> {
    type Out = u8;
    const SKIPS_NULLS: bool = true;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, _: Option<&mut [u8]>) -> PyResult<()> {
        expect_batch(py, self.lock, source)?;
        let mut missing = None;
        let mut found = [0u8; CHUNK];
        write_chunks(self.lock, py, source, LOCKED, |filter, start, hashes| {
            if missing.is_some() {
                return Ok(());
            }
            // Brings the cells of all of them into the cache.
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
                "key number {at} of the batch (from 0, nulls left out) is absent or cannot be removed; those before it \
                 are removed; discard_many() reports which are"
            )))
        })
    }
}

/// One result per hash; the slices are equally long.
type Query<'a, F, T> = dyn Fn(&F, &[u64], &mut [T]) + Sync + 'a;

/// Queries a number for each key, such as its count.
pub(crate) struct Ask<'a, F, T> {
    pub(crate) lock: &'a BiasedLock<F>,
    pub(crate) ask: &'a Query<'a, F, T>,
}

impl<F: Filter, T: Answer> Operation for Ask<'_, F, T> {
    type Out = T;
    const SKIPS_NULLS: bool = false;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, out: Option<&mut [T]>) -> PyResult<()> {
        let Some(out) = out else { return Ok(()) };
        expect_batch(py, self.lock, source)?;
        let mut hashes = [0u64; CHUNK];
        slices::run_locked(self.lock, py, out.len(), |session, start| {
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
    pub(crate) ask: &'a Query<'a, F, T>,
    pub(crate) threads: usize,
}

impl<F: Filter, T: Answer> Operation for AskOnThreads<'_, F, T> {
    type Out = T;
    const SKIPS_NULLS: bool = false;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, out: Option<&mut [T]>) -> PyResult<()> {
        read_parts(self.lock, py, source, out, self.threads, |filter, start, out| {
            let ask = |hashes: &[u64], out: &mut [T]| (self.ask)(filter, hashes, out);
            batch::ask_threads(source, start, out, self.threads, &ask);
        })
    }
}

/// Returns the hashes.
pub(crate) struct Hash;

impl Operation for Hash {
    type Out = u64;
    const SKIPS_NULLS: bool = false;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, out: Option<&mut [u64]>) -> PyResult<()> {
        let Some(out) = out else { return Ok(()) };
        slices::run_detached(py, out.len(), |start| {
            let end = out.len().min(start + LOCKED);
            source.fill(start, &mut out[start..end]);
            end
        })
    }
}

/// Collects the hashes of a batch.
#[derive(Default)]
pub(crate) struct CollectHashes(RefCell<Vec<u64>>);

impl CollectHashes {
    /// The hashes, in the order of the keys.
    pub(crate) fn into_hashes(self) -> Vec<u64> {
        self.0.into_inner()
    }
}

impl Operation for CollectHashes {
    type Out = u8;
    const SKIPS_NULLS: bool = true;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, _: Option<&mut [u8]>) -> PyResult<()> {
        let mut all = self.0.borrow_mut();
        let first = all.len();
        reserve(&mut all, source.len()).or_raise(py)?;
        all.resize(first + source.len(), 0);
        Hash.run(py, source, Some(&mut all[first..]))
    }
}

/// Finds a hash in a batch: passes the number of each key that has it to `visit`, in order.
pub(crate) struct FindHash<F> {
    hash: u64,
    visit: RefCell<F>,
    /// Keys searched so far.
    done: Cell<usize>,
}

impl<F: FnMut(usize) + Send> FindHash<F> {
    /// Before the first key.
    pub(crate) fn new(hash: u64, visit: F) -> Self {
        FindHash { hash, visit: RefCell::new(visit), done: Cell::new(0) }
    }
}

impl<F: FnMut(usize) + Send> Operation for FindHash<F> {
    type Out = u8;
    const SKIPS_NULLS: bool = true;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, _: Option<&mut [u8]>) -> PyResult<()> {
        let (first, hash, mut visit) = (self.done.get(), self.hash, self.visit.borrow_mut());
        let visit = &mut *visit;
        each_chunk(py, source, |start, hashes| {
            let found = hashes.iter().enumerate().filter(|(_, other)| **other == hash);
            found.for_each(|(i, _)| visit(first + start + i));
            Ok(())
        })?;
        self.done.set(first + source.len());
        Ok(())
    }
}
