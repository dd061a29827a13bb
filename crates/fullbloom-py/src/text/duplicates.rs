//! Second passes: which records were true duplicates, and which are the last with their key.

use fullbloom_core::cells::allocation::{reserve, zeroed};
use fullbloom_core::structure::Filter;
use fullbloom_core::text::select::LastOccurrences as CoreLast;
use fullbloom_core::text::{self, CandidateDuplicates as Core, Tally};
use pyo3::prelude::*;

use super::records::{self, KeyedRecords};
use super::{create_part, lines, not_a_filter, step_through};
use crate::classes::with_filter;
use crate::errors::OrRaise;
use crate::locking::biased_lock::BiasedLock;
use crate::python_objects::bytes::read_bytes;

mod arguments {
    crate::parameters::readers!(dropped: "bool"; once: "bool";);
}

/// The exact second pass of `dedup --verify`: collects the lines that the filter reported as known, then separates true
/// duplicates from false positives.
#[pyclass(frozen, module = "fullbloom._core")]
pub(crate) struct CandidateDuplicates {
    lock: BiasedLock<Core>,
}

#[pymethods]
impl CandidateDuplicates {
    #[new]
    fn new() -> Self {
        CandidateDuplicates { lock: BiasedLock::new(Core::default(), |candidates| candidates.nbytes() as u64) }
    }

    /// First pass: adds the lines of `block` to `filter`; (lines, new lines). With `once`, known lines
    /// are not added again: for structures in which copies take slots.
    #[pyo3(signature = (filter: "_Filter", block: "bytes | bytearray | memoryview", *, once: "bool" = false)
           -> "tuple[int, int]")]
    fn collect(
        &self,
        filter: &Bound<'_, PyAny>,
        block: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::once)] once: bool,
    ) -> PyResult<(u64, u64)> {
        let py = filter.py();
        let bytes = read_bytes("block", block)?;
        let (mut tally, mut all) = (Tally::default(), Vec::new());
        let collected = with_filter!(filter, lock => step_through(lock, py, &bytes, |session, part| {
            let (hasher, (some, hashes)) = session.write(|filter| {
                text::collect(filter, part, once).map(|collected| (*filter.hasher(), collected))
            })?;
            tally += some;
            all.push((hasher, hashes));
            Ok(())
        }))
        .unwrap_or_else(|| not_a_filter(filter));
        let remember =
            |candidates: &mut Core| all.iter().try_for_each(|(hasher, hashes)| candidates.remember(*hasher, hashes));
        self.lock.detach(py, |session| session.write(remember)).or_raise(py)?;
        collected?;
        Ok((tally.records, tally.selected))
    }

    /// Second pass, over the same blocks: (lines, kept lines, kept bytes, dropped bytes), exact.
    #[pyo3(signature = (block: "bytes | bytearray | memoryview", *, dropped: "bool" = false)
           -> "tuple[int, int, bytes | None, bytes | None]")]
    fn partition<'py>(
        &self,
        block: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = arguments::dropped)] dropped: bool,
    ) -> PyResult<lines::Parts<'py>> {
        let py = block.py();
        let bytes = read_bytes("block", block)?;
        let (mut kept, mut dropped) = (Vec::new(), dropped.then(Vec::new));
        reserve(&mut kept, bytes.len()).or_raise(py)?;
        let mut tally = Tally::default();
        step_through(&self.lock, py, &bytes, |session, part| {
            tally += session.write(|candidates| candidates.partition(part, &mut kept, dropped.as_mut()))?;
            Ok(())
        })?;
        Ok((tally.records, tally.selected, create_part(py, Some(kept))?, create_part(py, dropped)?))
    }

    /// Number of candidate lines, each counted once.
    fn __len__(&self, py: Python<'_>) -> usize {
        self.lock.read(py, Core::len)
    }

    /// Memory in use, approximately.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> usize {
        self.lock.read(py, Core::nbytes)
    }

    /// First pass: adds the keys of `records` to `filter`; how many were new. With `once`, known keys are not added again.
    #[pyo3(signature = (filter: "_Filter", records: "KeyedRecords", *, once: "bool" = false) -> "int")]
    fn collect_keys(
        &self,
        filter: &Bound<'_, PyAny>,
        records: &KeyedRecords,
        #[pyo3(from_py_with = arguments::once)] once: bool,
    ) -> PyResult<usize> {
        let py = filter.py();
        let (hasher, mask) = with_filter!(filter, lock => {
            records.add_range(py, lock, 0..usize::MAX, once).map(|mask| (lock.read(py, |filter| *filter.hasher()), mask))
        })
        .unwrap_or_else(|| not_a_filter(filter))?;
        let hashes = records.core.hashes().iter().zip(&mask).filter(|(_, new)| **new == 0).map(|(hash, _)| *hash);
        let known: Vec<u64> = hashes.collect();
        let remember = |candidates: &mut Core| candidates.remember(hasher, &known);
        self.lock.detach(py, |session| session.write(remember)).or_raise(py)?;
        Ok(mask.len() - known.len())
    }

    /// Second pass, over the same records: (records kept, their bytes, those of the others), exact.
    #[pyo3(signature = (records: "KeyedRecords", *, dropped: "bool" = false)
           -> "tuple[int, bytes | None, bytes | None]")]
    fn partition_keys<'py>(
        &self,
        py: Python<'py>,
        records: &KeyedRecords,
        #[pyo3(from_py_with = arguments::dropped)] dropped: bool,
    ) -> PyResult<records::Parts<'py>> {
        let block = records.block.as_bytes(py);
        let mut mask = zeroed(records.core.hashes().len()).or_raise(py)?;
        let mark = |candidates: &mut Core| candidates.mark(&records.selection, block, &records.core, &mut mask);
        self.lock.detach(py, |session| session.write(mark)).or_raise(py)?;
        records.parts(py, &mask, true, dropped)
    }
}

