//! Columns from the buffer protocol (PEP 3118): NumPy arrays, array.array, memoryview.

use fullbloom_core::key::KeyHasher;
use fullbloom_core::structure::HashSource;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

use super::moments;
use crate::column::ticks::Ticks;
use crate::column::{Column, Fixed, Values};
use crate::errors::{at, key_type, parameter};
use crate::locking::slices;

/// What a buffer holds.
#[allow(clippy::large_enum_variant)] // one at a time, on the stack
pub(crate) enum BufferView {
    /// Values that are hashed in place, and the buffer that keeps them alive.
    Column(Column, PyUntypedBuffer),
    /// Python objects, or records, which the caller iterates over instead.
    Objects,
    /// NumPy's own texts without a buffer (`StringDType`), some of which may be missing: likewise.
    Texts,
}

/// The values of `keys`, which supports the buffer protocol.
pub(crate) fn open(hasher: &KeyHasher, keys: &Bound<'_, PyAny>) -> PyResult<BufferView> {
    let py = keys.py();
    let dimensions =
        |n: usize| parameter(py, format!("a batch of keys must have one dimension, got {n}; pass keys.ravel()"));
    // The buffer of a NumPy masked array holds the values under the mask too.
    if keys.hasattr("mask")? && keys.hasattr("compressed")? {
        return Err(key_type(
            py,
            "a masked array hides some of its keys; pass array.compressed() or array.filled(...)",
        ));
    }
    // NumPy refuses the buffer of a scalar array with an error of its own.
    if let Ok(n) = keys.getattr("ndim").and_then(|ndim| ndim.extract::<usize>())
        && n != 1
    {
        return Err(dimensions(n));
    }
    let (buffer, ticks) = match PyUntypedBuffer::get(keys) {
        Ok(buffer) => (buffer, None),
        // NumPy exports no buffer of dates, durations, texts of any length or records of dates.
        Err(error) => match find_hidden(keys)? {
            Hidden::Ticks(ticks, numbers) => (PyUntypedBuffer::get(&numbers)?, Some(ticks)),
            Hidden::Objects => return Ok(BufferView::Objects),
            Hidden::Texts => return Ok(BufferView::Texts),
            Hidden::Nothing => {
                return Err(key_type(py, format!("the buffer holds no keys ({}); pass a list", error.value(py))));
            }
        },
    };
    if buffer.dimensions() != 1 {
        return Err(dimensions(buffer.dimensions()));
    }
    if buffer.suboffsets().is_some_and(|suboffsets| suboffsets[0] >= 0) {
        return Err(key_type(
            py,
            "the buffer holds pointers to its values (suboffsets); pass bytes, a list or an array",
        ));
    }
    if isize::try_from(buffer.shape()[0]).is_err() {
        return Err(key_type(py, "the buffer states a negative number of values; pass a list or an array"));
    }
    let format = buffer.format().to_string_lossy();
    let Some(class) = parse(&format, buffer.item_size()) else {
        // Records are the tuples of their fields.
        let objects = format == "O" || format.starts_with("T{") && buffer.item_size() > 0;
        if objects && !keys.is_instance_of::<PyMemoryView>() {
            return Ok(BufferView::Objects);
        }
        if format == "O" {
            // Its own iterator cannot read them either.
            return Err(key_type(py, "a memoryview does not hand out Python objects; pass the array that it views"));
        }
        if is_swapped(&format) {
            return Err(refuse_swapped(py, &format));
        }
        let remedy = "pass integers, floats, bytes, text, dates, durations or records";
        return Err(key_type(py, format!("a buffer of format {format:?} holds no keys; {remedy}")));
    };
    let class = ticks.map_or(class, |ticks| Fixed::Ticks(ticks, 8));
    let values = Values::Fixed { base: buffer.buf_ptr().cast(), stride: buffer.strides()[0], class };
    // SAFETY: the buffer states its layout, and does not move or free its memory before it is given back. The
    // number of items is in its shape: its length in bytes is 0 for items of 0 bytes.
    let column = unsafe { Column::new(hasher, values, buffer.shape()[0]) };
    if let Some(points) = column.points()
        && let Some(i) = slices::find_first_wide(py, column.len(), points, |rows| column.find_invalid_text(rows))?
    {
        return Err(at(
            py,
            i,
            key_type(py, "a str key must encode to UTF-8, this one holds a lone surrogate; leave it out"),
        ));
    }
    if ticks.is_some()
        && let Some(i) = slices::find_first(py, column.len(), |rows| column.find_not_a_time(rows))?
    {
        let remedy = "pass array[~numpy.isnat(array)], or a column in which it is a null";
        return Err(at(py, i, key_type(py, format!("NaT is not a key; {remedy}"))));
    }
    Ok(BufferView::Column(column, buffer))
}

