//! Batches: from whatever holds the keys, through hashes, to answers in the caller's kind.

use bloomery_core::cells::allocation::{reserve, zeroed};
use bloomery_core::key::KeyHasher;
use bloomery_core::structure::HashSource;
use pyo3::exceptions::PyException;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyString};

use super::HASHED_AT_A_TIME;
use super::buffer::{self, Buffer};
use super::scalar::{hash_exact, hash_key};
use crate::answers::{self, Answer};
use crate::arrow::import::{self, Chunk};
use crate::cpython::{self, Items};
use crate::errors::{OrRaise, key_type};
use crate::gathered::Gathered;

/// What is done with hashes: adding, checking, or handing them out.
pub(crate) trait Operation {
    /// What comes out for each key.
    type Out: Answer;
    /// Takes all keys of `source`; fills `out` (as long as the source) if it is wanted.
    fn run(&self, py: Python<'_>, source: &dyn HashSource, out: Option<&mut [Self::Out]>) -> PyResult<()>;
    /// True when null rows must not reach [`Operation::run`].
    const SKIPS_NULLS: bool;
    /// True when a null row is an error: something stands beside each key.
    const REFUSES_NULLS: bool = false;
}

/// Runs `operation` over `keys`; the answers, or `None` when they are not wanted.
pub(crate) fn run<'py, O: Operation>(
    operation: &O,
    hasher: &KeyHasher,
    keys: &Bound<'py, PyAny>,
    wanted: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    cpython::learn(py);
    if let Some(items) = Items::of(keys) {
        return listed(operation, hasher, &items, wanted);
    }
    if keys.is_instance_of::<PyString>() || keys.is_instance_of::<PyBytes>() || keys.is_instance_of::<PyByteArray>() {
        let name = keys.get_type().name()?;
        return Err(key_type(py, format!("a batch takes many keys, got one {name}; use add(), in, or [key]")));
    }
    if import::speaks(keys)? {
        if answers::is_polars_objects(keys)? {
            return arrow(operation, keys, &[objects(hasher, keys)?], false, wanted);
        }
        let lent = match import::lend(keys) {
            // pandas exports through pyarrow, which need not be there or knows no type for mixed
            // objects, long integers or sparse columns: NumPy has them all.
            Err(error) if error.is_instance_of::<PyException>(py) && keys.hasattr("to_numpy")? => {
                let values = keys.call_method0("to_numpy")?;
                let answer = run(operation, hasher, &values, wanted)?;
                return answers::like_series(keys, answer);
            }
            lent => lent?,
        };
        let (chunks, streamed) = import::open(hasher, &lent)?;
        return arrow(operation, keys, &chunks, streamed, wanted);
    }
    // SAFETY: a live object, and an attached thread.
    if unsafe { ffi::PyObject_CheckBuffer(keys.as_ptr()) } == 1
        && let Buffer::Column(column, _keep) = buffer::open(hasher, keys)?
    {
        if !wanted {
            operation.run(py, &column, None)?;
            return Ok(py.None().into_bound(py));
        }
        return answers::like_buffer(keys, column.len(), |out| operation.run(py, &column, Some(out)));
    }
    let answer = iterated(operation, hasher, keys, wanted)?;
    if wanted { answers::like_objects(keys, answer) } else { Ok(py.None().into_bound(py)) }
}

/// A list or a tuple: its length is known and its items can be had without an iterator.
fn listed<'py, O: Operation>(
    operation: &O,
    hasher: &KeyHasher,
    items: &Items<'_, 'py>,
    wanted: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = items.keys.py();
    let len = items.keys.len()?;
    let mut hashes = vec![0u64; HASHED_AT_A_TIME.min(len)];
    let mut outs = vec![O::Out::default(); if wanted { hashes.len() } else { 0 }];
    let mut answer = O::Out::gather(py, if wanted { len } else { 0 })?;
    let mut start = 0;
    while start < len {
        let room = hashes.len().min(len - start);
        let (n, error) = hash_items(hasher, items, start, &mut hashes[..room]);
        if wanted {
            operation.run(py, &&hashes[..n], Some(&mut outs[..n]))?;
            answer.extend(&outs[..n])?;
        } else {
            operation.run(py, &&hashes[..n], None)?;
        }
        if let Some(error) = error {
            return Err(error);
        }
        py.check_signals()?;
        start += room;
        if n < room {
            break; // the list shrank while a key's own code ran
        }
    }
    if wanted { answer.finish() } else { Ok(py.None().into_bound(py)) }
}

