//! Dictionary columns: rows that point at distinct values.

use fullbloom_core::cells::allocation::zeroed;
use fullbloom_core::key::{Domain, KeyDomains};
use fullbloom_core::structure::HashSource;
use pyo3::prelude::*;

use super::ffi::{Array, Schema};
use super::indices::Indices;
use super::meaning::Meaning;
use super::nulls::Nulls;
use super::stated::{Stated, format_of, is_plausible, refuse};
use crate::column::Column;
use crate::errors::{OrRaise, key_type};

/// The most values hashed in advance, in 32 MB; in a longer dictionary each row hashes its own.
const MAX_HASHED: usize = 1 << 22;

/// The schema and the array of the values of a column, if it is a dictionary's.
pub(super) fn find<'a>(
    py: Python<'_>,
    schema: &'a Schema,
    array: &'a Array,
) -> PyResult<Option<(&'a Schema, &'a Array)>> {
    if schema.dictionary.is_null() != array.dictionary.is_null() {
        return Err(refuse(py, "a dictionary that is missing, or has one that it does not state"));
    }
    if schema.dictionary.is_null() {
        return Ok(None);
    }
    if !is_plausible(schema.dictionary) || !is_plausible(array.dictionary) {
        return Err(refuse(py, format!("a dictionary at {:?}", array.dictionary)));
    }
    // SAFETY: both are alive as long as their parents.
    Ok(Some(unsafe { (&*schema.dictionary, &*array.dictionary) }))
}

/// The values of a dictionary, and which of them are nulls.
pub(super) fn values(py: Python<'_>, meaning: Meaning, schema: &Schema, array: &Array) -> PyResult<(Column, Nulls)> {
    if !schema.dictionary.is_null() {
        return Err(key_type(py, "a dictionary of dictionaries holds no keys; decode the inner one"));
    }
    let (format, stated) = (format_of(schema), Stated::new(py, array)?);
    let nulls = Nulls::of(&format, &stated)?;
    Ok((meaning.column(&format, &stated, &nulls)?, nulls))
}

/// A dictionary column. Its distinct values are hashed once, unless they are more than its rows.
pub(super) struct Dictionary {
    values: Column,
    /// The hashes of all values, or empty.
    hashes: Vec<u64>,
    indices: Indices,
    len: usize,
}

// SAFETY: a read-only view of a column that its chunk keeps alive, as `Column` is.
unsafe impl Sync for Dictionary {}
// SAFETY: as above.
unsafe impl Send for Dictionary {}

impl Dictionary {
    /// The rows that `stated` and `nulls` describe, over `values`.
    pub(super) fn new(stated: &Stated<'_>, indices: Indices, nulls: &Nulls, values: Column) -> PyResult<Self> {
        let (py, len, distinct) = (stated.py, stated.len, values.len());
        nulls.check_indices(stated, &indices, distinct)?;
        let in_advance = if distinct <= len && distinct <= MAX_HASHED { distinct } else { 0 };
        let hash = || {
            let mut hashes = zeroed(in_advance)?;
            values.fill(0, &mut hashes);
            Ok(hashes)
        };
        let hashes = py.detach(hash).or_raise(py)?;
        Ok(Dictionary { values, hashes, indices, len })
    }
}

impl HashSource for Dictionary {
    fn len(&self) -> usize {
        self.len
    }

    fn fill(&self, start: usize, out: &mut [u64]) {
        for (i, out) in out.iter_mut().enumerate() {
            let index = self.indices.get(start + i);
            match self.hashes.get(index) {
                Some(hash) => *out = *hash,
                None if index < self.values.len() => self.values.fill(index, std::slice::from_mut(out)),
                None => *out = 0,
            }
        }
    }

    fn domains(&self) -> KeyDomains {
        self.values.domains()
    }

    fn each_key(&self, start: usize, count: usize, take: &mut dyn FnMut(Domain, &[u8])) -> bool {
        (start..start + count).all(|i| {
            let index = self.indices.get(i);
            // The index of a null may be any.
            if index < self.values.len() {
                return self.values.each_key(index, 1, take);
            }
            take(Domain::Text, &[]);
            true
        })
    }
}