/// Where keys occur last, for `dedup --keep last`: a first pass collects keys that a filter reported as known, a second
/// selects. Two keys with one hash count as one key, with probability 2^-64 per pair.
#[pyclass(frozen, module = "fullbloom._core")]
pub(crate) struct LastOccurrences {
    lock: BiasedLock<CoreLast>,
}

#[pymethods]
impl LastOccurrences {
    #[new]
    fn new() -> Self {
        LastOccurrences { lock: BiasedLock::new(CoreLast::default(), |last| last.nbytes() as u64) }
    }

    /// First pass: adds the keys of `records`; how many were new.
    #[pyo3(signature = (filter: "_Filter", records: "KeyedRecords", *, once: "bool" = false) -> "int")]
    fn collect(
        &self,
        filter: &Bound<'_, PyAny>,
        records: &KeyedRecords,
        #[pyo3(from_py_with = arguments::once)] once: bool,
    ) -> PyResult<usize> {
        let py = filter.py();
        let mask = with_filter!(filter, lock => records.add_range(py, lock, 0..usize::MAX, once))
            .unwrap_or_else(|| not_a_filter(filter))?;
        let collect = |last: &mut CoreLast| last.note(records.core.hashes(), &mask);
        self.lock.detach(py, |session| session.write(collect)).or_raise(py)?;
        Ok(mask.iter().map(|&new| usize::from(new)).sum())
    }

    /// Second pass, over the same records: (records kept, their bytes, those of the others).
    #[pyo3(signature = (records: "KeyedRecords", *, dropped: "bool" = false)
           -> "tuple[int, bytes | None, bytes | None]")]
    fn partition<'py>(
        &self,
        py: Python<'py>,
        records: &KeyedRecords,
        #[pyo3(from_py_with = arguments::dropped)] dropped: bool,
    ) -> PyResult<records::Parts<'py>> {
        let hashes = records.core.hashes();
        let mut mask = zeroed(hashes.len()).or_raise(py)?;
        self.lock.detach(py, |session| session.write(|last| last.mark(hashes, &mut mask)));
        records.parts(py, &mask, true, dropped)
    }

    /// Memory in use, approximately.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> usize {
        self.lock.read(py, CoreLast::nbytes)
    }
}
