//! Batches: from any container of keys, through hashes, to results in the same container type.

use fullbloom_core::cells::allocation::{reserve, zeroed};
use fullbloom_core::key::source::Hashed;
use fullbloom_core::key::{Domain, KeyDomains, KeyHasher};
use fullbloom_core::structure::HashSource;
use fullbloom_core::structure::batch::Part;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyString};

use super::buffer::{self, BufferView};
use super::refusals;
use super::scalar::{hash_exact, hash_int, hash_key_in};
use crate::arrow::ArrowColumn;
use crate::arrow::export::Writer;
use crate::arrow::import::{self, Chunk, Chunks};
use crate::arrow::meaning::Meaning;
use crate::arrow::nulls::Nulls;
use crate::cpython::{self, Items};
use crate::dataframes::exports::{self, Export};
use crate::dataframes::{queries, results};
use crate::errors::{OrRaise, at, key_type};
use crate::locking::slices;
use crate::python_objects::answers::{self, Answer};
use crate::python_objects::lists::ListBuilder;

/// What a batch does with hashes: adds them, looks them up, or returns them.
pub(crate) trait Operation {
    /// The result for each key.
    type Out: Answer;
    /// Processes all keys of `source`; fills `out` (as long as the source) if there is one.
    fn run(&self, py: Python<'_>, source: &dyn HashSource, out: Option<&mut [Self::Out]>) -> PyResult<()>;
    /// True if null rows must not reach [`Operation::run`].
    const SKIPS_NULLS: bool;
    /// True if a null row is an error: each key comes with a value.
    const REFUSES_NULLS: bool = false;
    /// Called with the number of keys before the first of them, if each key comes with a value.
    fn expect(&self, _: Python<'_>, _keys: usize) -> PyResult<()> {
        Ok(())
    }
    /// True if the number of keys must be known before the first is processed.
    fn needs_count(&self) -> PyResult<bool> {
        Ok(false)
    }
    /// True if some keys have no result, which is a null in a column.
    const SPARSE: bool = false;
    /// Writes a 0 for each key without a result in the last call of [`Operation::run`].
    fn mark_missing(&self, _valid: &mut [u8]) {}
}

/// An operation known only by the type of its results: batches are compiled once per type, and not once per operation of
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
    /// [`Operation::mark_missing`].
    fn mark_without_result(&self, valid: &mut [u8]);
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

    fn mark_without_result(&self, valid: &mut [u8]) {
        self.mark_missing(valid);
    }
}

/// Runs `operation` over `keys`; returns the results, or `None` if they are not wanted.
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
        return iterate_list(operation, hasher, &items, wanted);
    }
    refusals::refuse_filter(keys)?;
    refusals::refuse_single(keys)?;
    if exports::supports_arrow(keys)? {
        return column(operation, hasher, keys, wanted);
    }
    let mut texts = false;
    // SAFETY: a live object, and an attached thread.
    if unsafe { ffi::PyObject_CheckBuffer(keys.as_ptr()) } == 1 {
        match buffer::open(hasher, keys)? {
            BufferView::Column(column, _keep) => {
                operation.expect(py, column.len())?;
                if wanted {
                    return answers::like_buffer(keys, column.len(), |out| operation.work(py, &column, Some(out)));
                }
                operation.work(py, &column, None)?;
                return Ok(py.None().into_bound(py));
            }
            BufferView::Objects => {}
            BufferView::Texts => texts = true,
        }
    }
    if let Some(rows) = queries::fetch(keys)? {
        return column(operation, hasher, &rows, wanted);
    }
    queries::refuse(keys)?;
    let iterate = if texts { iterate::<T, true> } else { iterate::<T, false> };
    let answer = iterate(operation, hasher, keys, wanted)?;
    if wanted { answers::like_objects(keys, answer) } else { Ok(py.None().into_bound(py)) }
}

/// A column or a table that supports the Arrow interface.
fn column<'py, T: Answer>(
    operation: &dyn AnyOperation<T>,
    hasher: &KeyHasher,
    keys: &Bound<'py, PyAny>,
    wanted: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let meaning = Meaning::Keys(*hasher);
    let chunks = match exports::export(keys)? {
        Export::Capsules(capsules) => import::open(meaning, keys, &capsules)?,
        Export::Objects(objects, missing) => {
            let hash = |key: &Bound<'py, PyAny>| {
                if missing.is_null(key) { Ok(None) } else { hash_key_in(hasher, key).map(Some) }
            };
            let in_domain = |(hash, domain)| (hash, KeyDomains::of(domain));
            Chunks::one(meaning, Chunk::of(&objects, |key| hash(key).map(|hashed| hashed.map(in_domain)))?)
        }
        Export::Array(values) => {
            let answer = run_any(operation, hasher, &values, wanted)?;
            return results::wrap_in_series(keys, answer);
        }
    };
    arrow(operation, keys, chunks, wanted)
}

