//! The canonical bytes of one key of a column: for a tuple of which it is a part, or for another program's hash.

use fullbloom_core::key::decimal::DecimalBytes;
use fullbloom_core::key::number::NumberBytes;
use fullbloom_core::key::{Domain, float_bits};

use super::{Column, Fixed, Values, from_half, read, read_signed, slice};

/// Takes a domain and canonical bytes.
type Take<'a> = dyn FnMut(Domain, &[u8]) + 'a;

impl Column {
    /// Passes the canonical bytes of key `i` of any column, which must exist, to `take`; `text` is a buffer.
    pub(super) fn key(&self, i: usize, text: &mut String, take: &mut Take<'_>) {
        let Values::Fixed { base, stride, class } = self.values else { return self.part(i, take) };
        assert!(i < self.len);
        let at = base.wrapping_offset(i as isize * stride);
        match class {
            Fixed::Padded(width) => {
                // SAFETY: element i of the column, `width` bytes.
                let bytes = unsafe { slice(at, width) };
                take(Domain::Text, &bytes[..bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)]);
            }
            Fixed::Utf32(points) => {
                // SAFETY: element i of the column, 4 * points bytes.
                let point = |j: usize| unsafe { read::<u32>(at.wrapping_add(4 * j)) };
                let len = (0..points).rposition(|j| point(j) != 0).map_or(0, |last| last + 1);
                text.clear();
                // Known to be characters, unless another thread changes them meanwhile.
                text.extend((0..len).map(|j| char::from_u32(point(j)).unwrap_or(char::REPLACEMENT_CHARACTER)));
                take(Domain::Text, text.as_bytes());
            }
            _ => self.part(i, take),
        }
    }

    /// Passes the canonical bytes of key `i`, which must exist, to `take`. Only for Arrow columns: none of them is UTF-32.
    pub(crate) fn part(&self, i: usize, take: &mut Take<'_>) {
        assert!(i < self.len);
        match self.values {
            Values::Fixed { base, stride, class } => {
                // SAFETY: element i of the column.
                unsafe { pass_fixed(base.wrapping_offset(i as isize * stride), class, take) };
            }
            Values::Bits { base, first } => {
                // SAFETY: there is a bit for each row.
                let byte = unsafe { *base.add((first + i) >> 3) };
                pass_number(take, Domain::Integer, i128::from(byte >> ((first + i) & 7) & 1));
            }
            // SAFETY: Arrow gives len + 1 ascending offsets into `data`.
            Values::Text32 { offsets, data } => unsafe {
                let at = |i| read::<i32>(offsets.add(4 * i)) as usize;
                take(Domain::Text, slice(data.wrapping_add(at(i)), at(i + 1).saturating_sub(at(i))));
            },
            // SAFETY: as above.
            Values::Text64 { offsets, data } => unsafe {
                let at = |i| read::<i64>(offsets.add(8 * i)) as usize;
                take(Domain::Text, slice(data.wrapping_add(at(i)), at(i + 1).saturating_sub(at(i))));
            },
            // SAFETY: i < len.
            Values::Views(views) => take(Domain::Text, unsafe { views.get(i) }.unwrap_or_default()),
        }
    }
}

fn pass_number(take: &mut Take<'_>, domain: Domain, value: i128) {
    take(domain, NumberBytes::of(value).as_slice());
}

/// The key of `class` at the address `at`.
///
/// # Safety
/// It must be readable.
unsafe fn pass_fixed(at: *const u8, class: Fixed, take: &mut Take<'_>) {
    macro_rules! integer {
        ($T:ty) => {
            // SAFETY: the caller's promise.
            pass_number(take, Domain::Integer, i128::from(unsafe { read::<$T>(at) }))
        };
    }
    let mut float = |value: f64| take(Domain::Float, &float_bits(value).to_le_bytes());
    match class {
        Fixed::I8 => integer!(i8),
        Fixed::I16 => integer!(i16),
        Fixed::I32 => integer!(i32),
        Fixed::I64 => integer!(i64),
        Fixed::U8 => integer!(u8),
        Fixed::U16 => integer!(u16),
        Fixed::U32 => integer!(u32),
        Fixed::U64 => integer!(u64),
        // SAFETY: the caller's promise, here and below.
        Fixed::F16 => float(from_half(unsafe { read(at) })),
        // SAFETY: as above.
        Fixed::F32 => float(unsafe { read::<f32>(at) }.into()),
        // SAFETY: as above.
        Fixed::F64 => float(unsafe { read(at) }),
        // SAFETY: as above.
        Fixed::Bool => pass_number(take, Domain::Integer, i128::from(unsafe { read::<u8>(at) } != 0)),
        // SAFETY: as above.
        Fixed::Bytes(width) | Fixed::Padded(width) => take(Domain::Text, unsafe { slice(at, width) }),
        Fixed::Utf32(_) => take(Domain::Text, &[]),
        // SAFETY: as above.
        Fixed::Ticks(ticks, width) => pass_number(take, ticks.domain, ticks.count(unsafe { read_signed(at, width) })),
        Fixed::Decimal { width, exponent } => {
            // SAFETY: as above.
            let bytes = DecimalBytes::of(unsafe { slice(at, width) }, exponent);
            take(Domain::Decimal, bytes.as_slice());
        }
    }
}
