//! Plain columns: where the values of each type are.

use std::ops::Range;

use fullbloom_core::key::KeyHasher;
use pyo3::prelude::*;

use super::nulls::Nulls;
use super::stated::{Stated, fits, is_plausible, refuse};
use crate::column::ticks::Ticks;
use crate::column::{Column, Fixed, Values, Views, read};
use crate::errors::key_type;
use crate::locking::slices;

/// The column of `format`, one of the strings of the C data interface.
pub(super) fn column(hasher: &KeyHasher, format: &str, stated: &Stated<'_>, nulls: &Nulls) -> PyResult<Column> {
    let fixed = |class, width: usize| {
        let base = stated.rows(1, width)?;
        PyResult::Ok(Values::Fixed { base, stride: width as isize, class })
    };
    let values = match format {
        // Only nulls and no buffer: nothing is read.
        "n" => Values::Fixed { base: std::ptr::null(), stride: 0, class: Fixed::Bytes(0) },
        "c" => fixed(Fixed::I8, 1)?,
        "C" => fixed(Fixed::U8, 1)?,
        "s" => fixed(Fixed::I16, 2)?,
        "S" => fixed(Fixed::U16, 2)?,
        "i" => fixed(Fixed::I32, 4)?,
        "I" => fixed(Fixed::U32, 4)?,
        "l" => fixed(Fixed::I64, 8)?,
        "L" => fixed(Fixed::U64, 8)?,
        "e" => fixed(Fixed::F16, 2)?,
        "f" => fixed(Fixed::F32, 4)?,
        "g" => fixed(Fixed::F64, 8)?,
        "b" => {
            let base = stated.bits(1)?;
            if base.is_null() && stated.len > 0 {
                return Err(refuse(stated.py, "booleans without data"));
            }
            Values::Bits { base, first: stated.offset }
        }
        "u" | "z" => {
            let (offsets, data) = texts::<i32>(stated)?;
            Values::Text32 { offsets, data }
        }
        "U" | "Z" => {
            let (offsets, data) = texts::<i64>(stated)?;
            Values::Text64 { offsets, data }
        }
        "vu" | "vz" => Values::Views(views(stated, nulls)?),
        _ => match parse_sized(format) {
            Some((class, width)) => fixed(class, width)?,
            None => return Err(refuse_format(stated.py, format)),
        },
    };
    // SAFETY: the interface promises this layout until the array is released, which the chunk does
    // that keeps both.
    Ok(unsafe { Column::new(hasher, values, stated.len) })
}

/// The class of a format with parameters, and its width in bytes.
fn parse_sized(format: &str) -> Option<(Fixed, usize)> {
    if let Some((ticks, width)) = Ticks::of_arrow(format) {
        return Some((Fixed::Ticks(ticks, width), width));
    }
    if let Some(width) = format.strip_prefix("w:") {
        let width = width.parse().ok()?;
        return Some((Fixed::Bytes(width), width));
    }
    let mut numbers = format.strip_prefix("d:")?.split(',');
    let (_precision, scale) = (numbers.next()?, numbers.next()?.parse::<i32>().ok()?);
    let width = match numbers.next().unwrap_or("128") {
        "32" => 4,
        "64" => 8,
        "128" => 16,
        "256" => 32,
        _ => return None,
    };
    Some((Fixed::Decimal { width, exponent: -i64::from(scale) }, width))
}

/// The error for a type that holds no keys.
fn refuse_format(py: Python<'_>, format: &str) -> PyErr {
    let remedy = match format.as_bytes() {
        [b'+', b'l' | b'L' | b'v' | b'w', ..] => "a list is not a key; pass one element of each, or a struct of them",
        [b'+', b'r', ..] => "decode its runs",
        [b't', b'i', ..] => "an interval has no fixed length; pass the numbers in it as a struct",
        [b'_', ..] => "cast it to a type that Arrow has, such as decimal or text",
        _ => "cast it to one of these",
    };
    let accepted =
        "integers, floats, booleans, text, binary, dates, times, durations, decimals, structs or a dictionary";
    key_type(py, format!("an Arrow column of format {format:?} holds no keys ({accepted} would); {remedy}"))
}

/// Offsets of texts, which must ascend, and the bytes they point into, whose number the interface does not state.
fn texts<T: Copy + Default + PartialOrd + Into<i64> + Sync>(stated: &Stated<'_>) -> PyResult<(*const u8, *const u8)> {
    let width = size_of::<T>();
    let (offsets, data) = (stated.rows(1, width)?, stated.buffer(2)?);
    if stated.len == 0 {
        return Ok((offsets, data));
    }
    let (first, len) = (offsets as usize, stated.len);
    // SAFETY: there is an offset for each row and one more.
    let offset = |i: usize| unsafe { read::<T>((first as *const u8).wrapping_add(i * width)) };
    // All are compared, so that several are at once: 0.2 ns per row.
    let fall = |rows: Range<usize>| {
        let fall = rows.clone().fold(offset(0) < T::default(), |fall, i| fall | (offset(i) > offset(i + 1)));
        fall.then_some(rows.start)
    };
    if slices::find_first(stated.py, len, fall)?.is_some() {
        return Err(refuse(stated.py, "offsets of texts that fall"));
    }
    let bytes: i64 = offset(len).into();
    if offset(len) > offset(0) && !(is_plausible(data) && fits(data, bytes as usize)) {
        return Err(refuse(stated.py, format!("{bytes} bytes of texts at {data:?}")));
    }
    Ok((offsets, data))
}

/// Views of texts, each of which must be within its buffer unless the row is a null.
fn views(stated: &Stated<'_>, nulls: &Nulls) -> PyResult<Views> {
    let start = stated.rows(1, 16)?;
    // Validity and views come before the data buffers, their sizes after them.
    let Some(count) = usize::try_from(stated.array.n_buffers).ok().and_then(|number| number.checked_sub(3)) else {
        return Err(refuse(stated.py, format!("{} buffers where its type has 3 or more", stated.array.n_buffers)));
    };
    let sizes = stated.buffer(2 + count)?;
    // Views have numbers of 32 bits for them.
    if count > 0 && !(is_plausible(sizes) && i32::try_from(count).is_ok()) {
        return Err(refuse(stated.py, format!("sizes of {count} buffers at {sizes:?}")));
    }
    for i in 0..count {
        // SAFETY: a size for each data buffer.
        let size = unsafe { read::<i64>(sizes.add(8 * i)) };
        let data = stated.buffer(2 + i)?;
        if size < 0 || size > 0 && !(is_plausible(data) && fits(data, size as usize)) {
            return Err(refuse(stated.py, format!("{size} bytes of text at {data:?}")));
        }
    }
    let buffers = stated.array.buffers.wrapping_add(2).cast_const().cast();
    let views = Views { views: start, buffers, count, sizes };
    let len = stated.len;
    // SAFETY: a view for each row, and buffers as stated.
    let is_outside = |i: &usize| !unsafe { views.holds(*i) } && nulls.is_valid(*i);
    if slices::find_first(stated.py, len, |mut rows| rows.find(is_outside))?.is_some() {
        return Err(refuse(stated.py, "a text outside of its buffers"));
    }
    Ok(views)
}
