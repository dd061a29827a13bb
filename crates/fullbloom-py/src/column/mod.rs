//! A column of keys in foreign memory: NumPy and other buffers, Arrow arrays.
//!
//! Only this module reads memory that Python libraries have exported. A column borrows; the code that created it keeps the
//! owner alive (`keys::buffer`, `arrow::import`).
//!
//! * [`ticks`]: dates, times and durations; `utf32`: texts of NumPy's;
//! * `parts`: keys that are parts of a tuple.

use std::ops::Range;

use fullbloom_core::key::decimal::DecimalBytes;
use fullbloom_core::key::{Domain, KeyDomains, KeyHasher};
use fullbloom_core::structure::HashSource;

use ticks::Ticks;

mod parts;
pub(crate) mod ticks;
mod utf32;

/// Fixed-width element types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fixed {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    F32,
    F64,
    /// One byte, zero or not (NumPy).
    Bool,
    /// Bytes of this width, taken whole (Arrow).
    Bytes(usize),
    /// Bytes of this width without trailing zeros (NumPy `S`).
    Padded(usize),
    /// UTF-32 of this many code points in native order without trailing zeros (NumPy `U`).
    Utf32(usize),
    /// Days or nanoseconds, counted in 4 or 8 bytes.
    Ticks(Ticks, usize),
    /// Decimal numbers of this width, little-endian, times 10 to the exponent.
    Decimal {
        width: usize,
        exponent: i64,
    },
}

/// The layout of the values of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Values {
    /// `base + i * stride`.
    Fixed { base: *const u8, stride: isize, class: Fixed },
    /// Arrow booleans, one bit each, from bit `first` on.
    Bits { base: *const u8, first: usize },
    /// Arrow text and binary with 32-bit offsets.
    Text32 { offsets: *const u8, data: *const u8 },
    /// Arrow text and binary with 64-bit offsets.
    Text64 { offsets: *const u8, data: *const u8 },
    /// Arrow views of 16 bytes over several data buffers.
    Views(Views),
}

/// Arrow's texts by views of 16 bytes (string_view, binary_view).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Views {
    pub(crate) views: *const u8,
    /// The data buffers.
    pub(crate) buffers: *const *const u8,
    /// Their number, and their sizes in bytes.
    pub(crate) count: usize,
    pub(crate) sizes: *const u8,
}

// SAFETY: a read-only view, as `Column` below.
unsafe impl Sync for Views {}
// SAFETY: as above.
unsafe impl Send for Views {}

impl Views {
    /// Whether element `i` is inside its view, as short ones are, or inside a buffer.
    ///
    /// # Safety
    /// As [`Views::get`].
    #[inline(always)]
    pub(crate) unsafe fn holds(&self, i: usize) -> bool {
        // SAFETY: the caller's promise; a length below zero is a great one here.
        unsafe { read::<u32>(self.views.add(16 * i)) <= 12 || self.get(i).is_some() }
    }

    /// The bytes of element `i`; `None` for a view of what no buffer holds, such as a null may have.
    ///
    /// # Safety
    /// There must be a view `i`, and buffers of the sizes stated.
    #[inline(always)]
    pub(crate) unsafe fn get<'a>(&self, i: usize) -> Option<&'a [u8]> {
        // SAFETY: 16 bytes a view: length, then the bytes inline (up to 12) or prefix, buffer
        // number and offset.
        unsafe {
            let view = self.views.add(16 * i);
            let len = usize::try_from(read::<i32>(view)).ok()?;
            if len <= 12 {
                return Some(slice(view.add(4), len));
            }
            let (number, offset) = (read::<u32>(view.add(8)) as usize, read::<u32>(view.add(12)) as usize);
            if number >= self.count || (read::<i64>(self.sizes.add(8 * number)) as usize) < offset + len {
                return None;
            }
            Some(slice((*self.buffers.add(number)).add(offset), len))
        }
    }
}

/// A column that hashes itself.
pub(crate) struct Column {
    hasher: KeyHasher,
    values: Values,
    len: usize,
    /// Whether the values themselves replace hashes.
    into_numbers: bool,
}