/// The content of a NumPy array without a buffer.
enum Hidden<'py> {
    /// Dates or durations, and the array of their numbers.
    Ticks(Ticks, Bound<'py, PyAny>),
    Objects,
    Texts,
    Nothing,
}

fn find_hidden<'py>(keys: &Bound<'py, PyAny>) -> PyResult<Hidden<'py>> {
    let Some(dtype) = keys.getattr_opt("dtype")? else { return Ok(Hidden::Nothing) };
    let kind = dtype.getattr_opt("kind")?.and_then(|kind| kind.extract::<char>().ok());
    match kind {
        Some('M' | 'm') => {
            if !dtype.getattr("isnative")?.is_truthy()? {
                return Err(refuse_swapped(keys.py(), &dtype.str()?.to_string_lossy()));
            }
            let (ticks, keys) = moments::units(keys)?;
            Ok(Hidden::Ticks(ticks, keys.call_method1("view", ("int64",))?))
        }
        Some('T') => Ok(Hidden::Texts),
        Some('V') if !dtype.getattr("names")?.is_none() => Ok(Hidden::Objects),
        _ => Ok(Hidden::Nothing),
    }
}

/// The error for numbers in the other byte order.
fn refuse_swapped(py: Python<'_>, format: &str) -> PyErr {
    let remedy = "pass array.astype(array.dtype.newbyteorder(\"=\"))";
    key_type(py, format!("a buffer of format {format:?} is in foreign byte order; as keys {remedy}"))
}

/// True for a format string in the other byte order.
fn is_swapped(format: &str) -> bool {
    if cfg!(target_endian = "little") { format.starts_with(['>', '!']) } else { format.starts_with('<') }
}

/// The element type of a native-order format string, if its items are as wide as it says.
fn parse(format: &str, item_size: usize) -> Option<Fixed> {
    let native = if cfg!(target_endian = "little") { '<' } else { '>' };
    let code = format.strip_prefix(['@', '=', native]).unwrap_or(format).as_bytes();
    let (&last, count) = code.split_last()?;
    let swapped = is_swapped(format);
    let width = if swapped { count.get(1..)? } else { count };
    match last {
        _ if !width.iter().all(u8::is_ascii_digit) => return None,
        // Single bytes, with no order to be swapped.
        b's' => return Some(Fixed::Padded(item_size)),
        b'x' if item_size > 0 && !width.is_empty() => return Some(Fixed::Bytes(item_size)),
        _ if swapped => return None,
        b'w' if item_size.is_multiple_of(4) => return Some(Fixed::Utf32(item_size / 4)),
        _ if !width.is_empty() => return None,
        _ => {}
    }
    let class = match (last, item_size) {
        (b'b' | b'h' | b'i' | b'l' | b'q' | b'n', 1) => Fixed::I8,
        (b'b' | b'h' | b'i' | b'l' | b'q' | b'n', 2) => Fixed::I16,
        (b'b' | b'h' | b'i' | b'l' | b'q' | b'n', 4) => Fixed::I32,
        (b'b' | b'h' | b'i' | b'l' | b'q' | b'n', 8) => Fixed::I64,
        (b'B' | b'H' | b'I' | b'L' | b'Q' | b'N', 1) => Fixed::U8,
        (b'B' | b'H' | b'I' | b'L' | b'Q' | b'N', 2) => Fixed::U16,
        (b'B' | b'H' | b'I' | b'L' | b'Q' | b'N', 4) => Fixed::U32,
        (b'B' | b'H' | b'I' | b'L' | b'Q' | b'N', 8) => Fixed::U64,
        (b'?', 1) => Fixed::Bool,
        (b'e', 2) => Fixed::F16,
        (b'f', 4) => Fixed::F32,
        (b'd', 8) => Fixed::F64,
        _ => return None,
    };
    Some(class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_formats_are_parsed() {
        assert_eq!(parse("l", 8), Some(Fixed::I64));
        assert_eq!(parse("<q", 8), Some(Fixed::I64));
        assert_eq!(parse("10s", 10), Some(Fixed::Padded(10)));
        assert_eq!(parse("5w", 20), Some(Fixed::Utf32(5)));
        assert_eq!(parse("0s", 0), Some(Fixed::Padded(0)));
        assert_eq!(parse("0w", 0), Some(Fixed::Utf32(0)));
        for foreign in ["Zd", "O", "3d", "T{l:a:}", "T{s", ">q", ">5w", "", "é", "3é", "és", "<", "@é"] {
            for item_size in [0, 1, 8, 16] {
                assert_eq!(parse(foreign, item_size), None);
            }
        }
        for (format, item_size) in [("d", 1), ("e", 8), ("q", 16), ("?", 2), ("w", 3), ("Q", 0)] {
            assert_eq!(parse(format, item_size), None);
        }
    }
}
