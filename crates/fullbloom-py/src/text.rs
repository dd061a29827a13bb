//! Records of text for the command line: blocks of bytes in, kept bytes out, the GIL released.

use fullbloom_core::Result;
use fullbloom_core::cells::allocation::reserve;
use fullbloom_core::structure::{Addable, Filter};
use fullbloom_core::text::{self, CandidateDuplicates as Core, LINES, Tally};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::biased_lock::{BiasedLock, Session};
use crate::classes::shared::{bytes_of, warn_overfull};
use crate::classes::{with_asked, with_filter};
use crate::domains::expect;
use crate::errors::{OrRaise, key_type};
use crate::objects;
use crate::turns;

/// (records, those selected, their bytes, the bytes of the others)
type Parts<'py> = (u64, u64, Option<Bound<'py, PyBytes>>, Option<Bound<'py, PyBytes>>);

/// What is collected, and how.
mod arguments {
    crate::classes::declared::readers!(
        kept: "bool"; dropped: "bool"; found: "bool"; absent: "bool"; once: "bool";
    );
}

/// The answer for something that is no filter, or one whose `add` takes more than a key.
pub(crate) fn not_a_filter<T>(value: &Bound<'_, PyAny>) -> PyResult<T> {
    let class = value.get_type().name()?;
    Err(key_type(value.py(), format!("expected a filter that takes keys, got {class}")))
}

pub(crate) fn out<'py>(py: Python<'py>, bytes: Option<Vec<u8>>) -> PyResult<Option<Bound<'py, PyBytes>>> {
    bytes.map(|bytes| objects::bytes(py, &bytes)).transpose()
}

/// Bytes of lines for which a filter is kept: some 5 ms.
const PART: usize = 1 << 20;

/// Gives `step` the lines of `block`, some at a time; looks for signals now and then.
fn by_parts<T: Send + Sync>(
    lock: &BiasedLock<T>,
    py: Python<'_>,
    block: &[u8],
    mut step: impl FnMut(&Session<'_, T>, &[u8]) -> Result<()> + Send,
) -> PyResult<()> {
    turns::of(lock, py, block.len(), |session, start| {
        let most = block.len().min(start + PART);
        let line = block[most..].iter().position(|&byte| byte == b'\n');
        let end = if block[most - 1] == b'\n' { most } else { line.map_or(block.len(), |rest| most + rest + 1) };
        step(session, &block[start..end]).map(|()| end)
    })
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
    let (mut tally, mut overfull) = (Tally::default(), false);
    by_parts(lock, py, block, |session, part| {
        session.write(|filter| {
            tally += text::add(filter, part, kept.as_mut(), dropped.as_mut())?;
            overfull |= filter.newly_overfull();
            Ok(())
        })
    })?;
    if overfull {
        warn_overfull(py, lock, None)?;
    }
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
    #[pyo3(from_py_with = arguments::kept)] kept: bool,
    #[pyo3(from_py_with = arguments::dropped)] dropped: bool,
) -> PyResult<Parts<'py>> {
    let bytes = bytes_of("block", block)?;
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
    #[pyo3(from_py_with = arguments::found)] found: bool,
    #[pyo3(from_py_with = arguments::absent)] absent: bool,
) -> PyResult<Parts<'py>> {
    let py = filter.py();
    let bytes = bytes_of("block", block)?;
    let (mut found, mut absent) = (found.then(Vec::new), absent.then(Vec::new));
    let mut tally = Tally::default();
    with_asked!(filter, lock => {
        if !bytes.is_empty() {
            expect(py, lock, LINES)?;
        }
        by_parts(lock, py, &bytes, |session, part| {
            tally += session.read(|filter| text::check(filter, part, found.as_mut(), absent.as_mut()))?;
            Ok(())
        })
    })
    .unwrap_or_else(|| not_a_filter(filter))?;
    Ok((tally.records, tally.selected, out(py, found)?, out(py, absent)?))
}

/// The exact second look of `dedup --verify`: collects the lines that the filter held already, then
/// tells the true repetitions from the false positives.
#[pyclass(frozen, module = "fullbloom._core")]
pub(crate) struct CandidateDuplicates {
    pub(crate) lock: BiasedLock<Core>,
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
        let bytes = bytes_of("block", block)?;
        let (mut tally, mut all) = (Tally::default(), Vec::new());
        let collected = with_filter!(filter, lock => by_parts(lock, py, &bytes, |session, part| {
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
    ) -> PyResult<Parts<'py>> {
        let py = block.py();
        let bytes = bytes_of("block", block)?;
        let (mut kept, mut dropped) = (Vec::new(), dropped.then(Vec::new));
        reserve(&mut kept, bytes.len()).or_raise(py)?;
        let mut tally = Tally::default();
        by_parts(&self.lock, py, &bytes, |session, part| {
            tally += session.write(|candidates| candidates.partition(part, &mut kept, dropped.as_mut()))?;
            Ok(())
        })?;
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
