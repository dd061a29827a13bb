//! Ready 64-bit hashes: one whole number, or a batch of them in any container of keys.

use fullbloom_core::cells::allocation::zeroed;
use fullbloom_core::key::KeyDomains;
use fullbloom_core::structure::HashSource;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::PyInt;

use super::batch::{self, AnyOperation, Operation};
use super::buffer::{self, BufferView};
use super::refusals;
use crate::arrow::import::{self, Chunk, Chunks};
use crate::arrow::meaning::Meaning;
use crate::column::Column;
use crate::dataframes::{exports, queries};
use crate::errors::{OrRaise, key_type, parameter};
use crate::locking::slices;
use crate::parameters::describe;
use crate::python_objects::answers::{self, Answer};

/// Reads one hash.
fn read_one(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    value.extract::<u64>().map_err(|error| {
        let py = value.py();
        if error.is_instance_of::<PyOverflowError>(py) {
            return parameter(py, format!("a hash must be between 0 and 2**64 - 1, got {}", describe(value)));
        }
        key_type(py, "hashes must be whole numbers between 0 and 2**64 - 1; see hash_key() and hash_many()")
    })
}

/// The hash, if `hashes` is a single one rather than a batch.
pub(crate) fn read_single(hashes: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    if hashes.is_instance_of::<PyInt>() || (hashes.hasattr("__index__")? && !hashes.hasattr("__len__")?) {
        return read_one(hashes).map(Some);
    }
    Ok(None)
}

/// The hashes of a column that supports the Arrow interface; hash_many() returns a null for a null.
fn column(hashes: &Bound<'_, PyAny>) -> PyResult<Chunks> {
    if let Some(capsules) = exports::export_numbers(hashes)? {
        return import::open(Meaning::Hashes, hashes, &capsules);
    }
    let chunk = Chunk::of(&hashes.call_method0("to_list")?, |hash| {
        // pandas.NA is the only value of a class of its own.
        let null = hash.is_none() || hash.get_type().name()? == "NAType";
        if null { Ok(None) } else { read_one(hash).map(|hash| Some((hash, KeyDomains::HASHED))) }
    })?;
    Ok(Chunks::one(Meaning::Hashes, chunk))
}

/// Runs `operation` over a batch of hashes.
pub(crate) fn run<'py, O: Operation>(operation: &O, hashes: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    run_any::<O::Out>(operation, hashes)
}

fn run_any<'py, T: Answer>(operation: &dyn AnyOperation<T>, hashes: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = hashes.py();
    refusals::refuse_filter(hashes)?;
    let hasher = fullbloom_core::key::KeyHasher::seeded(0);
    // SAFETY: a live object, and an attached thread.
    if unsafe { pyo3::ffi::PyObject_CheckBuffer(hashes.as_ptr()) } == 1
        && let BufferView::Column(column, _keep) = buffer::open(&hasher, hashes)?
    {
        let Some(numbers) = column.has_words().then_some(column).and_then(Column::into_numbers) else {
            return Err(key_type(py, "hashes must be unsigned 64-bit integers; see hash_many()"));
        };
        return answers::like_buffer(hashes, numbers.len(), |out| {
            operation.expect(py, numbers.len())?;
            operation.work(py, &numbers, Some(out))
        });
    }
    if exports::supports_arrow(hashes)? {
        return batch::arrow(operation, hashes, column(hashes)?, true);
    }
    if let Some(rows) = queries::fetch(hashes)? {
        return batch::arrow(operation, &rows, column(&rows)?, true);
    }
    queries::refuse(hashes)?;
    let mut values = Vec::new();
    for hash in hashes.try_iter()? {
        slices::push(py, &mut values, read_one(&hash?)?)?;
    }
    operation.expect(py, values.len())?;
    let mut out = slices::detach_if_long(py, values.len(), || zeroed(values.len())).or_raise(py)?;
    operation.work(py, &values.as_slice(), Some(&mut out))?;
    slices::detach_if_long(py, values.len(), || drop(values));
    T::to_list(py, &out)
}