/// The error for a missing item of an array of texts.
#[cold]
fn refuse_missing(py: Python<'_>) -> PyErr {
    key_type(py, "a missing text is not a key; leave it out, or pass a column with nulls, which are skipped")
}

/// A list or a tuple: its length is known and its items are read without an iterator.
fn iterate_list<'py, T: Answer>(
    operation: &dyn AnyOperation<T>,
    hasher: &KeyHasher,
    items: &Items<'_, 'py>,
    wanted: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = items.keys.py();
    let len = items.keys.len()?;
    operation.expect(py, len)?;
    let mut hashes = zeroed(slices::OBJECTS_PER_SLICE.min(len)).or_raise(py)?;
    let mut outs = zeroed(if wanted { hashes.len() } else { 0 }).or_raise(py)?;
    let mut answer = T::start_list(py, if wanted { len } else { 0 })?;
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
    // Most lists hold keys of one class. Its domain is known once for all leading integers, and their class is the only
    // one to compare: 7.6 to 6.9 ns per key.
    // SAFETY: hashing an exact `int` runs no Python code; the keys are alive meanwhile.
    let mut done = unsafe { items.fill(start, out, |key| hash_int(hasher, key)) };
    let mut domains = if done > 0 { KeyDomains::of(Domain::Integer) } else { KeyDomains::NONE };
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

/// Any other iterable, of texts only if `TEXTS`; keys before a refused one are processed.
fn iterate<T: Answer, const TEXTS: bool>(
    operation: &dyn AnyOperation<T>,
    hasher: &KeyHasher,
    keys: &Bound<'_, PyAny>,
    wanted: bool,
) -> PyResult<Vec<T>> {
    let (py, mut done) = (keys.py(), 0);
    let mut items = keys.try_iter()?;
    if operation.counts_first()? {
        return iterate_counted::<T, TEXTS>(operation, hasher, items, wanted);
    }
    operation.expect(py, 0)?;
    let mut hashes = Vec::new();
    reserve(&mut hashes, slices::OBJECTS_PER_SLICE).or_raise(py)?;
    let mut answer = Vec::new();
    loop {
        hashes.clear();
        let (mut error, mut domains) = (None, KeyDomains::NONE);
        while hashes.len() < slices::OBJECTS_PER_SLICE {
            match items.next().map(|item| item.and_then(|item| hash_key_in(hasher, &item).map(|key| (item, key)))) {
                Some(Ok((item, _))) if TEXTS && !item.is_instance_of::<PyString>() => error = Some(refuse_missing(py)),
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
        if hashes.len() < slices::OBJECTS_PER_SLICE {
            return Ok(answer);
        }
        done += slices::OBJECTS_PER_SLICE;
        py.check_signals()?;
    }
}

/// [`iterate`] for keys that come with values: all keys are hashed before the first is processed, because only then is
/// their number known.
fn iterate_counted<T: Answer, const TEXTS: bool>(
    operation: &dyn AnyOperation<T>,
    hasher: &KeyHasher,
    items: Bound<'_, PyIterator>,
    wanted: bool,
) -> PyResult<Vec<T>> {
    let (py, mut hashes, mut domains) = (items.py(), Vec::new(), KeyDomains::NONE);
    for item in items {
        let item = item?;
        let hash = if TEXTS && !item.is_instance_of::<PyString>() {
            Err(refuse_missing(py))
        } else {
            hash_key_in(hasher, &item)
        };
        let (hash, domain) = hash.map_err(|error| at(py, hashes.len(), error))?;
        domains = domains.with(KeyDomains::of(domain));
        slices::push(py, &mut hashes, hash)?;
    }
    operation.expect(py, hashes.len())?;
    let mut answer = zeros(py, if wanted { hashes.len() } else { 0 })?;
    let source = Hashed { hashes: hashes.as_slice(), domains };
    operation.work(py, &source, wanted.then_some(&mut answer[..]))?;
    Ok(answer)
}

/// Rows of a column with nulls or results that are processed together, so that the length that a producer states never
/// decides how much memory is allocated. With several threads a round of them is 10 ms of work or more.
const PORTION: usize = 1 << 22;

/// The chunks of an Arrow column; nulls are not keys, and their result is null.
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
            return Err(key_type(py, "null keys cannot have values; drop the rows with nulls first"));
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
        } else if wanted || !operation.skips_nulls() || !matches!(chunk.nulls, Nulls::All) {
            parts.extend(run_portions(operation, py, &chunk, wanted)?);
        }
        py.check_signals()?;
    }
    if wanted { answers::like_arrow::<T>(keys, parts, chunks.streamed) } else { Ok(py.None().into_bound(py)) }
}

