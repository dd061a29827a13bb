//! Batches: from whatever holds the keys, through hashes, to answers in the caller's kind.

use bloomery_core::cells::allocation::{reserve, zeroed};
use bloomery_core::key::KeyHasher;
use bloomery_core::structure::HashSource;
use bloomery_core::structure::batch::Part;
use pyo3::exceptions::PyException;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyString};

use super::HASHED_AT_A_TIME;
use super::buffer::{self, Opened};
use super::filters;
use super::frames::Frame;
use super::listed::{is_missing, objects};
use super::scalar::{hash_exact, hash_key};
use crate::answers::{self, Answer};
use crate::arrow::ArrowColumn;
use crate::arrow::export::Writer;
use crate::arrow::import::{self, Chunk, Chunks};
use crate::arrow::nulls::Nulls;
use crate::cpython::{self, Items};
use crate::errors::{OrRaise, at, key_type};
use crate::gathered::Gathered;
use crate::turns;

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

/// An operation of which only its answers are known: batches are compiled once for these, and not for each operation of
/// each structure, which was a quarter of the extension. It is called for 32,768 keys or more at a time.
pub(super) trait AnyOperation<T> {
    /// [`Operation::run`].
    fn work(&self, py: Python<'_>, source: &dyn HashSource, out: Option<&mut [T]>) -> PyResult<()>;
    /// [`Operation::SKIPS_NULLS`].
    fn skips_nulls(&self) -> bool;
    /// [`Operation::REFUSES_NULLS`].
    fn refuses_nulls(&self) -> bool;
}

impl<O: Operation> AnyOperation<O::Out> for O {
    fn work(&self, py: Python<'_>, source: &dyn HashSource, out: Option<&mut [O::Out]>) -> PyResult<()> {
        self.run(py, source, out)
    }

    fn skips_nulls(&self) -> bool {
        O::SKIPS_NULLS
    }

    fn refuses_nulls(&self) -> bool {
        O::REFUSES_NULLS
    }
}

/// Runs `operation` over `keys`; the answers, or `None` when they are not wanted.
pub(crate) fn run<'py, O: Operation>(
    operation: &O,
    hasher: &KeyHasher,
    keys: &Bound<'py, PyAny>,
    wanted: bool,
) -> PyResult<Bound<'py, PyAny>> {
    run_any::<O::Out>(operation, hasher, keys, wanted)
}

fn run_any<'py, T: Answer>(
    operation: &dyn AnyOperation<T>,
    hasher: &KeyHasher,
    keys: &Bound<'py, PyAny>,
    wanted: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    cpython::learn(py);
    if let Some(items) = Items::of(keys) {
        return listed(operation, hasher, &items, wanted);
    }
    filters::refuse(keys)?;
    if keys.is_instance_of::<PyString>() || keys.is_instance_of::<PyBytes>() || keys.is_instance_of::<PyByteArray>() {
        let name = keys.get_type().name()?;
        return Err(key_type(py, format!("a batch takes many keys, got one {name}; use add(), in, or [key]")));
    }
    if import::speaks(keys)? {
        return column(operation, hasher, keys, wanted);
    }
    let mut texts = false;
    // SAFETY: a live object, and an attached thread.
    if unsafe { ffi::PyObject_CheckBuffer(keys.as_ptr()) } == 1 {
        match buffer::open(hasher, keys)? {
            Opened::Column(column, _keep) if wanted => {
                return answers::like_buffer(keys, column.len(), |out| operation.work(py, &column, Some(out)));
            }
            Opened::Column(column, _keep) => {
                operation.work(py, &column, None)?;
                return Ok(py.None().into_bound(py));
            }
            Opened::Objects => {}
            Opened::Texts => texts = true,
        }
    }
    let iterated = if texts { iterated::<T, true> } else { iterated::<T, false> };
    let answer = iterated(operation, hasher, keys, wanted)?;
    if wanted { answers::like_objects(keys, answer) } else { Ok(py.None().into_bound(py)) }
}

