//! Arguments, read under their names.

use fullbloom_core::foreign::formats::{self, Format};
use pyo3::prelude::*;

use crate::errors::{OrRaise, parameter};
use crate::parameters;

/// Reads `format=`.
pub(super) fn format(value: &Bound<'_, PyAny>) -> PyResult<&'static Format> {
    formats::named(parameters::text("format", value)?).or_raise(value.py())
}

/// Reads `format=` that may be None.
pub(super) fn optional_format(value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<&'static Format>> {
    value.filter(|value| !value.is_none()).map(format).transpose()
}

/// Reads `key_type=` that may be None.
pub(super) fn key_type<'a>(value: Option<&'a Bound<'_, PyAny>>) -> PyResult<Option<&'a str>> {
    value.filter(|value| !value.is_none()).map(|value| parameters::text("key_type", value)).transpose()
}

/// Reads `seed=`, of 32 bits.
pub(super) fn seed(value: &Bound<'_, PyAny>) -> PyResult<u32> {
    let seed = parameters::whole("seed", value, 0)?;
    let wide = || parameter(value.py(), format!("seed must be between 0 and 2**32 - 1, got {seed}"));
    u32::try_from(seed).map_err(|_| wide())
}