// SAFETY: a column is a read-only view; the code that creates one promises that the memory outlives it and is
// not freed or moved meanwhile. Numbers changed by another thread give another number's hash.
unsafe impl Sync for Column {}
// SAFETY: as above.
unsafe impl Send for Column {}

/// Reads a `T` at any address.
///
/// # Safety
/// `address` must be readable for the size of `T`.
#[inline(always)]
pub(crate) unsafe fn read<T: Copy>(address: *const u8) -> T {
    // SAFETY: the caller's promise; unaligned reads are allowed.
    unsafe { address.cast::<T>().read_unaligned() }
}

/// The number of 4 or 8 bytes at `at`.
///
/// # Safety
/// It must be readable.
#[inline(always)]
unsafe fn read_signed(at: *const u8, width: usize) -> i64 {
    // SAFETY: the caller's promise.
    unsafe { if width == 4 { read::<i32>(at).into() } else { read(at) } }
}

impl Column {
    /// The column of `len` keys in the layout `values`.
    ///
    /// # Safety
    /// They must have this layout, and neither move nor be freed while the column is used.
    pub(crate) unsafe fn new(hasher: &KeyHasher, values: Values, len: usize) -> Self {
        Column { hasher: *hasher, values, len, into_numbers: false }
    }

    /// The column with its numbers in place of hashes; `None` if they are not whole numbers.
    pub(crate) fn into_numbers(self) -> Option<Self> {
        (self.is_signed() || self.is_unsigned()).then_some(Column { into_numbers: true, ..self })
    }

    /// Whether it has words of 64 bits.
    pub(crate) fn has_words(&self) -> bool {
        matches!(self.values, Values::Fixed { class: Fixed::U64 | Fixed::I64, .. })
    }

    /// Whether its numbers may be below 0.
    pub(crate) fn is_signed(&self) -> bool {
        matches!(self.values, Values::Fixed { class: Fixed::I8 | Fixed::I16 | Fixed::I32 | Fixed::I64, .. })
    }

    fn is_unsigned(&self) -> bool {
        matches!(self.values, Values::Fixed { class: Fixed::U8 | Fixed::U16 | Fixed::U32 | Fixed::U64, .. })
    }

    /// Number `i` of a column of whole numbers, as if it had a sign; the row must exist.
    pub(crate) fn number(&self, i: usize) -> i64 {
        let mut number = [0];
        self.fill(i, &mut number);
        number[0] as i64
    }

    fn fill_numbers(base: *const u8, stride: isize, class: Fixed, start: usize, out: &mut [u64]) {
        macro_rules! with {
            ($T:ty) => {
                // SAFETY: the address is that of an element of the column.
                Self::each(base, stride, start, out, |at| unsafe { read::<$T>(at) } as u64)
            };
        }
        match class {
            Fixed::I8 => with!(i8),
            Fixed::I16 => with!(i16),
            Fixed::I32 => with!(i32),
            Fixed::U8 => with!(u8),
            Fixed::U16 => with!(u16),
            Fixed::U32 => with!(u32),
            _ => with!(u64),
        }
    }

    /// The domain of the keys.
    fn domain(&self) -> Domain {
        let Values::Fixed { class, .. } = self.values else {
            return if matches!(self.values, Values::Bits { .. }) { Domain::Integer } else { Domain::Text };
        };
        match class {
            Fixed::I8 | Fixed::I16 | Fixed::I32 | Fixed::I64 | Fixed::Bool => Domain::Integer,
            Fixed::U8 | Fixed::U16 | Fixed::U32 | Fixed::U64 => Domain::Integer,
            Fixed::F16 | Fixed::F32 | Fixed::F64 => Domain::Float,
            Fixed::Bytes(_) | Fixed::Padded(_) | Fixed::Utf32(_) => Domain::Text,
            Fixed::Ticks(ticks, _) => ticks.domain,
            Fixed::Decimal { .. } => Domain::Decimal,
        }
    }

    /// Code points of each key of a UTF-32 column.
    pub(crate) fn points(&self) -> Option<usize> {
        let Values::Fixed { class: Fixed::Utf32(points), .. } = self.values else { return None };
        Some(points)
    }

