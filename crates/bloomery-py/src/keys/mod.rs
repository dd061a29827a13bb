//! Keys from Python: one at a time, from lists and iterables, from buffers and Arrow columns.
//!
//! Every path ends in [`bloomery_core::key::KeyHasher`], so all agree on every key.

pub(crate) mod batch;
pub(crate) mod buffer;
pub(crate) mod column;
pub(crate) mod digits;
pub(crate) mod items;
pub(crate) mod letters;
pub(crate) mod ready;
pub(crate) mod scalar;

use pyo3::prelude::*;
use pyo3::types::PyType;

/// Whether words have 64 bits and `class` states these sizes of its objects: what must hold before one is
/// read otherwise than through the stable ABI.
fn has_sizes(class: &Bound<'_, PyType>, basic: usize, item: usize) -> PyResult<bool> {
    let states = |name, size: usize| class.getattr(name)?.eq(size);
    Ok(size_of::<usize>() == 8 && states("__basicsize__", basic)? && states("__itemsize__", item)?)
}