/// A column that speaks the Arrow interface, or a table of them.
fn column<'py, T: Answer>(
    operation: &dyn AnyOperation<T>,
    hasher: &KeyHasher,
    keys: &Bound<'py, PyAny>,
    wanted: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    if answers::is_pandas_floats(keys)? {
        let answer = run_any(operation, hasher, &keys.call_method0("to_numpy")?, wanted)?;
        return answers::like_series(keys, answer);
    }
    if answers::is_polars_objects(keys)? {
        let chunk = objects(hasher, &keys.call_method0("to_list")?, Bound::is_none)?;
        return arrow(operation, keys, Chunks::one(hasher, chunk), wanted);
    }
    if let Some(frame) = Frame::of(keys)? {
        return match frame.lend() {
            Ok(lent) => arrow(operation, keys, import::open(hasher, keys, &lent)?, wanted),
            Err(error) if error.is_instance_of::<PyException>(py) => {
                arrow(operation, keys, Chunks::one(hasher, frame.rows(hasher)?), wanted)
            }
            Err(error) => Err(error),
        };
    }
    let lent = match import::lend(keys) {
        // pandas exports through pyarrow, which need not be there or knows no type for mixed
        // objects, long integers or sparse columns: NumPy has them all.
        Err(error) if error.is_instance_of::<PyException>(py) && keys.hasattr("to_numpy")? => {
            if answers::has_missing(keys)? {
                let chunk = objects(hasher, &keys.call_method0("to_list")?, is_missing)?;
                return arrow(operation, keys, Chunks::one(hasher, chunk), wanted);
            }
            let values = keys.call_method0("to_numpy")?;
            let answer = run_any(operation, hasher, &values, wanted)?;
            return answers::like_series(keys, answer);
        }
        lent => lent?,
    };
    arrow(operation, keys, import::open(hasher, keys, &lent)?, wanted)
}

/// The refusal of an item of an array of texts that is none.
#[cold]
fn missing(py: Python<'_>) -> PyErr {
    key_type(py, "a missing text is no key; leave it out, or pass a column with nulls, which are skipped")
}