    /// The first of these rows of a UTF-32 column with a code point that is not a character (a lone surrogate).
    pub(crate) fn find_invalid_text(&self, mut rows: Range<usize>) -> Option<usize> {
        let Values::Fixed { base, stride, class: Fixed::Utf32(points) } = self.values else { return None };
        rows.find(|&i| {
            let at = base.wrapping_offset(i as isize * stride);
            // SAFETY: element i of the column, 4 * points bytes.
            (0..points).any(|j| char::from_u32(unsafe { read(at.wrapping_add(4 * j)) }).is_none())
        })
    }

    /// The first of these rows of NumPy's dates or durations that is "not a time": the least number.
    pub(crate) fn find_not_a_time(&self, mut rows: Range<usize>) -> Option<usize> {
        let Values::Fixed { base, stride, class: Fixed::Ticks(_, 8) } = self.values else { return None };
        // SAFETY: element i of the column, 8 bytes.
        rows.find(|&i| unsafe { read::<i64>(base.wrapping_offset(i as isize * stride)) } == i64::MIN)
    }

    /// Calls `hash` for each address of a fixed-width column.
    #[inline(always)]
    fn each(base: *const u8, stride: isize, start: usize, out: &mut [u64], hash: impl Fn(*const u8) -> u64) {
        let mut at = base.wrapping_offset(start as isize * stride);
        for out in out {
            *out = hash(at);
            at = at.wrapping_offset(stride);
        }
    }

    fn fill_fixed(&self, base: *const u8, stride: isize, class: Fixed, start: usize, out: &mut [u64]) {
        let h = &self.hasher;
        let whole_words = match class {
            Fixed::I64 => Some(Domain::Integer),
            Fixed::Ticks(ticks, 8) if ticks.is_one() => Some(ticks.domain),
            _ => None,
        };
        if let Some(domain) = whole_words
            && stride == 8
            && cfg!(target_endian = "little")
        {
            // SAFETY: elements start.. of a contiguous column, 8 bytes each, within its length.
            let words = unsafe { slice(base.wrapping_add(8 * start), 8 * out.len()) };
            return h.of(domain).words(words, out);
        }
        macro_rules! with {
            ($T:ty, $method:ident) => {
                Self::each(base, stride, start, out, |at| {
                    // SAFETY: `at` is element `start + i` of the column, which its maker promised
                    // to be readable.
                    h.$method(unsafe { read::<$T>(at) }.into())
                })
            };
        }
        match class {
            Fixed::I8 => with!(i8, hash_signed),
            Fixed::I16 => with!(i16, hash_signed),
            Fixed::I32 => with!(i32, hash_signed),
            Fixed::I64 => with!(i64, hash_signed),
            Fixed::U8 => with!(u8, hash_unsigned),
            Fixed::U16 => with!(u16, hash_unsigned),
            Fixed::U32 => with!(u32, hash_unsigned),
            Fixed::U64 => with!(u64, hash_unsigned),
            Fixed::F32 => with!(f32, float),
            Fixed::F64 => with!(f64, float),
            Fixed::F16 => Self::each(base, stride, start, out, |at| {
                // SAFETY: as above.
                h.float(from_half(unsafe { read(at) }))
            }),
            Fixed::Bool => Self::each(base, stride, start, out, |at| {
                // SAFETY: as above.
                h.hash_signed((unsafe { read::<u8>(at) } != 0).into())
            }),
            Fixed::Bytes(width) => Self::each(base, stride, start, out, |at| {
                // SAFETY: as above, for `width` bytes.
                h.text(unsafe { slice(at, width) })
            }),
            Fixed::Padded(width) => Self::each(base, stride, start, out, |at| {
                // SAFETY: as above, for `width` bytes.
                let bytes = unsafe { slice(at, width) };
                h.text(&bytes[..bytes.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1)])
            }),
            Fixed::Ticks(ticks, width) => {
                let h = h.of(ticks.domain);
                // SAFETY: as above, for `width` bytes.
                Self::each(base, stride, start, out, |at| h.number(ticks.count(unsafe { read_signed(at, width) })));
            }
            Fixed::Decimal { width, exponent } => {
                let h = h.of(Domain::Decimal);
                Self::each(base, stride, start, out, |at| {
                    // SAFETY: as above, for `width` bytes.
                    h.bytes(DecimalBytes::of(unsafe { slice(at, width) }, exponent).as_slice())
                });
            }
            Fixed::Utf32(points) => {
                let mut buffer = utf32::EMPTY;
                for (i, out) in out.iter_mut().enumerate() {
                    let at = base.wrapping_offset((start + i) as isize * stride);
                    // SAFETY: as above, for 4 * points bytes.
                    *out = utf32::hash(h, points, |j| unsafe { read(at.wrapping_add(4 * j)) }, &mut buffer);
                }
            }
        }
    }
}

