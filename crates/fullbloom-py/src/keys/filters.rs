//! A filter in the place of keys: it is none, and says what to do instead.

use fullbloom_core::registry::{VARIANTS, Variant};
use pyo3::intern;
use pyo3::prelude::*;

use crate::errors::key_type;

/// Refuses `keys` where they are a filter.
pub(super) fn refuse(keys: &Bound<'_, PyAny>) -> PyResult<()> {
    let (py, class) = (keys.py(), keys.get_type());
    // The classes are final: the name tells.
    if !class.getattr(intern!(py, "__module__"))?.eq(intern!(py, "fullbloom")).unwrap_or(false) {
        return Ok(());
    }
    let name = class.name()?;
    let row = VARIANTS.iter().find(|row| name == row.class);
    row.map_or(Ok(()), |row| Err(key_type(py, message(row))))
}

/// What a filter of the row `of` is as a batch of keys.
fn message(of: &Variant) -> String {
    let class = of.class;
    let remedy = if of.capabilities.contains(&"merge") {
        format!("update() and merge() of a {class} take in another {class}")
    } else {
        format!("a {class} cannot be merged")
    };
    format!("a {class} is no batch: its keys cannot be read out of it; pass the keys themselves ({remedy})")
}
