//! `decimal.Decimal` as canonical bytes.

use fullbloom_core::cells::allocation::reserve;
use fullbloom_core::key::Domain;
use fullbloom_core::key::decimal::{BESIDE_DIGITS, Decimal};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use super::sink::Sink;
use crate::errors::{OrRaise, key_type};

/// Gives `sink` the canonical bytes of `key`; false for what is no decimal number.
pub(super) fn encode(key: &Bound<'_, PyAny>, sink: &mut impl Sink) -> PyResult<bool> {
    let py = key.py();
    // Who has such a key has the module: it is not imported for others.
    let modules = py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?;
    let Some(module) = modules.get_item(intern!(py, "decimal"))? else { return Ok(false) };
    let Ok(class) = module.getattr(intern!(py, "Decimal")).and_then(|class| Ok(class.cast_into::<PyType>()?)) else {
        return Ok(false);
    };
    if !key.is_instance(&class)? {
        return Ok(false);
    }
    let (negative, numbers, exponent): (u8, Bound<'_, PyTuple>, Bound<'_, PyAny>) =
        key.call_method0(intern!(py, "as_tuple"))?.extract()?;
    let Ok(exponent) = exponent.extract::<i64>() else {
        return Err(key_type(py, format!("a decimal key must be a finite number, got {}; leave it out", key.str()?)));
    };
    let (mut digits, mut bytes) = (Vec::new(), Vec::new());
    reserve(&mut digits, numbers.len()).or_raise(py)?;
    reserve(&mut bytes, numbers.len() + BESIDE_DIGITS).or_raise(py)?;
    for number in &numbers {
        digits.push(b'0' + number.extract::<u8>()? % 10);
    }
    Decimal::new(negative != 0, &digits, exponent).write(&mut bytes)?;
    sink.take(py, Domain::Decimal, &bytes)?;
    Ok(true)
}