/// A list or a tuple: its length is known and its items can be had without an iterator.
fn listed<'py, T: Answer>(
    operation: &dyn AnyOperation<T>,
    hasher: &KeyHasher,
    items: &Items<'_, 'py>,
    wanted: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = items.keys.py();
    let len = items.keys.len()?;
    let mut hashes = zeroed(HASHED_AT_A_TIME.min(len)).or_raise(py)?;
    let mut outs = zeroed(if wanted { hashes.len() } else { 0 }).or_raise(py)?;
    let mut answer = T::gather(py, if wanted { len } else { 0 })?;
    let mut start = 0;
    while start < len {
        let room = hashes.len().min(len - start);
        let (n, error) = hash_items(hasher, items, start, &mut hashes[..room]);
        if wanted {
            operation.work(py, &&hashes[..n], Some(&mut outs[..n]))?;
            answer.extend(&outs[..n])?;
        } else {
            operation.work(py, &&hashes[..n], None)?;
        }
        if let Some(error) = error {
            return Err(at(py, start + n, error));
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

/// Any other iterable, of texts alone where `TEXTS`; keys before a refused one are processed.
fn iterated<T: Answer, const TEXTS: bool>(
    operation: &dyn AnyOperation<T>,
    hasher: &KeyHasher,
    keys: &Bound<'_, PyAny>,
    wanted: bool,
) -> PyResult<Vec<T>> {
    let (py, mut done) = (keys.py(), 0);
    let mut items = keys.try_iter()?;
    let mut hashes = Vec::new();
    reserve(&mut hashes, HASHED_AT_A_TIME).or_raise(py)?;
    let mut answer = Vec::new();
    loop {
        hashes.clear();
        let mut error = None;
        while hashes.len() < HASHED_AT_A_TIME {
            match items.next().map(|item| item.and_then(|item| hash_key(hasher, &item).map(|hash| (item, hash)))) {
                Some(Ok((item, _))) if TEXTS && !item.is_instance_of::<PyString>() => error = Some(missing(py)),
                Some(Ok((_, hash))) => hashes.push(hash),
                Some(Err(refused)) => error = Some(refused),
                None => break,
            }
            if error.is_some() {
                break;
            }
        }
        let start = answer.len();
        if wanted {
            reserve(&mut answer, hashes.len()).or_raise(py)?;
            answer.resize(start + hashes.len(), T::default());
            operation.work(py, &hashes.as_slice(), Some(&mut answer[start..]))?;
        } else {
            operation.work(py, &hashes.as_slice(), None)?;
        }
        if let Some(error) = error {
            return Err(at(py, done + hashes.len(), error));
        }
        if hashes.len() < HASHED_AT_A_TIME {
            return Ok(answer);
        }
        done += HASHED_AT_A_TIME;
        py.check_signals()?;
    }
}

/// Rows of a column with nulls or answers that are worked on together, where no memory may be asked for by the length
/// that a producer states. With several threads a round of them is 10 ms of work or more.
const PORTION: usize = 1 << 22;

/// The chunks of an Arrow column; nulls are not keys and answer null.
pub(super) fn arrow<'py, T: Answer>(
    operation: &dyn AnyOperation<T>,
    keys: &Bound<'py, PyAny>,
    mut chunks: Chunks,
    wanted: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    let mut ready = Vec::new();
    while operation.refuses_nulls()
        && let Some(chunk) = chunks.next(py)?
    {
        if chunk.has_nulls() {
            return Err(key_type(py, "a null is no key and can be given nothing; drop the rows with nulls first"));
        }
        ready.push(chunk);
    }
    let mut ready = ready.into_iter();
    let mut parts = Vec::new();
    while let Some(chunk) = ready.next().map_or_else(|| chunks.next(py), |chunk| Ok(Some(chunk)))? {
        if !wanted && !chunk.has_nulls() {
            operation.work(py, &*chunk.source, None)?;
        } else if wanted || !matches!(chunk.nulls, Nulls::All) {
            parts.extend(portions(operation, py, &chunk, wanted)?);
        }
        py.check_signals()?;
    }
    if wanted { answers::like_arrow(keys, parts, chunks.streamed, T::ARROW_TYPE) } else { Ok(py.None().into_bound(py)) }
}

/// One chunk, a portion at a time; the column of its answers, if they are wanted.
fn portions<T: Answer>(
    operation: &dyn AnyOperation<T>,
    py: Python<'_>,
    chunk: &Chunk,
    wanted: bool,
) -> PyResult<Option<ArrowColumn>> {
    let len = chunk.source.len();
    let room = |needed: bool| if needed { PORTION.min(len) } else { 0 };
    let skips = operation.skips_nulls() && chunk.has_nulls();
    let mut column = wanted.then(|| Writer::with_room::<T>(py, len, chunk.has_nulls())).transpose()?;
    let mut marks = zeros::<u8>(py, room(chunk.has_nulls()))?;
    let mut hashes = zeros::<u64>(py, room(skips))?;
    let mut outs = zeros::<T>(py, room(wanted))?;
    for start in (0..len).step_by(PORTION) {
        let rows = PORTION.min(len - start);
        let valid = marks.get_mut(..rows).unwrap_or_default();
        turns::over(py, valid.len(), || chunk.nulls.mark(start, valid));
        let out = outs.get_mut(..rows).unwrap_or_default();
        let part = Part { source: &*chunk.source, start, len: rows };
        if skips {
            py.detach(|| part.fill(0, &mut hashes[..rows]));
            keys_alone(operation, py, &mut hashes[..rows], valid, wanted.then_some(&mut *out))?;
        } else {
            operation.work(py, &part, wanted.then_some(&mut *out))?;
        }
        if let Some(column) = &mut column {
            turns::over(py, rows, || column.append(out, valid));
        }
        py.check_signals()?;
    }
    // 40 MB of pages go back.
    turns::over(py, len, || drop((marks, hashes, outs)));
    Ok(column.map(Writer::finish::<T>))
}

/// Room for the rows of a portion, which takes the system 5 ms.
fn zeros<T: Copy + Default + Send>(py: Python<'_>, len: usize) -> PyResult<Vec<T>> {
    turns::over(py, len, || zeroed(len)).or_raise(py)
}

/// Runs `operation` over those of `hashes` that `valid` has no 0 for; `out` is as long as both.
fn keys_alone<T: Answer>(
    operation: &dyn AnyOperation<T>,
    py: Python<'_>,
    hashes: &mut [u64],
    valid: &[u8],
    mut out: Option<&mut [T]>,
) -> PyResult<()> {
    let rows = || (0..valid.len()).filter(|&i| valid[i] != 0);
    // No row moves behind its place, so that no second copy is needed; nor does an answer on its way back.
    let mut number = 0;
    turns::over(py, valid.len(), || {
        for i in rows() {
            hashes[number] = hashes[i];
            number += 1;
        }
    });
    operation.work(py, &&hashes[..number], out.as_deref_mut().map(|out| &mut out[..number]))?;
    if let Some(out) = out {
        turns::over(py, valid.len(), || {
            out[number..].fill(T::default());
            for i in rows().rev() {
                number -= 1;
                out[i] = std::mem::take(&mut out[number]);
            }
        });
    }
    Ok(())
}
