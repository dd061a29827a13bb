//! Columns from the buffer protocol (PEP 3118): NumPy arrays, array.array, memoryview.

use bloomery_core::key::KeyHasher;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;

use super::column::{Column, Fixed, Values};
use crate::errors::{key_type, parameter};

/// What a buffer holds.
pub(crate) enum Buffer {
    /// Values hashed in place. The buffer keeps them alive.
    Column(Column, PyUntypedBuffer),
    /// Python objects: iterate instead.
    Objects,
}

/// Reads the layout of `keys`, which supports the buffer protocol.
pub(crate) fn open(hasher: &KeyHasher, keys: &Bound<'_, PyAny>) -> PyResult<Buffer> {
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
    // NumPy refuses the buffer of a scalar array, and of dates, with errors of its own.
    if let Ok(n) = keys.getattr("ndim").and_then(|ndim| ndim.extract::<usize>())
        && n != 1
    {
        return Err(dimensions(n));
    }
    let buffer = PyUntypedBuffer::get(keys).map_err(|error| {
        let remedy = "dates and times: view them as int64 first";
        key_type(py, format!("the buffer holds no keys ({}); {remedy}", error.value(py)))
    })?;
    if buffer.dimensions() != 1 {
        return Err(dimensions(buffer.dimensions()));
    }
    let format = buffer.format().to_string_lossy();
    let Some(class) = parse(&format, buffer.item_size()) else {
        if format == "O" {
            return Ok(Buffer::Objects);
        }
        if is_swapped(&format) {
            let remedy = "pass array.astype(array.dtype.newbyteorder(\"=\"))";
            return Err(key_type(
                py,
                format!("a buffer of format {format:?} is in foreign byte order; as keys {remedy}"),
            ));
        }
        return Err(key_type(
            py,
            format!(
                "a buffer of format {format:?} holds no keys; pass integers, floats, bytes or text \
                 (dates: view them as int64 first)"
            ),
        ));
    };
    let stride = buffer.strides().first().copied().unwrap_or(buffer.item_size() as isize);
    let values = Values::Fixed { base: buffer.buf_ptr().cast(), stride, class };
    // SAFETY: the buffer states its layout, and does not move or free its memory before it is given back.
    let column = unsafe { Column::new(hasher, values, buffer.item_count()) };
    if !column.is_valid_text() {
        return Err(key_type(py, "a str key must encode to UTF-8, one of these holds a lone surrogate"));
    }
    Ok(Buffer::Column(column, buffer))
}

/// True for a format string in the other byte order.
fn is_swapped(format: &str) -> bool {
    if cfg!(target_endian = "little") { format.starts_with(['>', '!']) } else { format.starts_with('<') }
}

/// The element type of a native-order format string.
fn parse(format: &str, item_size: usize) -> Option<Fixed> {
    let native = if cfg!(target_endian = "little") { '<' } else { '>' };
    let code = format.strip_prefix(['@', '=', native]).unwrap_or(format);
    let last = code.chars().last()?;
    let count = &code[..code.len() - 1];
    match last {
        's' => return Some(Fixed::Padded(item_size)),
        _ if is_swapped(format) => return None,
        'w' => return Some(Fixed::Utf32(item_size / 4)),
        _ if !count.is_empty() => return None,
        _ => {}
    }
    let signed = |size| match size {
        1 => Some(Fixed::I8),
        2 => Some(Fixed::I16),
        4 => Some(Fixed::I32),
        8 => Some(Fixed::I64),
        _ => None,
    };
    match last {
        'b' | 'h' | 'i' | 'l' | 'q' | 'n' => signed(item_size),
        'B' | 'H' | 'I' | 'L' | 'Q' | 'N' => match signed(item_size)? {
            Fixed::I8 => Some(Fixed::U8),
            Fixed::I16 => Some(Fixed::U16),
            Fixed::I32 => Some(Fixed::U32),
            _ => Some(Fixed::U64),
        },
        '?' => Some(Fixed::Bool),
        'e' => Some(Fixed::F16),
        'f' => Some(Fixed::F32),
        'd' => Some(Fixed::F64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_of_the_field_are_known() {
        assert_eq!(parse("l", 8), Some(Fixed::I64));
        assert_eq!(parse("<q", 8), Some(Fixed::I64));
        assert_eq!(parse("10s", 10), Some(Fixed::Padded(10)));
        assert_eq!(parse("5w", 20), Some(Fixed::Utf32(5)));
        for foreign in ["Zd", "O", "3d", "T{l:a:}", ">q", ">5w", ""] {
            assert_eq!(parse(foreign, 16), None);
        }
    }
}
