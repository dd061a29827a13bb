//! Arrow columns from anything that speaks the PyCapsule interface.

use std::ffi::CStr;

use bloomery_core::cells::allocation::reserve;
use bloomery_core::key::KeyHasher;
use bloomery_core::structure::HashSource;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyCapsule, PyTuple};

use super::ffi::{Array, Schema, Stream};
use crate::errors::{OrRaise, key_type};
use crate::keys::HASHED_AT_A_TIME;
use crate::keys::column::{Column, Dictionary, Fixed, Values};

/// One array of a column: how to hash it, which rows are null, and what keeps it alive.
pub(crate) struct Chunk {
    pub(crate) source: Box<dyn HashSource + Send>,
    /// A 0 for each null row; `None` when there is none.
    pub(crate) valid: Option<Vec<u8>>,
    _owner: Array,
}

impl Chunk {
    /// The hashes of `items`, each made by `hash`, which gives none for a null.
    pub(crate) fn of<'py>(
        items: &Bound<'py, PyAny>,
        mut hash: impl FnMut(&Bound<'py, PyAny>) -> PyResult<Option<u64>>,
    ) -> PyResult<Self> {
        let (mut hashes, mut valid) = (Vec::new(), Vec::new());
        for item in items.try_iter()? {
            let hash = hash(&item?)?;
            reserve(&mut hashes, 1).and_then(|()| reserve(&mut valid, 1)).or_raise(items.py())?;
            hashes.push(hash.unwrap_or_default());
            valid.push(u8::from(hash.is_some()));
            if hashes.len().is_multiple_of(HASHED_AT_A_TIME) {
                items.py().check_signals()?;
            }
        }
        let valid = valid.contains(&0).then_some(valid);
        Ok(Chunk { source: Box::new(hashes), valid, _owner: Array::empty() })
    }
}

/// True when `keys` speaks the interface.
pub(crate) fn speaks(keys: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(keys.hasattr("__arrow_c_array__")? || keys.hasattr("__arrow_c_stream__")?)
}

/// The capsules of `keys`: a pair for an array, a single one for a stream. Runs the exporter's code.
pub(crate) fn lend<'py>(keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let array = keys.hasattr("__arrow_c_array__")?;
    keys.call_method0(if array { "__arrow_c_array__" } else { "__arrow_c_stream__" })
}

/// All chunks of the column that was lent, and whether it came as a stream.
pub(crate) fn open(hasher: &KeyHasher, lent: &Bound<'_, PyAny>) -> PyResult<(Vec<Chunk>, bool)> {
    let py = lent.py();
    if let Ok(pair) = lent.cast::<PyTuple>() {
        let (schema, array) = (pair.get_item(0)?, pair.get_item(1)?);
        let schema: Schema = take(&schema, c"arrow_schema", Schema::empty())?;
        let array: Array = take(&array, c"arrow_array", Array::empty())?;
        return Ok((vec![chunk(py, hasher, &schema, array)?], false));
    }
    let mut stream: Stream = take(lent, c"arrow_array_stream", Stream::empty())?;
    let (Some(get_schema), Some(get_next)) = (stream.get_schema, stream.get_next) else {
        return Err(PyRuntimeError::new_err("the Arrow stream is already consumed"));
    };
    let mut schema = Schema::empty();
    // SAFETY: the stream is alive and ours; both structures are valid to fill.
    checked(unsafe { get_schema(&mut stream, &mut schema) }, &mut stream)?;
    let mut chunks = Vec::new();
    loop {
        let mut array = Array::empty();
        // SAFETY: as above.
        checked(unsafe { get_next(&mut stream, &mut array) }, &mut stream)?;
        if array.release.is_none() {
            return Ok((chunks, true));
        }
        chunks.push(chunk(py, hasher, &schema, array)?);
    }
}

/// Moves the structure out of its capsule, leaving an empty one behind as the interface asks.
fn take<T>(capsule: &Bound<'_, PyAny>, name: &CStr, empty: T) -> PyResult<T> {
    let capsule = capsule.cast::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(name))?;
    // SAFETY: a capsule of this name holds a pointer to a live T, by the PyCapsule interface; of two threads
    // that were lent one capsule, the second finds the empty structure.
    Ok(with_critical_section(capsule, || unsafe { pointer.cast::<T>().replace(empty) }))
}

