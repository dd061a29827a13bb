//! Ready 64-bit hashes: one whole number, or a batch of them in any container of keys.

use bloomery_core::cells::allocation::{reserve, zeroed};
use bloomery_core::structure::HashSource;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::PyInt;

use super::HASHED_AT_A_TIME;
use super::batch::{self, AnyOperation, Operation};
use super::buffer::{self, Opened};
use super::column::Column;
use super::filters;
use crate::answers::{self, Answer};
use crate::arrow::import::{self, Chunk, Chunks};
use crate::errors::{OrRaise, key_type, parameter};
use crate::turns;

/// Column values as they are, for hashes computed elsewhere.
struct Ready<'a> {
    base: *const u8,
    stride: isize,
    len: usize,
    _column: &'a Column,
}

// SAFETY: a read-only view of a column, which is Sync itself.
unsafe impl Sync for Ready<'_> {}

impl HashSource for Ready<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn fill(&self, start: usize, out: &mut [u64]) {
        for (i, out) in out.iter_mut().enumerate() {
            let at = self.base.wrapping_offset((start + i) as isize * self.stride);
            // SAFETY: element start + i of the column, 8 bytes wide.
            *out = unsafe { at.cast::<u64>().read_unaligned() };
        }
    }
}

fn view<'a>(py: Python<'_>, column: &'a Column) -> PyResult<Ready<'a>> {
    match column.words() {
        Some((base, stride)) => Ok(Ready { base, stride, len: column.len(), _column: column }),
        None => Err(key_type(py, "hashes must be unsigned 64-bit integers; see hash_many()")),
    }
}

/// One hash.
fn one(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    value.extract::<u64>().map_err(|error| {
        let py = value.py();
        if error.is_instance_of::<PyOverflowError>(py) {
            return parameter(py, format!("a hash must be between 0 and 2**64 - 1, got {value}"));
        }
        key_type(py, "hashes must be whole numbers between 0 and 2**64 - 1; see hash_key() and hash_many()")
    })
}

/// True when `hashes` is a single hash rather than a batch.
pub(crate) fn single(hashes: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    if hashes.is_instance_of::<PyInt>() || (hashes.hasattr("__index__")? && !hashes.hasattr("__len__")?) {
        return one(hashes).map(Some);
    }
    Ok(None)
}

/// The hashes of a pyarrow, Polars or pandas column; hash_many() gives a null for a null.
fn column(hashes: &Bound<'_, PyAny>) -> PyResult<Chunk> {
    let mut list = None;
    for name in ["to_list", "to_pylist"] {
        if list.is_none() && hashes.hasattr(name)? {
            list = Some(hashes.call_method0(name)?);
        }
    }
    let remedy = "hashes in this column cannot be listed; pass a NumPy array, a list, or a column of pyarrow";
    Chunk::of(&list.ok_or_else(|| key_type(hashes.py(), remedy))?, |hash| {
        // pandas.NA is the only value of a class of its own.
        let null = hash.is_none() || hash.get_type().name()? == "NAType";
        if null { Ok(None) } else { one(hash).map(Some) }
    })
}

/// Runs `operation` over a batch of hashes.
pub(crate) fn run<'py, O: Operation>(operation: &O, hashes: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    run_any::<O::Out>(operation, hashes)
}

fn run_any<'py, T: Answer>(operation: &dyn AnyOperation<T>, hashes: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = hashes.py();
    filters::refuse(hashes)?;
    let hasher = bloomery_core::key::KeyHasher::seeded(0);
    // SAFETY: a live object, and an attached thread.
    if unsafe { pyo3::ffi::PyObject_CheckBuffer(hashes.as_ptr()) } == 1
        && let Opened::Column(column, _keep) = buffer::open(&hasher, hashes)?
    {
        let ready = view(py, &column)?;
        return answers::like_buffer(hashes, ready.len(), |out| operation.work(py, &ready, Some(out)));
    }
    if import::speaks(hashes)? {
        return batch::arrow(operation, hashes, Chunks::one(&hasher, column(hashes)?), true);
    }
    let mut values = Vec::new();
    for hash in hashes.try_iter()? {
        reserve(&mut values, 1).or_raise(py)?;
        values.push(one(&hash?)?);
        if values.len().is_multiple_of(HASHED_AT_A_TIME) {
            turns::breathe(py)?;
        }
    }
    let mut out = turns::over(py, values.len(), || zeroed(values.len())).or_raise(py)?;
    operation.work(py, &values.as_slice(), Some(&mut out))?;
    T::to_list(py, &out)
}
