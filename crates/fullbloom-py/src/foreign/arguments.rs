//! Arguments, read under their names.

use fullbloom_core::error::{Error, Result};
use fullbloom_core::foreign::formats::{self, Format};
use fullbloom_core::foreign::rules::Range;
use pyo3::prelude::*;

use super::files::Wanted;
use crate::errors::{OrRaise, parameter};
use crate::files::OpenOptions;
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
    let seed = parameters::parse_whole("seed", value, 0)?;
    let wide = || parameter(value.py(), format!("seed must be between 0 and 2**32 - 1, got {seed}"));
    u32::try_from(seed).map_err(|_| wide())
}

/// Reads `num_bits=` and `num_hashes=`, both or neither.
pub(super) fn shape(
    py: Python<'_>,
    num_bits: Option<&Bound<'_, PyAny>>,
    num_hashes: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<Range>> {
    let num_bits = parameters::optional_whole("num_bits", num_bits, 1)?;
    let num_hashes = parameters::optional_whole("num_hashes", num_hashes, 1)?;
    match (num_bits, num_hashes) {
        (None, None) => Ok(None),
        (Some(num_bits), Some(num_hashes)) => {
            Ok(Some(Range { num_bits, num_hashes: u32::try_from(num_hashes).unwrap_or(u32::MAX) }))
        }
        _ => Err(parameter(py, "num_bits and num_hashes describe bits alone together; say both")),
    }
}

/// Reads `format=`, `key_type=` and `max_bytes=` of bytes, each of which may be None.
pub(super) fn wanted<'a>(
    format: Option<&Bound<'_, PyAny>>,
    key_type_name: Option<&'a Bound<'_, PyAny>>,
    shape: Option<Range>,
    max_bytes: Option<&Bound<'_, PyAny>>,
) -> PyResult<Wanted<'a>> {
    let max_bytes = parameters::optional_whole("max_bytes", max_bytes, 1)?.unwrap_or(u64::MAX);
    Ok(Wanted { format: optional_format(format)?, key_type: key_type(key_type_name)?, shape, max_bytes })
}

/// Refuses a secret.
pub(super) fn check_no_secret(wanted: &OpenOptions) -> Result<()> {
    match wanted.secret {
        None => Ok(()),
        Some(_) => Err(Error::parameter("the filter was built without a secret; open it without secret=")),
    }
}