fn checked(code: i32, stream: &mut Stream) -> PyResult<()> {
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

fn format_of(schema: &Schema) -> String {
    if schema.format.is_null() {
        return String::new();
    }
    // SAFETY: the format of a live schema is a NUL-terminated string.
    unsafe { CStr::from_ptr(schema.format) }.to_string_lossy().into_owned()
}

fn chunk(py: Python<'_>, hasher: &KeyHasher, schema: &Schema, array: Array) -> PyResult<Chunk> {
    let mut valid = validity(schema, &array);
    let source: Box<dyn HashSource + Send> = if schema.dictionary.is_null() {
        Box::new(column(py, hasher, &format_of(schema), &array)?)
    } else {
        let (dictionary, nulls) = dictionary(py, hasher, schema, &array, valid.as_deref())?;
        if let Some(values) = nulls {
            // A row that points at a null value is a null too.
            let rows = valid.get_or_insert_with(|| vec![1; dictionary.indices.len()]);
            for (row, &i) in rows.iter_mut().zip(&dictionary.indices) {
                *row &= values.get(i as usize).copied().unwrap_or(0);
            }
        }
        Box::new(dictionary)
    };
    Ok(Chunk { source, valid, _owner: array })
}

fn buffer(array: &Array, i: i64) -> *const u8 {
    if i >= array.n_buffers {
        return std::ptr::null();
    }
    // SAFETY: `buffers` has `n_buffers` entries.
    unsafe { *array.buffers.add(i as usize) }.cast()
}

/// A 0 for each null row, from Arrow's bitmap; `None` when there is none.
fn validity(schema: &Schema, array: &Array) -> Option<Vec<u8>> {
    if format_of(schema) == "n" {
        return Some(vec![0; array.length as usize]);
    }
    let bits = buffer(array, 0);
    if array.null_count == 0 || bits.is_null() {
        return None;
    }
    let (first, len) = (array.offset as usize, array.length as usize);
    // SAFETY: the bitmap has a bit for every row.
    Some((first..first + len).map(|bit| unsafe { *bits.add(bit >> 3) } >> (bit & 7) & 1).collect())
}

/// A plain column; the format strings are those of the C data interface.
fn column(py: Python<'_>, hasher: &KeyHasher, format: &str, array: &Array) -> PyResult<Column> {
    let (offset, len) = (array.offset as usize, array.length as usize);
    let data = buffer(array, 1);
    let fixed =
        |class, width: usize| Values::Fixed { base: data.wrapping_add(offset * width), stride: width as isize, class };
    let text = buffer(array, 2);
    let values = match format {
        // Nothing but nulls, and no buffer: none of it is read.
        "n" => fixed(Fixed::Bytes(0), 0),
        "c" => fixed(Fixed::I8, 1),
        "C" => fixed(Fixed::U8, 1),
        "s" => fixed(Fixed::I16, 2),
        "S" => fixed(Fixed::U16, 2),
        "i" => fixed(Fixed::I32, 4),
        "I" => fixed(Fixed::U32, 4),
        "l" => fixed(Fixed::I64, 8),
        "L" => fixed(Fixed::U64, 8),
        "e" => fixed(Fixed::F16, 2),
        "f" => fixed(Fixed::F32, 4),
        "g" => fixed(Fixed::F64, 8),
        "b" => Values::Bits { base: data, first: offset },
        "u" | "z" => Values::Text32 { offsets: data.wrapping_add(4 * offset).cast(), data: text },
        "U" | "Z" => Values::Text64 { offsets: data.wrapping_add(8 * offset).cast(), data: text },
        "vu" | "vz" => Values::Views {
            views: data.wrapping_add(16 * offset),
            buffers: array.buffers.wrapping_add(2).cast_const().cast(),
        },
        _ => match format.strip_prefix("w:").and_then(|width| width.parse().ok()) {
            Some(width) => fixed(Fixed::Bytes(width), width),
            None if format == "+s" => {
                let what = "a table, frame or column of structs (Arrow format \"+s\") holds no keys";
                return Err(key_type(py, format!("{what}; pass one column of it")));
            }
            None => {
                return Err(key_type(
                    py,
                    format!(
                        "an Arrow column of format {format:?} holds no keys; pass integers, floats, booleans, \
                         text, binary or a dictionary of these (dates: cast to int64 first)"
                    ),
                ));
            }
        },
    };
    // An empty column may come without buffers, and of no rows none is read.
    if len > 0 && data.is_null() && format != "n" {
        return Err(key_type(py, "the Arrow column has no data buffer"));
    }
    // SAFETY: the interface promises this layout until the array is released, which the chunk does that
    // keeps both.
    Ok(unsafe { Column::new(hasher, values, len) })
}

/// A dictionary column: the distinct values are hashed once.
/// Also tells which of the values are null.
fn dictionary(
    py: Python<'_>,
    hasher: &KeyHasher,
    schema: &Schema,
    array: &Array,
    valid: Option<&[u8]>,
) -> PyResult<(Dictionary, Option<Vec<u8>>)> {
    // SAFETY: both are alive as long as their parents, which the caller holds.
    let (inner_schema, inner) = unsafe { (&*schema.dictionary, array.dictionary.as_ref()) };
    let Some(inner) = inner else {
        return Err(key_type(py, "the Arrow dictionary column has no dictionary"));
    };
    let distinct = column(py, hasher, &format_of(inner_schema), inner)?;
    let mut hashes = vec![0; distinct.len()];
    distinct.fill(0, &mut hashes);
    let (base, offset) = (buffer(array, 1), array.offset as usize);
    let width = match format_of(schema).as_str() {
        "c" | "C" => 1,
        "s" | "S" => 2,
        "i" | "I" => 4,
        "l" | "L" => 8,
        other => return Err(key_type(py, format!("dictionary indices of format {other:?} are not known"))),
    };
    let index = |i: usize| {
        if valid.is_some_and(|valid| valid[i] == 0) {
            return Ok(0);
        }
        let mut raw = [0u8; 8];
        // SAFETY: index i of the column, `width` bytes.
        unsafe { std::ptr::copy_nonoverlapping(base.add((offset + i) * width), raw.as_mut_ptr(), width) };
        match u32::try_from(u64::from_le_bytes(raw)) {
            Ok(index) if (index as usize) < hashes.len() => Ok(index),
            _ => Err(key_type(py, "an Arrow dictionary index points outside of its dictionary")),
        }
    };
    let indices = (0..array.length as usize).map(index).collect::<PyResult<_>>()?;
    Ok((Dictionary { hashes, indices }, validity(inner_schema, inner)))
}
