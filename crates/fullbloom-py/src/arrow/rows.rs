//! Structs, tables and frames: each row is the tuple of its fields.

use fullbloom_core::cells::allocation::reserve;
use fullbloom_core::key::{Domain, KeyDomains, KeyHasher, PART_HEADER, end_part};
use fullbloom_core::structure::HashSource;
use pyo3::prelude::*;

use super::column::column;
use super::dictionary;
use super::ffi::{Array, Schema};
use super::indices::Indices;
use super::meaning::Meaning;
use super::nulls::Nulls;
use super::stated::{Stated, format_of, is_plausible, refuse};
use crate::column::Column;
use crate::errors::{OrRaise, key_type};

/// Structs in structs: of rows that are longer than [`AT_ONCE`], each level doubles the work.
const DEEPEST: usize = 8;

/// Bytes of a row that are encoded and hashed at once; a longer row is hashed in pieces.
const AT_ONCE: usize = 2048;

/// One field of all rows.
enum Field {
    Plain(Column),
    Dictionary(Indices, Column),
    Rows(Rows),
}

/// The rows of a struct, as tuples.
pub(super) struct Rows {
    hasher: KeyHasher,
    fields: Vec<Field>,
    offset: usize,
    len: usize,
}

/// A buffer for the bytes of one row, as far as they fit.
struct RowBuffer {
    bytes: [u8; AT_ONCE],
    len: usize,
}

impl RowBuffer {
    /// Appends a part whose bytes `write` appends; false if it does not fit.
    fn part(&mut self, domain: Domain, write: impl FnOnce(&mut Self) -> bool) -> bool {
        let start = self.len;
        if !self.push(&[0; PART_HEADER]) || !write(self) {
            return false;
        }
        end_part(&mut self.bytes[..self.len], start, domain);
        true
    }

    fn push(&mut self, bytes: &[u8]) -> bool {
        let Some(space) = self.bytes.get_mut(self.len..self.len + bytes.len()) else { return false };
        space.copy_from_slice(bytes);
        self.len += bytes.len();
        true
    }
}

impl Field {
    /// The field that `schema` and `array` describe, at least `rows` long and `depth` structs deep, and its nulls.
    fn new(
        py: Python<'_>,
        hasher: &KeyHasher,
        schema: &Schema,
        array: &Array,
        rows: usize,
        depth: usize,
    ) -> PyResult<(Self, Nulls)> {
        let (format, stated) = (format_of(schema), Stated::new(py, array)?);
        if stated.len < rows {
            return Err(refuse(py, format!("a field of {} rows in a struct of {rows}", stated.len)));
        }
        let dictionary = dictionary::find(py, schema, array)?;
        if format == "+s" {
            let (rows, nulls) = Rows::new(hasher, schema, &stated, depth + 1)?;
            return Ok((Field::Rows(rows), nulls));
        }
        let nulls = Nulls::of(&format, &stated)?;
        let Some((values_schema, values_array)) = dictionary else {
            return Ok((Field::Plain(column(hasher, &format, &stated, &nulls)?), nulls));
        };
        let indices = Indices::of(&stated, &format)?;
        let (values, null_values) = dictionary::values(py, Meaning::Keys(*hasher), values_schema, values_array)?;
        nulls.check_indices(&stated, &indices, values.len())?;
        let nulls = nulls.with_values(py, indices, null_values, stated.len)?;
        Ok((Field::Dictionary(indices, values), nulls))
    }

    /// Appends the field of row `i` as a part of its tuple; false if it does not fit.
    fn write(&self, i: usize, buffer: &mut RowBuffer) -> bool {
        let mut fits = false;
        match self {
            Field::Plain(column) => {
                column.part(i, &mut |domain, bytes| fits = buffer.part(domain, |buffer| buffer.push(bytes)))
            }
            Field::Dictionary(indices, values) => {
                // The index of a null may be anything.
                let index = indices.get(i);
                if index >= values.len() {
                    return true;
                }
                values.part(index, &mut |domain, bytes| fits = buffer.part(domain, |buffer| buffer.push(bytes)));
            }
            Field::Rows(rows) => fits = buffer.part(Domain::Tuple, |buffer| rows.write(i, buffer)),
        }
        fits
    }

    /// [`Field::write`] of any length, in pieces.
    fn feed(&self, i: usize, push: &mut dyn FnMut(&[u8])) {
        let mut part = |domain: Domain, bytes: &[u8]| {
            push(&header(domain, bytes.len()));
            push(bytes);
        };
        match self {
            Field::Plain(column) => column.part(i, &mut part),
            Field::Dictionary(indices, values) => {
                let index = indices.get(i);
                if index < values.len() {
                    values.part(index, &mut part);
                }
            }
            Field::Rows(rows) => {
                let mut len = 0;
                rows.feed(i, &mut |bytes| len += bytes.len());
                push(&header(Domain::Tuple, len));
                rows.feed(i, push);
            }
        }
    }
}

