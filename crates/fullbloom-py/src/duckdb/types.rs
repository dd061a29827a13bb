//! The types of keys that have an overload, and their flat vectors as sources of hashes.

use std::ffi::c_int;

use fullbloom_core::key::{Domain, KeyDomains, KeyHasher};
use fullbloom_core::structure::HashSource;

use crate::column::ticks::Ticks;
use crate::column::{Column, Fixed, Values, slice};

/// A type of keys.
pub(super) struct KeyType {
    /// Its number in `DUCKDB_TYPE`.
    pub(super) id: c_int,
    /// Its name, for `fullbloom.engines.duckdb`.
    pub(super) name: &'static str,
    /// Bytes of a value.
    pub(super) width: usize,
    values: Kind,
}

enum Kind {
    Fixed(Fixed),
    /// Dates and times, by the format of Arrow's that DuckDB exports them in.
    Ticks(&'static str),
    /// Text and bytes.
    Texts,
}

const fn key_type(id: c_int, name: &'static str, width: usize, values: Kind) -> KeyType {
    KeyType { id, name, width, values }
}

/// `DUCKDB_TYPE_BOOLEAN`, the type of the result.
pub(super) const BOOLEAN: c_int = 1;
/// `DUCKDB_TYPE_UBIGINT`.
pub(super) const UBIGINT: c_int = 9;
/// `DUCKDB_TYPE_VARCHAR`, the type of a name.
pub(super) const VARCHAR: c_int = 17;

/// All types with an overload: those that DuckDB exports to Arrow as the same keys whatever its settings, because the Python
/// function reads that export. It exports a HUGEINT as a decimal, or as bytes.
pub(super) static KEY_TYPES: [KeyType; 20] = [
    key_type(BOOLEAN, "BOOLEAN", 1, Kind::Fixed(Fixed::Bool)),
    key_type(2, "TINYINT", 1, Kind::Fixed(Fixed::I8)),
    key_type(3, "SMALLINT", 2, Kind::Fixed(Fixed::I16)),
    key_type(4, "INTEGER", 4, Kind::Fixed(Fixed::I32)),
    key_type(5, "BIGINT", 8, Kind::Fixed(Fixed::I64)),
    key_type(6, "UTINYINT", 1, Kind::Fixed(Fixed::U8)),
    key_type(7, "USMALLINT", 2, Kind::Fixed(Fixed::U16)),
    key_type(8, "UINTEGER", 4, Kind::Fixed(Fixed::U32)),
    key_type(UBIGINT, "UBIGINT", 8, Kind::Fixed(Fixed::U64)),
    key_type(10, "FLOAT", 4, Kind::Fixed(Fixed::F32)),
    key_type(11, "DOUBLE", 8, Kind::Fixed(Fixed::F64)),
    key_type(12, "TIMESTAMP", 8, Kind::Ticks("tsu:")),
    key_type(13, "DATE", 4, Kind::Ticks("tdD")),
    key_type(14, "TIME", 8, Kind::Ticks("ttu")),
    key_type(VARCHAR, "VARCHAR", 16, Kind::Texts),
    key_type(18, "BLOB", 16, Kind::Texts),
    key_type(20, "TIMESTAMP_S", 8, Kind::Ticks("tss:")),
    key_type(21, "TIMESTAMP_MS", 8, Kind::Ticks("tsm:")),
    key_type(22, "TIMESTAMP_NS", 8, Kind::Ticks("tsn:")),
    key_type(31, "TIMESTAMP WITH TIME ZONE", 8, Kind::Ticks("tsu:UTC")),
];

impl KeyType {
    /// Whether values are texts.
    pub(super) fn is_text(&self) -> bool {
        matches!(self.values, Kind::Texts)
    }
}

/// `duckdb_string_t`: the length, then up to 12 bytes, or four of them and the address of all.
#[repr(C)]
pub(super) struct Text {
    length: u32,
    _start: [u8; 4],
    rest: [u8; 8],
}

impl Text {
    /// The bytes.
    ///
    /// # Safety
    /// The text must be a valid value of a vector that outlives `'a`.
    #[inline(always)]
    pub(super) unsafe fn bytes<'a>(this: *const Self) -> &'a [u8] {
        // SAFETY: the caller's promise. Short texts follow their length, which has 4 bytes.
        unsafe {
            let length = (*this).length as usize;
            if length <= 12 {
                return slice(this.cast::<u8>().add(4), length);
            }
            slice(usize::from_ne_bytes((*this).rest) as *const u8, length)
        }
    }
}

/// Whether a row is not null.
///
/// # Safety
/// `validity` must be null, or a mask of DuckDB's that has the row.
#[inline(always)]
pub(super) unsafe fn is_valid(validity: *const u64, row: usize) -> bool {
    // SAFETY: the caller's promise.
    validity.is_null() || unsafe { *validity.add(row / 64) } >> (row % 64) & 1 == 1
}

/// Rows of a flat vector of keys.
#[derive(Clone, Copy)]
pub(super) struct Keys {
    pub(super) of: &'static KeyType,
    pub(super) data: *const u8,
    /// The mask of rows that are not null; a null pointer if all are.
    pub(super) validity: *const u64,
    /// The first row.
    pub(super) start: usize,
    pub(super) len: usize,
}

impl Keys {
    /// Whether row `i` of these is not null.
    pub(super) fn is_valid(&self, i: usize) -> bool {
        // SAFETY: the mask of the vector has a bit for each of its rows.
        unsafe { is_valid(self.validity, self.start + i) }
    }

