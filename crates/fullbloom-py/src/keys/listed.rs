//! Columns that can be had as Python's objects only.

use fullbloom_core::key::{KeyDomains, KeyHasher};
use pyo3::prelude::*;
use pyo3::types::PyFloat;

use super::scalar::hash_key_in;
use crate::arrow::import::Chunk;

/// The Python objects of a Polars or pandas column or frame, of which `is_null` tells the nulls. The Arrow form of
/// Polars' holds handles of theirs, not the keys.
pub(super) fn objects<'py>(
    hasher: &KeyHasher,
    items: &Bound<'py, PyAny>,
    is_null: impl Fn(&Bound<'py, PyAny>) -> bool,
) -> PyResult<Chunk> {
    Chunk::of(items, |item| if is_null(item) { Ok(None) } else { hash_in(hasher, item).map(Some) })
}

fn hash_in(hasher: &KeyHasher, item: &Bound<'_, PyAny>) -> PyResult<(u64, KeyDomains)> {
    hash_key_in(hasher, item).map(|(hash, domain)| (hash, KeyDomains::of(domain)))
}

/// Whether pandas takes `item` of a column of objects for missing.
pub(super) fn is_missing(item: &Bound<'_, PyAny>) -> bool {
    item.is_none()
        || item.cast::<PyFloat>().is_ok_and(|float| float.value().is_nan())
        || item.get_type().name().is_ok_and(|name| name == "NAType" || name == "NaTType")
}
