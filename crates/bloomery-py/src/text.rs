//! Records of text for the command line: blocks of bytes in, kept bytes out, the GIL released.

use bloomery_core::cells::allocation::reserve;
use bloomery_core::structure::{Addable, Filter};
use bloomery_core::text::{self, CandidateDuplicates as Core, Tally};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::biased_lock::BiasedLock;
use crate::classes::shared::bytes_of;
use crate::classes::with_filter;
use crate::errors::{OrRaise, key_type, warn_overfull};
use crate::objects;

/// (records, those selected, their bytes, the bytes of the others)
type Parts<'py> = (u64, u64, Option<Bound<'py, PyBytes>>, Option<Bound<'py, PyBytes>>);

/// The answer for something that is no filter, or one whose `add` takes more than a key.
fn not_a_filter<T>(value: &Bound<'_, PyAny>) -> PyResult<T> {
    let class = value.get_type().name()?;
    Err(key_type(value.py(), format!("expected a filter that takes keys, got {class}")))
}

fn out<'py>(py: Python<'py>, bytes: Option<Vec<u8>>) -> PyResult<Option<Bound<'py, PyBytes>>> {
    bytes.map(|bytes| objects::bytes(py, &bytes)).transpose()
}

fn add<'py, F: Addable>(
    py: Python<'py>,
    lock: &BiasedLock<F>,
    block: &[u8],
    kept: bool,
    dropped: bool,
) -> PyResult<Parts<'py>> {
    let (mut kept, mut dropped) = (kept.then(Vec::new), dropped.then(Vec::new));
    kept.as_mut().map_or(Ok(()), |kept| reserve(kept, block.len())).or_raise(py)?;
    let (tally, overfull) = lock.detach(py, |session| {
        session.write(|filter| {
            let tally = text::add(filter, block, kept.as_mut(), dropped.as_mut());
            (tally, filter.newly_overfull().then(|| (filter.num_added(), filter.capacity())))
        })
    });
    if let Some((count, capacity)) = overfull {
        warn_overfull(py, count, capacity)?;
    }
    let tally = tally.or_raise(py)?;
    Ok((tally.records, tally.selected, out(py, kept)?, out(py, dropped)?))
}

/// Adds every line of `block`; (lines, new lines, bytes of the new, bytes of the others).
///
/// A carriage return before a newline is not part of the key; a last line may lack its newline.
#[pyfunction]
#[pyo3(signature = (filter: "_Filter", block: "bytes | bytearray | memoryview",
                    *, kept: "bool" = true, dropped: "bool" = false)
       -> "tuple[int, int, bytes | None, bytes | None]")]
pub(crate) fn add_lines<'py>(
    filter: &Bound<'py, PyAny>,
    block: &Bound<'py, PyAny>,
    kept: bool,
    dropped: bool,
) -> PyResult<Parts<'py>> {
    let bytes = bytes_of(block)?;
    with_filter!(filter, lock => add(filter.py(), lock, &bytes, kept, dropped)).unwrap_or_else(|| not_a_filter(filter))
}

/// Looks up every line of `block`; (lines, found lines, bytes of the found, bytes of the absent).
#[pyfunction]
#[pyo3(signature = (filter: "_Filter", block: "bytes | bytearray | memoryview",
                    *, found: "bool" = true, absent: "bool" = false)
       -> "tuple[int, int, bytes | None, bytes | None]")]
pub(crate) fn check_lines<'py>(
    filter: &Bound<'py, PyAny>,
    block: &Bound<'py, PyAny>,
    found: bool,
    absent: bool,
) -> PyResult<Parts<'py>> {
    let py = filter.py();
    let bytes = bytes_of(block)?;
    let (mut found, mut absent) = (found.then(Vec::new), absent.then(Vec::new));
    let tally: Tally = with_filter!(filter, lock => {
        let work = |session: crate::biased_lock::Session<'_, _>| {
            session.read(|filter| text::check(filter, &bytes, found.as_mut(), absent.as_mut()))
        };
        lock.detach(py, work).or_raise(py)
    })
    .unwrap_or_else(|| not_a_filter(filter))?;
    Ok((tally.records, tally.selected, out(py, found)?, out(py, absent)?))
}

/// The exact second look of `dedup --verify`: collects the lines that the filter held already, then
/// tells the true repetitions from the false positives.
#[pyclass(frozen, module = "bloomery._core")]
pub(crate) struct CandidateDuplicates {
    lock: BiasedLock<Core>,
}

#[pymethods]
impl CandidateDuplicates {
    #[new]
    fn new() -> Self {
        CandidateDuplicates { lock: BiasedLock::new(Core::default()) }
    }

    /// First pass: adds the lines of `block` to `filter`; (lines, new lines). With `once`, known lines
    /// are not added again: for structures in which copies take slots.
    #[pyo3(signature = (filter: "_Filter", block: "bytes | bytearray | memoryview", *, once: "bool" = false)
           -> "tuple[int, int]")]
    fn collect(&self, filter: &Bound<'_, PyAny>, block: &Bound<'_, PyAny>, once: bool) -> PyResult<(u64, u64)> {
        let py = filter.py();
        let bytes = bytes_of(block)?;
        let tally: Tally = with_filter!(filter, lock => {
            let collected = lock.detach(py, |session| {
                session.write(|filter| text::collect(filter, &bytes, once).map(|(tally, hashes)| (tally, hashes, *filter.hasher())))
            });
            let (tally, hashes, hasher) = collected.or_raise(py)?;
            self.lock.write(py, |candidates| candidates.remember(hasher, &hashes)).or_raise(py)?;
            Ok(tally)
        })
        .unwrap_or_else(|| not_a_filter(filter))?;
        Ok((tally.records, tally.selected))
    }

    /// Second pass, over the same blocks: (lines, kept lines, kept bytes, dropped bytes), exact.
    #[pyo3(signature = (block: "bytes | bytearray | memoryview", *, dropped: "bool" = false)
           -> "tuple[int, int, bytes | None, bytes | None]")]
    fn partition<'py>(&self, block: &Bound<'py, PyAny>, dropped: bool) -> PyResult<Parts<'py>> {
        let py = block.py();
        let bytes = bytes_of(block)?;
        let (mut kept, mut dropped) = (Vec::new(), dropped.then(Vec::new));
        reserve(&mut kept, bytes.len()).or_raise(py)?;
        let tally = self
            .lock
            .detach(py, |session| session.write(|candidates| candidates.partition(&bytes, &mut kept, dropped.as_mut())))
            .or_raise(py)?;
        Ok((tally.records, tally.selected, out(py, Some(kept))?, out(py, dropped)?))
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
}
