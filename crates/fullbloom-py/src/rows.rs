//! Records that are rows of a table of Python's: here are their numbers and the hashes of their keys.

use std::sync::Arc;

use fullbloom_core::cells::allocation::{reserve, zeroed};
use fullbloom_core::key::KeyDomains;
use fullbloom_core::text::select::{KeyedRecords as Core, Selection};
use pyo3::prelude::*;

use crate::arrow::import;
use crate::arrow::meaning::Meaning;
use crate::errors::{OrRaise, parameter};
use crate::objects;
use crate::records::{KeyedRecords, hasher_of};

/// Bytes of the number of a row.
const WIDTH: usize = size_of::<u32>();

#[pymethods]
impl KeyedRecords {
    /// The rows of an Arrow column of keys; a null is no key. Their bytes are their numbers, 4 bytes each in the order of
    /// the machine: there is no text, so that a second pass cannot compare it.
    #[staticmethod]
    #[pyo3(signature = (filter: "_Filter", keys: "object") -> "KeyedRecords")]
    fn of_column(filter: &Bound<'_, PyAny>, keys: &Bound<'_, PyAny>) -> PyResult<KeyedRecords> {
        let (py, hasher) = (filter.py(), hasher_of(filter)?);
        let mut chunks = import::open(Meaning::Keys(hasher), keys, &import::lend(keys)?)?;
        let (mut hashes, mut keyed, mut domains) = (Vec::<u64>::new(), Vec::<u8>::new(), KeyDomains::NONE);
        while let Some(chunk) = chunks.next(py)? {
            let (start, len) = (hashes.len(), chunk.source.len());
            reserve(&mut hashes, len).and_then(|()| reserve(&mut keyed, len)).or_raise(py)?;
            hashes.resize(start + len, 0);
            keyed.resize(start + len, 0);
            chunk.nulls.mark(0, &mut keyed[start..]);
            if keyed[start..].iter().any(|&mark| mark != 0) {
                domains = domains.with(chunk.source.domains());
            }
            py.detach(|| chunk.source.fill(0, &mut hashes[start..]));
        }
        let rows = u32::try_from(keyed.len()).map_err(|_| parameter(py, "a batch has less than 2^32 rows"))?;
        let core = Core::of_rows(WIDTH, &keyed, &hashes, domains).or_raise(py)?;
        let mut numbers: Vec<u8> = zeroed(keyed.len() * WIDTH).or_raise(py)?;
        for (row, number) in (0..rows).zip(numbers.chunks_exact_mut(WIDTH)) {
            number.copy_from_slice(&row.to_ne_bytes());
        }
        let selection = Arc::new(Selection::lines(hasher));
        Ok(KeyedRecords { selection, block: objects::bytes(py, &numbers)?.unbind(), core })
    }
}
