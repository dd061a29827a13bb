//! Batches: from whatever holds the keys, through hashes, to answers in the caller's kind.

use fullbloom_core::cells::allocation::{reserve, zeroed};
use fullbloom_core::key::source::Hashed;
use fullbloom_core::key::{KeyDomains, KeyHasher};
use fullbloom_core::structure::HashSource;
use fullbloom_core::structure::batch::Part;
use pyo3::exceptions::PyException;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyIterator, PyString};

use super::buffer::{self, Opened};
use super::filters;
use super::frames::Frame;
use super::listed::{is_missing, objects};
use super::queries;
use super::scalar::{hash_exact, hash_key_in};
use crate::answers::{self, Answer};
use crate::arrow::ArrowColumn;
use crate::arrow::export::Writer;
use crate::arrow::import::{self, Chunk, Chunks};
use crate::arrow::meaning::Meaning;
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
    /// Called with the number of keys before the first of them, where something stands beside each.
    fn expect(&self, _: Python<'_>, _keys: usize) -> PyResult<()> {
        Ok(())
    }
    /// True when the first key cannot be taken before the number of keys is known.
    fn needs_count(&self) -> PyResult<bool> {
        Ok(false)
    }
    /// True when some keys have no answer: a null in a column.
    const SPARSE: bool = false;
    /// Puts a 0 for each key without an answer in the last call of [`Operation::run`], where there may be such.
    fn unanswered(&self, _valid: &mut [u8]) {}
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
    /// [`Operation::expect`].
    fn expect(&self, py: Python<'_>, keys: usize) -> PyResult<()>;
    /// [`Operation::needs_count`].
    fn counts_first(&self) -> PyResult<bool>;
    /// [`Operation::SPARSE`].
    fn is_sparse(&self) -> bool;
    /// [`Operation::unanswered`].
    fn leave_out(&self, valid: &mut [u8]);
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

    fn expect(&self, py: Python<'_>, keys: usize) -> PyResult<()> {
        Operation::expect(self, py, keys)
    }

    fn counts_first(&self) -> PyResult<bool> {
        self.needs_count()
    }

    fn is_sparse(&self) -> bool {
        O::SPARSE
    }

    fn leave_out(&self, valid: &mut [u8]) {
        self.unanswered(valid);
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
            Opened::Column(column, _keep) => {
                operation.expect(py, column.len())?;
                if wanted {
                    return answers::like_buffer(keys, column.len(), |out| operation.work(py, &column, Some(out)));
                }
                operation.work(py, &column, None)?;
                return Ok(py.None().into_bound(py));
            }
            Opened::Objects => {}
            Opened::Texts => texts = true,
        }
    }
    if let Some(rows) = queries::fetched(keys)? {
        return column(operation, hasher, &rows, wanted);
    }
    queries::refuse(keys)?;
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
    let (py, meaning) = (keys.py(), Meaning::Keys(*hasher));
    if answers::is_pandas_floats(keys)? {
        let answer = run_any(operation, hasher, &keys.call_method0("to_numpy")?, wanted)?;
        return answers::like_series(keys, answer);
    }
    if answers::is_polars_objects(keys)? {
        let chunk = objects(hasher, &keys.call_method0("to_list")?, Bound::is_none)?;
        return arrow(operation, keys, Chunks::one(meaning, chunk), wanted);
    }
    if let Some(frame) = Frame::of(keys)? {
        return match frame.lend() {
            Ok(lent) => arrow(operation, keys, import::open(meaning, keys, &lent)?, wanted),
            Err(error) if error.is_instance_of::<PyException>(py) => {
                arrow(operation, keys, Chunks::one(meaning, frame.rows(hasher)?), wanted)
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
                return arrow(operation, keys, Chunks::one(meaning, chunk), wanted);
            }
            let values = keys.call_method0("to_numpy")?;
            let answer = run_any(operation, hasher, &values, wanted)?;
            return answers::like_series(keys, answer);
        }
        lent => lent?,
    };
    arrow(operation, keys, import::open(meaning, keys, &lent)?, wanted)
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
    operation.expect(py, len)?;
    let mut hashes = zeroed(turns::OBJECTS_A_TURN.min(len)).or_raise(py)?;
    let mut outs = zeroed(if wanted { hashes.len() } else { 0 }).or_raise(py)?;
    let mut answer = T::gather(py, if wanted { len } else { 0 })?;
    let mut start = 0;
    while start < len {
        let room = hashes.len().min(len - start);
        let (n, domains, error) = hash_items(hasher, items, start, &mut hashes[..room]);
        let source = Hashed { hashes: &hashes[..n], domains };
        if wanted {
            operation.work(py, &source, Some(&mut outs[..n]))?;
            answer.extend(&outs[..n])?;
        } else {
            operation.work(py, &source, None)?;
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
fn hash_items(
    hasher: &KeyHasher,
    items: &Items<'_, '_>,
    start: usize,
    out: &mut [u64],
) -> (usize, KeyDomains, Option<PyErr>) {
    let (mut done, mut domains) = (0, KeyDomains::NONE);
    while done < out.len() {
        // SAFETY: hashing keys of an exact class runs no Python code; they are alive meanwhile.
        done += unsafe {
            items.fill(start + done, &mut out[done..], |key| {
                let (hash, domain) = hash_exact(hasher, key)?;
                domains = domains.with(KeyDomains::of(domain));
                Some(hash)
            })
        };
        let Some(out) = out.get_mut(done) else { break };
        match items.get(start + done).map(|key| hash_key_in(hasher, &key)) {
            Some(Ok((hash, domain))) => {
                *out = hash;
                domains = domains.with(KeyDomains::of(domain));
            }
            Some(Err(error)) => return (done, domains, Some(error)),
            None => break,
        }
        done += 1;
    }
    (done, domains, None)
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
    if operation.counts_first()? {
        return gathered::<T, TEXTS>(operation, hasher, items, wanted);
    }
    operation.expect(py, 0)?;
    let mut hashes = Vec::new();
    reserve(&mut hashes, turns::OBJECTS_A_TURN).or_raise(py)?;
    let mut answer = Vec::new();
    loop {
        hashes.clear();
        let (mut error, mut domains) = (None, KeyDomains::NONE);
        while hashes.len() < turns::OBJECTS_A_TURN {
            match items.next().map(|item| item.and_then(|item| hash_key_in(hasher, &item).map(|key| (item, key)))) {
                Some(Ok((item, _))) if TEXTS && !item.is_instance_of::<PyString>() => error = Some(missing(py)),
                Some(Ok((_, (hash, domain)))) => {
                    hashes.push(hash);
                    domains = domains.with(KeyDomains::of(domain));
                }
                Some(Err(refused)) => error = Some(refused),
                None => break,
            }
            if error.is_some() {
                break;
            }
        }
        let (start, source) = (answer.len(), Hashed { hashes: hashes.as_slice(), domains });
        if wanted {
            reserve(&mut answer, hashes.len()).or_raise(py)?;
            answer.resize(start + hashes.len(), T::default());
            operation.work(py, &source, Some(&mut answer[start..]))?;
        } else {
            operation.work(py, &source, None)?;
        }
        if let Some(error) = error {
            return Err(at(py, done + hashes.len(), error));
        }
        if hashes.len() < turns::OBJECTS_A_TURN {
            return Ok(answer);
        }
        done += turns::OBJECTS_A_TURN;
        py.check_signals()?;
    }
}

/// [`iterated`] where something stands beside each key: all are hashed before the first is worked on, for only then is
/// it known how many there are.
fn gathered<T: Answer, const TEXTS: bool>(
    operation: &dyn AnyOperation<T>,
    hasher: &KeyHasher,
    items: Bound<'_, PyIterator>,
    wanted: bool,
) -> PyResult<Vec<T>> {
    let (py, mut hashes, mut domains) = (items.py(), Vec::new(), KeyDomains::NONE);
    for item in items {
        let item = item?;
        let hash =
            if TEXTS && !item.is_instance_of::<PyString>() { Err(missing(py)) } else { hash_key_in(hasher, &item) };
        let (hash, domain) = hash.map_err(|error| at(py, hashes.len(), error))?;
        domains = domains.with(KeyDomains::of(domain));
        turns::push(py, &mut hashes, hash)?;
    }
    operation.expect(py, hashes.len())?;
    let mut answer = zeros(py, if wanted { hashes.len() } else { 0 })?;
    let source = Hashed { hashes: hashes.as_slice(), domains };
    operation.work(py, &source, wanted.then_some(&mut answer[..]))?;
    Ok(answer)
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
        py.check_signals()?;
    }
    if operation.refuses_nulls() {
        operation.expect(py, ready.iter().map(|chunk| chunk.source.len()).fold(0, usize::saturating_add))?;
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
    let nullable = chunk.has_nulls() || operation.is_sparse();
    let mut column = wanted.then(|| Writer::with_room::<T>(py, len, nullable)).transpose()?;
    let mut marks = zeros::<u8>(py, room(nullable))?;
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
            let domains = part.domains();
            keys_alone(operation, py, (&mut hashes[..rows], domains), valid, wanted.then_some(&mut *out))?;
        } else {
            let nulls = nullable && valid.iter().all(|&valid| valid == 0);
            let part: &dyn HashSource = if nulls { &NoKeys(part) } else { &part };
            operation.work(py, part, wanted.then_some(&mut *out))?;
            operation.leave_out(valid);
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

/// Rows of which each is null, so that there is no key among them.
struct NoKeys<'a>(Part<'a>);

impl HashSource for NoKeys<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn fill(&self, start: usize, out: &mut [u64]) {
        self.0.fill(start, out);
    }

    fn domains(&self) -> KeyDomains {
        KeyDomains::NONE
    }
}

/// Room for the rows of a portion, which takes the system 5 ms.
fn zeros<T: Copy + Default + Send>(py: Python<'_>, len: usize) -> PyResult<Vec<T>> {
    turns::over(py, len, || zeroed(len)).or_raise(py)
}

/// Runs `operation` over those of `hashes` that `valid` has no 0 for; `out` is as long as both.
fn keys_alone<T: Answer>(
    operation: &dyn AnyOperation<T>,
    py: Python<'_>,
    (hashes, domains): (&mut [u64], KeyDomains),
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
    let source = Hashed { hashes: &hashes[..number], domains };
    operation.work(py, &source, out.as_deref_mut().map(|out| &mut out[..number]))?;
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
