//! Lines as keys.

use fullbloom_core::cells::allocation::reserve;
use fullbloom_core::key::KeyDomains;
use fullbloom_core::structure::{Addable, Filter};
use fullbloom_core::text::{self, LINES, Tally};
use pyo3::prelude::*;

use super::records::read_lines;
use super::{MaybeBytes, create_part, not_a_filter, step_through};
use crate::classes::{with_filter, with_lookup_filter};
use crate::errors::OrRaise;
use crate::foreign::records as foreign;
use crate::locking::biased_lock::BiasedLock;
use crate::operations::warnings::{expect, warn_overfull};
use crate::python_objects::bytes::read_bytes;

/// (lines, those selected, their bytes, the bytes of the others)
pub(super) type Parts<'py> = (u64, u64, MaybeBytes<'py>, MaybeBytes<'py>);

mod arguments {
    crate::parameters::readers!(kept: "bool"; dropped: "bool"; found: "bool"; absent: "bool";);
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
    step_through(lock, py, block, |session, part| {
        session.write(|filter| {
            tally += text::add(filter, part, kept.as_mut(), dropped.as_mut())?;
            overfull |= filter.newly_overfull();
            Ok(())
        })
    })?;
    if overfull {
        warn_overfull(py, lock, None)?;
    }
    Ok((tally.records, tally.selected, create_part(py, kept)?, create_part(py, dropped)?))
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
    let bytes = read_bytes("block", block)?;
    if foreign::hashing_of(filter).is_some() {
        let records = read_lines(filter, &bytes)?;
        let (selected, kept, dropped) = records.add(filter, false, kept, dropped)?;
        return Ok((records.count_lines(), selected as u64, kept, dropped));
    }
    with_filter!(filter, lock => add(filter.py(), lock, &bytes, kept, dropped)).unwrap_or_else(|| not_a_filter(filter))
}

/// Records that the lines added were hashes in hexadecimal digits.
#[pyfunction]
#[pyo3(signature = (filter: "_Filter") -> "None")]
pub(crate) fn record_digests(filter: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = filter.py();
    with_lookup_filter!(filter, lock => {
        lock.write(py, |filter| filter.record(KeyDomains::DIGESTS));
        Ok(())
    })
    .unwrap_or_else(|| not_a_filter(filter))
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
    let bytes = read_bytes("block", block)?;
    if foreign::hashing_of(filter).is_some() {
        let records = read_lines(filter, &bytes)?;
        let (selected, found, absent) = records.check(filter, found, absent)?;
        return Ok((records.count_lines(), selected as u64, found, absent));
    }
    let (mut found, mut absent) = (found.then(Vec::new), absent.then(Vec::new));
    let mut tally = Tally::default();
    with_lookup_filter!(filter, lock => {
        if !bytes.is_empty() {
            expect(py, lock, LINES)?;
        }
        step_through(lock, py, &bytes, |session, part| {
            tally += session.read(|filter| text::check(filter, part, found.as_mut(), absent.as_mut()))?;
            Ok(())
        })
    })
    .unwrap_or_else(|| not_a_filter(filter))?;
    Ok((tally.records, tally.selected, create_part(py, found)?, create_part(py, absent)?))
}