/// Processes one chunk, a portion at a time; returns the column of its results if they are wanted.
fn run_portions<T: Answer>(
    operation: &dyn AnyOperation<T>,
    py: Python<'_>,
    chunk: &Chunk,
    wanted: bool,
) -> PyResult<Option<ArrowColumn>> {
    let len = chunk.source.len();
    let rows_if = |needed: bool| if needed { PORTION.min(len) } else { 0 };
    let skips = operation.skips_nulls() && chunk.has_nulls();
    let nullable = chunk.has_nulls() || operation.is_sparse();
    let mut column = wanted.then(|| Writer::with_capacity::<T>(py, len, nullable)).transpose()?;
    let mut marks = zeros::<u8>(py, rows_if(nullable))?;
    let mut hashes = zeros::<u64>(py, rows_if(skips))?;
    let mut outs = zeros::<T>(py, rows_if(wanted))?;
    for start in (0..len).step_by(PORTION) {
        let rows = PORTION.min(len - start);
        let valid = marks.get_mut(..rows).unwrap_or_default();
        slices::detach_if_long(py, valid.len(), || chunk.nulls.mark(start, valid));
        let out = outs.get_mut(..rows).unwrap_or_default();
        let part = Part { source: &*chunk.source, start, len: rows };
        if skips {
            py.detach(|| part.fill(0, &mut hashes[..rows]));
            let domains = part.domains();
            run_valid(operation, py, (&mut hashes[..rows], domains), valid, wanted.then_some(&mut *out))?;
        } else {
            let nulls = nullable && valid.iter().all(|&valid| valid == 0);
            let part: &dyn HashSource = if nulls { &NoKeys(part) } else { &part };
            operation.work(py, part, wanted.then_some(&mut *out))?;
            operation.mark_without_result(valid);
        }
        if let Some(column) = &mut column {
            slices::detach_if_long(py, rows, || column.append(out, valid));
        }
        py.check_signals()?;
    }
    // Frees 40 MB.
    slices::detach_if_long(py, len, || drop((marks, hashes, outs)));
    Ok(column.map(Writer::finish::<T>))
}

/// Rows that are all null, so that none is a key.
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

/// Zeros for the rows of a portion; the system takes 5 ms to allocate them.
fn zeros<T: Copy + Default + Send>(py: Python<'_>, len: usize) -> PyResult<Vec<T>> {
    slices::detach_if_long(py, len, || zeroed(len)).or_raise(py)
}

/// Runs `operation` over those of `hashes` for which `valid` has no 0; `out` is as long as both.
fn run_valid<T: Answer>(
    operation: &dyn AnyOperation<T>,
    py: Python<'_>,
    (hashes, domains): (&mut [u64], KeyDomains),
    valid: &[u8],
    mut out: Option<&mut [T]>,
) -> PyResult<()> {
    let rows = || (0..valid.len()).filter(|&i| valid[i] != 0);
    // No row moves behind its position, so no second copy is needed; nor does a result when it moves back.
    let mut number = 0;
    slices::detach_if_long(py, valid.len(), || {
        for i in rows() {
            hashes[number] = hashes[i];
            number += 1;
        }
    });
    let source = Hashed { hashes: &hashes[..number], domains };
    operation.work(py, &source, out.as_deref_mut().map(|out| &mut out[..number]))?;
    if let Some(out) = out {
        slices::detach_if_long(py, valid.len(), || {
            out[number..].fill(T::default());
            for i in rows().rev() {
                number -= 1;
                out[i] = std::mem::take(&mut out[number]);
            }
        });
    }
    Ok(())
}
