//! Arguments of constructors.

use fullbloom_core::signature::shape::{Column, MOST_BLOCK_ROWS};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::errors::{parameter, parameter_type};
use crate::parameters;

/// A whole number, or a number for each rank.
pub(super) fn by_rank(name: &'static str, value: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    let is_sequence = !value.is_instance_of::<PyString>() && value.len().is_ok() && value.get_item(0).is_ok();
    if !is_sequence {
        return Ok(vec![parameters::parse_whole(name, value, 1)?]);
    }
    if value.len()? > 64 {
        return Err(parameter(value.py(), format!("{name} must have one number per rank, got {}", value.len()?)));
    }
    value.try_iter()?.map(|number| parameters::parse_whole(name, &number?, 0)).collect()
}

/// The columns, with the bits of a value in each.
pub(super) fn read_columns(value: Option<&Bound<'_, PyAny>>, bits: u64) -> PyResult<Vec<Column>> {
    let Some(value) = value.filter(|value| !value.is_none()) else { return Ok(Vec::new()) };
    let wrong = || parameter_type(value.py(), "columns must be names, or a dict of names and bits");
    if value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>() {
        return Err(wrong());
    }
    let mut columns = Vec::new();
    let widths = value.cast::<PyDict>().ok();
    for name in value.try_iter().map_err(|_| wrong())? {
        let name = name?;
        let bits = match widths {
            Some(widths) => match widths.get_item(&name)? {
                Some(bits) => parameters::parse_whole("columns", &bits, 1)?,
                None => return Err(wrong()),
            },
            None => bits,
        };
        columns.push(Column { name: name.extract::<String>().map_err(|_| wrong())?, bits });
    }
    if columns.is_empty() { Err(parameter(value.py(), "columns must name at least one column")) } else { Ok(columns) }
}

pub(super) fn read_capacity(value: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
    Ok(parameters::optional_whole("capacity", value, 1)?.unwrap_or(MOST_BLOCK_ROWS))
}
