//! Dictionary columns: rows that point at distinct values.

use bloomery_core::cells::allocation::zeroed;
use bloomery_core::structure::HashSource;
use pyo3::prelude::*;

use super::indices::Indices;
use super::nulls::Nulls;
use super::stated::{Stated, refused};
use crate::errors::OrRaise;
use crate::keys::column::Column;
use crate::turns;

/// Values hashed beforehand at most, in 32 MB; in a longer dictionary each row hashes its own.
const BEFOREHAND: usize = 1 << 22;

/// A dictionary column. Its distinct values are hashed once, unless they are more than its rows.
pub(super) struct Dictionary {
    values: Column,
    /// The hashes of all values, or none.
    hashes: Vec<u64>,
    indices: Indices,
    len: usize,
}

// SAFETY: a read-only view of a column that its chunk keeps alive, as `Column` is.
unsafe impl Sync for Dictionary {}
// SAFETY: as above.
unsafe impl Send for Dictionary {}

impl Dictionary {
    /// The rows that `stated` and `nulls` tell of, over `values`.
    pub(super) fn new(stated: &Stated<'_>, indices: Indices, nulls: &Nulls, values: Column) -> PyResult<Self> {
        let (py, len, distinct) = (stated.py, stated.len, values.len());
        // A null may have any index.
        let is_outside = |i: usize| indices.get(i) >= distinct && nulls.is_valid(i);
        if let Some(i) = turns::over(py, len, || (0..len).find(|&i| is_outside(i))) {
            return Err(refused(
                py,
                format!("index {} into a dictionary of {distinct} values", indices.get(i) as isize),
            ));
        }
        let beforehand = if distinct <= len && distinct <= BEFOREHAND { distinct } else { 0 };
        let hashed = || {
            let mut hashes = zeroed(beforehand)?;
            values.fill(0, &mut hashes);
            Ok(hashes)
        };
        let hashes = py.detach(hashed).or_raise(py)?;
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
}