/// The schema and the array of the only field of a struct, whose rows must equal those of the field.
pub(super) fn only_field<'a>(
    py: Python<'_>,
    schema: &'a Schema,
    array: &'a Array,
) -> PyResult<(&'a Schema, &'a Array)> {
    let stated = Stated::new(py, array)?;
    if schema.n_children != 1 || array.n_children != 1 {
        let (stated, present) = (schema.n_children, array.n_children);
        return Err(refuse(py, format!("a struct of {stated} fields, of which it holds {present}")));
    }
    let (field, values) = field(py, schema, array, 0)?;
    let is_same =
        stated.offset == 0 && values.length == array.length && matches!(Nulls::of("+s", &stated)?, Nulls::None);
    if is_same { Ok((field, values)) } else { Err(refuse(py, "rows of a query that differ from those of its column")) }
}

/// Field `i` of a struct that has more.
pub(super) fn field<'a>(
    py: Python<'_>,
    schema: &'a Schema,
    array: &'a Array,
    i: usize,
) -> PyResult<(&'a Schema, &'a Array)> {
    if !(is_plausible(schema.children) && is_plausible(array.children)) {
        return Err(refuse(py, format!("fields at {:?} and {:?}", schema.children, array.children)));
    }
    // SAFETY: there are `n_children` addresses, of structures that live as long as their parents; the caller keeps one
    // parent and the chunk the other.
    let (field_schema, field_array) = unsafe { (*schema.children.add(i), *array.children.add(i)) };
    if !is_plausible(field_schema) || !is_plausible(field_array) {
        return Err(refuse(py, format!("a field at {field_schema:?} and {field_array:?}")));
    }
    // SAFETY: as above.
    Ok(unsafe { (&*field_schema, &*field_array) })
}

/// The header of a part of this length.
fn header(domain: Domain, len: usize) -> [u8; PART_HEADER] {
    let mut header = [domain as u8; PART_HEADER];
    header[1..].copy_from_slice(&(len as u64).to_le_bytes());
    header
}

impl Rows {
    /// The rows that `schema` and `stated` describe, in `depth` structs, and the nulls among them: a row with a null field is
    /// null.
    pub(super) fn new(
        hasher: &KeyHasher,
        schema: &Schema,
        stated: &Stated<'_>,
        depth: usize,
    ) -> PyResult<(Self, Nulls)> {
        let (py, array) = (stated.py, stated.array);
        if depth > DEEPEST {
            return Err(key_type(py, format!("a column of keys may nest {DEEPEST} structs, this one nests more")));
        }
        let number = usize::try_from(schema.n_children).unwrap_or(usize::MAX);
        if schema.n_children != array.n_children || number > 1 << 16 {
            let (stated, present) = (schema.n_children, array.n_children);
            return Err(refuse(py, format!("a struct of {stated} fields, of which it holds {present}")));
        }
        let rows = stated.end() - 1;
        let (mut fields, mut nulls) = (Vec::new(), Vec::new());
        reserve(&mut fields, number).and_then(|()| reserve(&mut nulls, number)).or_raise(py)?;
        for i in 0..number {
            let (field_schema, field_array) = field(py, schema, array, i)?;
            let (field, null) = Field::new(py, hasher, field_schema, field_array, rows, depth)?;
            fields.push(field);
            nulls.push(null);
        }
        let nulls = Nulls::Rows { own: Box::new(Nulls::of("+s", stated)?), fields: nulls, offset: stated.offset };
        let len = stated.len;
        let nulls = if nulls.any(py, len)? { nulls } else { Nulls::None };
        Ok((Rows { hasher: *hasher, fields, offset: stated.offset, len }, nulls))
    }

    fn write(&self, i: usize, buffer: &mut RowBuffer) -> bool {
        self.fields.iter().all(|field| field.write(self.offset + i, buffer))
    }

    fn feed(&self, i: usize, push: &mut dyn FnMut(&[u8])) {
        self.fields.iter().for_each(|field| field.feed(self.offset + i, push));
    }
}

impl HashSource for Rows {
    fn len(&self) -> usize {
        self.len
    }

    fn fill(&self, start: usize, out: &mut [u64]) {
        let hasher = self.hasher.of(Domain::Tuple);
        let mut buffer = RowBuffer { bytes: [0; AT_ONCE], len: 0 };
        for (i, out) in (start..).zip(out) {
            buffer.len = 0;
            *out = if self.write(i, &mut buffer) {
                hasher.bytes(&buffer.bytes[..buffer.len])
            } else {
                hasher.pieces(|push| self.feed(i, push))
            };
        }
    }

    fn domains(&self) -> KeyDomains {
        KeyDomains::of(Domain::Tuple)
    }
}