/// Hashes the items from `start` on until `out` is full, the list ends, or a key is refused.
fn hash_items(hasher: &KeyHasher, items: &Items<'_, '_>, start: usize, out: &mut [u64]) -> (usize, Option<PyErr>) {
    let mut done = 0;
    while done < out.len() {
        // SAFETY: hashing keys of an exact class runs no Python code; they are alive meanwhile.
        done += unsafe { items.fill(start + done, &mut out[done..], |key| hash_exact(hasher, key)) };
        let Some(out) = out.get_mut(done) else { break };
        match items.get(start + done).map(|key| hash_key(hasher, &key)) {
            Some(Ok(hash)) => *out = hash,
            Some(Err(error)) => return (done, Some(error)),
            None => break,
        }
        done += 1;
    }
    (done, None)
}

/// Any other iterable; keys before a refused one are processed.
fn iterated<O: Operation>(
    operation: &O,
    hasher: &KeyHasher,
    keys: &Bound<'_, PyAny>,
    wanted: bool,
) -> PyResult<Vec<O::Out>> {
    let py = keys.py();
    let mut items = keys.try_iter()?;
    let mut hashes = Vec::new();
    let mut answer = Vec::new();
    loop {
        hashes.clear();
        let mut error = None;
        while hashes.len() < HASHED_AT_A_TIME {
            match items.next().map(|item| item.and_then(|item| hash_key(hasher, &item))) {
                Some(Ok(hash)) => hashes.push(hash),
                Some(Err(refused)) => {
                    error = Some(refused);
                    break;
                }
                None => break,
            }
        }
        let start = answer.len();
        if wanted {
            reserve(&mut answer, hashes.len()).or_raise(py)?;
            answer.resize(start + hashes.len(), O::Out::default());
            operation.run(py, &hashes.as_slice(), Some(&mut answer[start..]))?;
        } else {
            operation.run(py, &hashes.as_slice(), None)?;
        }
        if let Some(error) = error {
            return Err(error);
        }
        if hashes.len() < HASHED_AT_A_TIME {
            return Ok(answer);
        }
        py.check_signals()?;
    }
}

/// A Polars column of Python objects: its Arrow form holds handles of theirs, not the keys.
fn objects(hasher: &KeyHasher, keys: &Bound<'_, PyAny>) -> PyResult<Chunk> {
    let hash = |item: &Bound<'_, PyAny>| if item.is_none() { Ok(None) } else { hash_key(hasher, item).map(Some) };
    Chunk::of(&keys.call_method0("to_list")?, hash)
}

/// The chunks of an Arrow column; nulls are not keys and answer null.
pub(crate) fn arrow<'py, O: Operation>(
    operation: &O,
    keys: &Bound<'py, PyAny>,
    chunks: &[Chunk],
    streamed: bool,
    wanted: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    let nulls = |chunk: &Chunk| chunk.valid.as_ref().is_some_and(|valid| valid.contains(&0));
    if O::REFUSES_NULLS && chunks.iter().any(nulls) {
        return Err(key_type(py, "a null is no key and can be given nothing; drop the rows with nulls first"));
    }
    let mut parts = Vec::new();
    for chunk in chunks {
        let len = chunk.source.len();
        let valid = &chunk.valid;
        let mut out: Vec<O::Out> = zeroed(if wanted { len } else { 0 }).or_raise(py)?;
        match valid {
            Some(valid) if O::SKIPS_NULLS => {
                let rows = || (0..len).filter(|&i| valid[i] != 0);
                let mut hashes = zeroed(len).or_raise(py)?;
                chunk.source.fill(0, &mut hashes);
                // No row moves behind its place, so that no second copy is needed.
                let mut number = 0;
                for i in rows() {
                    hashes[number] = hashes[i];
                    number += 1;
                }
                let mut kept: Vec<O::Out> = zeroed(if wanted { number } else { 0 }).or_raise(py)?;
                operation.run(py, &&hashes[..number], wanted.then_some(&mut kept[..]))?;
                rows().zip(kept).for_each(|(i, k)| out[i] = k);
            }
            _ => operation.run(py, &*chunk.source, wanted.then_some(&mut out[..]))?,
        }
        if wanted {
            parts.push(O::Out::to_arrow(&out, valid.as_deref()));
        }
        py.check_signals()?;
    }
    if wanted { answers::like_arrow(keys, parts, streamed, O::Out::ARROW_TYPE) } else { Ok(py.None().into_bound(py)) }
}
