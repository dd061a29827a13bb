//! Second looks at records with a chosen key: which were true repetitions, and which are the last of their key.

use fullbloom_core::cells::allocation::zeroed;
use fullbloom_core::structure::Filter;
use fullbloom_core::text::CandidateDuplicates as Candidates;
use fullbloom_core::text::select::LastOccurrences as CoreLast;
use pyo3::prelude::*;

use crate::biased_lock::BiasedLock;
use crate::classes::with_filter;
use crate::errors::OrRaise;
use crate::records::{KeyedRecords, Parts};
use crate::text::{CandidateDuplicates, not_a_filter};

mod arguments {
    crate::classes::declared::readers!(dropped: "bool"; once: "bool";);
}

/// The exact second look at records with a chosen key: as that at lines.
#[pymethods]
impl CandidateDuplicates {
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
            records.added(py, lock, 0..usize::MAX, once).map(|mask| (lock.read(py, |filter| *filter.hasher()), mask))
        })
        .unwrap_or_else(|| not_a_filter(filter))?;
        let hashes = records.core.hashes().iter().zip(&mask).filter(|(_, new)| **new == 0).map(|(hash, _)| *hash);
        let known: Vec<u64> = hashes.collect();
        let remember = |candidates: &mut Candidates| candidates.remember(hasher, &known);
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
    ) -> PyResult<Parts<'py>> {
        let block = records.block.as_bytes(py);
        let mut mask = zeroed(records.core.hashes().len()).or_raise(py)?;
        let mark = |candidates: &mut Candidates| candidates.mark(&records.selection, block, &records.core, &mut mask);
        self.lock.detach(py, |session| session.write(mark)).or_raise(py)?;
        records.parts(py, &mask, true, dropped)
    }
}

/// Where keys occur last, for `dedup --keep last`: a first pass notes keys that a filter held already, a second asks.
/// Two keys of one hash are taken for one, with probability 2^-64 a pair.
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
        let mask = with_filter!(filter, lock => records.added(py, lock, 0..usize::MAX, once))
            .unwrap_or_else(|| not_a_filter(filter))?;
        let note = |last: &mut CoreLast| last.note(records.core.hashes(), &mask);
        self.lock.detach(py, |session| session.write(note)).or_raise(py)?;
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
    ) -> PyResult<Parts<'py>> {
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
