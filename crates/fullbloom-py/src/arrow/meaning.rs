//! The meaning of the values of a column.

use fullbloom_core::key::KeyHasher;
use pyo3::prelude::*;

use super::column::column;
use super::nulls::Nulls;
use super::stated::Stated;
use crate::column::Column;
use crate::errors::{key_type, parameter, parameter_type};
use crate::locking::slices;

/// What the values of a column mean.
#[derive(Clone, Copy)]
pub(crate) enum Meaning {
    /// Keys, hashed by this rule.
    Keys(KeyHasher),
    /// Ready hashes.
    Hashes,
    /// Whole numbers of a parameter of this name.
    Numbers(&'static str),
}

impl Meaning {
    /// The column of `format`: of hashes, or of the numbers that it holds.
    pub(super) fn column(self, format: &str, stated: &Stated<'_>, nulls: &Nulls) -> PyResult<Column> {
        let hasher = match self {
            Meaning::Keys(hasher) => return column(&hasher, format, stated, nulls),
            Meaning::Hashes | Meaning::Numbers(_) => KeyHasher::seeded(0),
        };
        // A column of nulls alone has no type.
        let column = match format {
            "n" => return column(&hasher, format, stated, nulls),
            _ if is_whole(format) => column(&hasher, format, stated, nulls)?.into_numbers(),
            _ => None,
        };
        let Some(column) = column else { return Err(self.refuse_format(stated.py, format)) };
        let below = |i: &usize| column.number(*i) < 0 && nulls.is_valid(*i);
        match slices::find_first(stated.py, if column.is_signed() { stated.len } else { 0 }, |mut rows| {
            rows.find(below)
        })? {
            Some(i) => Err(self.refuse_number(stated.py, column.number(i))),
            None => Ok(column),
        }
    }

    /// The hasher of keys; an error if the column should hold numbers, because rows of fields are keys only.
    pub(super) fn hasher(self, py: Python<'_>, format: &str) -> PyResult<KeyHasher> {
        match self {
            Meaning::Keys(hasher) => Ok(hasher),
            Meaning::Hashes | Meaning::Numbers(_) => Err(self.refuse_format(py, format)),
        }
    }

    /// The error for a column of another type.
    fn refuse_format(self, py: Python<'_>, format: &str) -> PyErr {
        match self {
            Meaning::Numbers(name) => {
                parameter_type(py, format!("{name} must be a whole number, got an Arrow column of format {format:?}"))
            }
            Meaning::Keys(_) | Meaning::Hashes => key_type(
                py,
                format!(
                    "hashes must be whole numbers between 0 and 2**64 - 1, got an Arrow column of format {format:?}; \
                     see hash_key() and hash_many()"
                ),
            ),
        }
    }

    /// The error for a number below 0.
    fn refuse_number(self, py: Python<'_>, number: i64) -> PyErr {
        let name = if let Meaning::Numbers(name) = self { name } else { "a hash" };
        parameter(py, format!("{name} must be between 0 and 2**64 - 1, got {number}"))
    }
}

/// True for the formats of whole numbers.
fn is_whole(format: &str) -> bool {
    matches!(format, "c" | "C" | "s" | "S" | "i" | "I" | "l" | "L")
}
