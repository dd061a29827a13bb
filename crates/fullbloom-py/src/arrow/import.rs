//! Arrow columns from any object that supports the PyCapsule interface.

use std::ffi::CStr;

use fullbloom_core::key::KeyDomains;
use fullbloom_core::key::source::Hashed;
use fullbloom_core::structure::HashSource;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::PyCapsule;

use super::dictionary::{self, Dictionary};
use super::ffi::{Array, Schema, Stream};
use super::indices::Indices;
use super::meaning::Meaning;
use super::nulls::Nulls;
use super::rows::{self, Rows};
use super::stated::{Stated, format_of, refuse};
use crate::dataframes::exports::too_few_columns;
use crate::dataframes::queries;
use crate::errors::{at, key_type};
use crate::locking::slices;

/// One array of a column: how to hash it, which rows are null, and what keeps it alive.
pub(crate) struct Chunk {
    pub(crate) source: Box<dyn HashSource + Send>,
    pub(crate) nulls: Nulls,
    _owner: Array,
}

impl Chunk {
    /// The hashes of `items`, each computed by `hash`, which returns `None` for a null.
    pub(crate) fn of<'py>(
        items: &Bound<'py, PyAny>,
        mut hash: impl FnMut(&Bound<'py, PyAny>) -> PyResult<Option<(u64, KeyDomains)>>,
    ) -> PyResult<Self> {
        let (py, mut hashes, mut valid, mut domains) = (items.py(), Vec::new(), Vec::new(), KeyDomains::NONE);
        for item in items.try_iter()? {
            let hash = hash(&item?).map_err(|error| at(py, hashes.len(), error))?;
            slices::push(py, &mut valid, u8::from(hash.is_some()))?;
            let (hash, domain) = hash.unwrap_or_default();
            domains = domains.with(domain);
            slices::push(py, &mut hashes, hash)?;
        }
        let nulls = if valid.contains(&0) { Nulls::Marks(valid) } else { Nulls::None };
        Ok(Chunk { source: Box::new(Hashed { hashes, domains }), nulls, _owner: Array::empty() })
    }

    /// Whether some of its rows are null.
    pub(crate) fn has_nulls(&self) -> bool {
        !matches!(self.nulls, Nulls::None)
    }
}

/// The chunks of a column, one after the other: a stream is read as it is processed.
pub(crate) struct Chunks {
    meaning: Meaning,
    /// True if they are structs of one field, which is the column.
    wrapped: bool,
    schema: Schema,
    first: Option<Chunk>,
    stream: Option<Stream>,
    /// True if they come as a stream, so that there may be any number of them.
    pub(crate) streamed: bool,
}

impl Chunks {
    /// One chunk.
    pub(crate) fn one(meaning: Meaning, chunk: Chunk) -> Self {
        Chunks { meaning, wrapped: false, schema: Schema::empty(), first: Some(chunk), stream: None, streamed: false }
    }

    /// The next chunk. Runs the exporter's code.
    pub(crate) fn next(&mut self, py: Python<'_>) -> PyResult<Option<Chunk>> {
        if let Some(chunk) = self.first.take() {
            return Ok(Some(chunk));
        }
        let Some(stream) = &mut self.stream else { return Ok(None) };
        let mut array = Array::empty();
        let code = match stream.get_next {
            // SAFETY: the stream is alive and ours; the structure is valid to fill.
            Some(get_next) => unsafe { get_next(stream, &mut array) },
            None => return Err(refuse(py, "no function to get its chunks")),
        };
        check(code, stream)?;
        if array.release.is_none() {
            self.stream = None;
            return Ok(None);
        }
        chunk(py, self.meaning, self.wrapped, &self.schema, array).map(Some)
    }
}

/// The chunks of the column that `keys` has exported as `capsules`.
pub(crate) fn open(meaning: Meaning, keys: &Bound<'_, PyAny>, capsules: &Bound<'_, PyAny>) -> PyResult<Chunks> {
    let py = capsules.py();
    if let Ok(pair) = capsules.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() {
        let schema: Schema = take(&pair.0, c"arrow_schema", Schema::empty())?;
        let array: Array = take(&pair.1, c"arrow_array", Array::empty())?;
        if schema.release.is_none() || array.release.is_none() {
            return Err(refuse_consumed(py));
        }
        let wrapped = is_wrapped(keys, &schema)?;
        return Ok(Chunks::one(meaning, chunk(py, meaning, wrapped, &schema, array)?));
    }
    let mut stream: Stream = take(capsules, c"arrow_array_stream", Stream::empty())?;
    let (Some(get_schema), Some(_)) = (stream.get_schema, stream.release) else { return Err(refuse_consumed(py)) };
    let mut schema = Schema::empty();
    // SAFETY: the stream is alive and ours; the structure is valid to fill.
    check(unsafe { get_schema(&mut stream, &mut schema) }, &mut stream)?;
    let wrapped = is_wrapped(keys, &schema)?;
    Ok(Chunks { meaning, wrapped, schema, first: None, stream: Some(stream), streamed: true })
}