/// The bytes at `data`, also for an empty run at a null pointer.
///
/// # Safety
/// `data` must be readable for `len` bytes.
#[inline(always)]
pub(crate) unsafe fn slice<'a>(data: *const u8, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(data, len) }
}

/// IEEE-754 binary16 to binary64, exact.
fn from_half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3ff));
    match exponent {
        0 => sign * fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => sign * f64::INFINITY,
        31 => f64::NAN,
        _ => sign * (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    }
}

/// The hashes of the texts between one `end` and the next.
///
/// # Safety
/// `end` must give ascending offsets into `data`, one more than there are texts.
#[inline(always)]
unsafe fn fill_text(h: &KeyHasher, end: impl Fn(usize) -> usize, data: *const u8, start: usize, out: &mut [u64]) {
    let mut from = end(start);
    for (i, out) in out.iter_mut().enumerate() {
        let to = end(start + i + 1);
        // SAFETY: the caller's promise.
        *out = h.text(unsafe { slice(data.wrapping_add(from), to.saturating_sub(from)) });
        from = to;
    }
}

impl HashSource for Column {
    fn len(&self) -> usize {
        self.len
    }

    fn fill(&self, start: usize, out: &mut [u64]) {
        assert!(start + out.len() <= self.len);
        let h = &self.hasher;
        match self.values {
            Values::Fixed { base, stride, class } if self.into_numbers => {
                Self::fill_numbers(base, stride, class, start, out);
            }
            Values::Fixed { base, stride, class } => self.fill_fixed(base, stride, class, start, out),
            Values::Bits { base, first } => {
                for (i, out) in out.iter_mut().enumerate() {
                    let bit = first + start + i;
                    // SAFETY: bit `first + i` exists for every i < len.
                    *out = h.hash_signed(i64::from(unsafe { *base.add(bit >> 3) } >> (bit & 7) & 1));
                }
            }
            // SAFETY: Arrow gives len + 1 ascending offsets into `data`.
            Values::Text32 { offsets, data } => unsafe {
                fill_text(h, |i| read::<i32>(offsets.add(4 * i)) as usize, data, start, out);
            },
            // SAFETY: as above.
            Values::Text64 { offsets, data } => unsafe {
                fill_text(h, |i| read::<i64>(offsets.add(8 * i)) as usize, data, start, out);
            },
            Values::Views(views) => {
                for (i, out) in out.iter_mut().enumerate() {
                    // SAFETY: start + i < len.
                    *out = h.text(unsafe { views.get(start + i) }.unwrap_or_default());
                }
            }
        }
    }

    fn domains(&self) -> KeyDomains {
        if self.into_numbers { KeyDomains::HASHED } else { KeyDomains::of(self.domain()) }
    }

    fn each_key(&self, start: usize, count: usize, take: &mut dyn FnMut(Domain, &[u8])) -> bool {
        let mut text = String::new();
        (start..start + count).for_each(|i| self.key(i, &mut text, take));
        !self.into_numbers
    }

    fn as_words(&self) -> Option<&[[u8; 8]]> {
        match self.values {
            Values::Fixed { base, stride: 8, class: Fixed::I64 }
                if !self.into_numbers && self.len > 0 && cfg!(target_endian = "little") =>
            {
                // SAFETY: the bytes of `len` contiguous elements, which have no alignment.
                Some(unsafe { std::slice::from_raw_parts(base.cast(), self.len) })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_exact() {
        for (bits, value) in [(0x3c00, 1.0), (0xc000, -2.0), (0x0001, 5.960464477539063e-8), (0x7bff, 65504.0)] {
            assert_eq!(from_half(bits), value);
        }
        assert!(from_half(0x7e00).is_nan());
    }
}
