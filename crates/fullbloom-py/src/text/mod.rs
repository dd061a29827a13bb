//! Records of text for the command line: blocks of bytes in, selected bytes out, the GIL released.
//!
//! * [`lines`]: whole lines as keys; [`records`]: records with a chosen key;
//! * [`duplicates`]: second passes over both, which are exact.

use fullbloom_core::Result;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::key_type;
use crate::locking::biased_lock::{BiasedLock, Session};
use crate::locking::slices;
use crate::python_objects::bytes;

mod duplicates;
mod lines;
mod records;

pub(crate) use duplicates::{CandidateDuplicates, LastOccurrences};
pub(crate) use lines::{add_lines, check_lines, record_digests};
pub(crate) use records::{KeyedRecords, Selection};

/// Bytes, if they were collected.
type MaybeBytes<'py> = Option<Bound<'py, PyBytes>>;

/// The error for an object that is not a filter, or a filter whose `add` takes more than a key.
fn not_a_filter<T>(value: &Bound<'_, PyAny>) -> PyResult<T> {
    let class = value.get_type().name()?;
    Err(key_type(value.py(), format!("expected a filter that takes keys, got {class}")))
}

/// Creates `bytes` from a collected part, if one was collected.
fn create_part<'py>(py: Python<'py>, bytes: Option<Vec<u8>>) -> PyResult<Option<Bound<'py, PyBytes>>> {
    bytes.map(|bytes| bytes::create(py, &bytes)).transpose()
}

/// Bytes of lines for which a filter is kept locked: some 5 ms.
const PART: usize = 1 << 20;

/// Passes the lines of `block` to `step`, some at a time; checks for signals now and then.
fn step_through<T: Send + Sync>(
    lock: &BiasedLock<T>,
    py: Python<'_>,
    block: &[u8],
    mut step: impl FnMut(&Session<'_, T>, &[u8]) -> Result<()> + Send,
) -> PyResult<()> {
    slices::run_locked(lock, py, block.len(), |session, start| {
        let most = block.len().min(start + PART);
        let line = block[most..].iter().position(|&byte| byte == b'\n');
        let end = if block[most - 1] == b'\n' { most } else { line.map_or(block.len(), |rest| most + rest + 1) };
        step(session, &block[start..end]).map(|()| end)
    })
}