/// The error for capsules that other code has consumed already.
pub(super) fn refuse_consumed(py: Python<'_>) -> PyErr {
    key_type(py, "the Arrow column is already consumed and holds no keys; export it again")
}

/// Moves the structure out of its capsule, leaving an empty one behind as the interface asks.
pub(super) fn take<T>(capsule: &Bound<'_, PyAny>, name: &CStr, empty: T) -> PyResult<T> {
    let py = capsule.py();
    let unnamed = |error: PyErr| {
        let what = format!("an Arrow export must be a capsule named {name:?} or a pair of a schema and an array");
        key_type(py, format!("{what}; this one holds no keys ({})", error.value(py)))
    };
    let capsule = capsule.cast::<PyCapsule>().map_err(|error| unnamed(error.into()))?;
    let pointer = capsule.pointer_checked(Some(name)).map_err(unnamed)?;
    // SAFETY: a capsule of this name holds a pointer to a live T, by the PyCapsule interface; of two threads
    // that share one capsule, the second finds the empty structure.
    Ok(with_critical_section(capsule, || unsafe { pointer.cast::<T>().replace(empty) }))
}

pub(super) fn check(code: i32, stream: &mut Stream) -> PyResult<()> {
    if code == 0 {
        return Ok(());
    }
    let message = stream.get_last_error.map_or(std::ptr::null(), |last| {
        // SAFETY: the stream is alive; the text stays valid until its next call.
        unsafe { last(stream) }
    });
    let text = if message.is_null() {
        format!("error {code}")
    } else {
        // SAFETY: a non-null answer is a NUL-terminated string.
        unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned()
    };
    Err(PyRuntimeError::new_err(format!("reading the Arrow stream failed: {text}")))
}

/// The chunk of one array; `wrapped` as of [`Chunks`].
fn chunk(py: Python<'_>, meaning: Meaning, wrapped: bool, schema: &Schema, array: Array) -> PyResult<Chunk> {
    let (source, nulls) = if wrapped {
        let (schema, array) = rows::only_field(py, schema, &array)?;
        values(py, meaning, schema, array)?
    } else {
        values(py, meaning, schema, &array)?
    };
    Ok(Chunk { source, nulls, _owner: array })
}

/// How to hash the values of an array, and which of them are null.
pub(super) fn values(
    py: Python<'_>,
    meaning: Meaning,
    schema: &Schema,
    array: &Array,
) -> PyResult<(Box<dyn HashSource + Send>, Nulls)> {
    let format = format_of(schema);
    let stated = Stated::new(py, array)?;
    let dictionary = dictionary::find(py, schema, array)?;
    if format == "+s" {
        let (source, nulls) = Rows::new(&meaning.hasher(py, &format)?, schema, &stated, 1)?;
        return Ok((Box::new(source), nulls));
    }
    let nulls = Nulls::of(&format, &stated)?;
    let Some((values_schema, values_array)) = dictionary else {
        return Ok((Box::new(meaning.column(&format, &stated, &nulls)?), nulls));
    };
    let indices = Indices::of(&stated, &format)?;
    let (values, null_values) = dictionary::values(py, meaning, values_schema, values_array)?;
    let source = Box::new(Dictionary::new(&stated, indices, &nulls, values)?);
    let nulls = nulls.with_values(py, indices, null_values, stated.len)?;
    Ok((source, nulls))
}

/// True if the values of the only column are the keys: for a query, which has no other way to name a column. Refuses any
/// other table, frame or struct of one column: most callers mean its values, and no key is a tuple of one.
fn is_wrapped(keys: &Bound<'_, PyAny>, schema: &Schema) -> PyResult<bool> {
    match schema.n_children {
        _ if format_of(schema) != "+s" => Ok(false),
        1 if queries::is_relation(keys) => Ok(true),
        ..2 => Err(too_few_columns(keys)),
        _ => Ok(false),
    }
}