    /// Whether all are null.
    pub(super) fn are_nulls(&self) -> bool {
        !self.validity.is_null() && !(0..self.len).any(|i| self.is_valid(i))
    }

    /// The bytes of values of fixed width.
    pub(super) fn fixed(&self) -> &[u8] {
        // SAFETY: the vector has `width` bytes for each row.
        unsafe { slice(self.data.add(self.start * self.of.width), self.len * self.of.width) }
    }

    /// The bytes of text `i`; none for a null, whose value may be anything.
    #[inline(always)]
    pub(super) fn text(&self, i: usize) -> &[u8] {
        if !self.is_valid(i) {
            return &[];
        }
        // SAFETY: a vector of texts has a valid one for each row that is not null.
        unsafe { Text::bytes(self.data.cast::<Text>().add(self.start + i)) }
    }

    /// Passes the keys to `take`, as a source of hashes.
    pub(super) fn with_hashes<R>(&self, hasher: &KeyHasher, take: impl FnOnce(&dyn HashSource) -> R) -> R {
        let class = match self.of.values {
            Kind::Texts => return take(&Texts { keys: *self, hasher: *hasher }),
            Kind::Fixed(class) => class,
            Kind::Ticks(format) => match Ticks::of_arrow(format) {
                Some((ticks, width)) => Fixed::Ticks(ticks, width),
                None => unreachable!("a format of Arrow's"),
            },
        };
        let width = self.of.width;
        let base = self.data.wrapping_add(self.start * width);
        let values = Values::Fixed { base, stride: width as isize, class };
        // SAFETY: the vector has this layout, and outlives the call.
        take(&unsafe { Column::new(hasher, values, self.len) })
    }
}

/// Texts of a vector.
struct Texts {
    keys: Keys,
    hasher: KeyHasher,
}

// SAFETY: a read-only view of a vector, which no thread changes while the function reads it.
unsafe impl Sync for Texts {}

impl HashSource for Texts {
    fn len(&self) -> usize {
        self.keys.len
    }

    fn fill(&self, start: usize, out: &mut [u64]) {
        for (i, out) in out.iter_mut().enumerate() {
            *out = self.hasher.text(self.keys.text(start + i));
        }
    }

    fn domains(&self) -> KeyDomains {
        KeyDomains::of(Domain::Text)
    }
}
