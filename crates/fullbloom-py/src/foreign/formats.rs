//! The table of formats, and positions by their rules.

use fullbloom_core::foreign::bits::BitFilter;
use fullbloom_core::foreign::formats::{self, Format};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::arguments;
use super::keys::digest_parts;
use crate::errors::OrRaise;
use crate::keys::refusals::refuse_single;
use crate::parameters;

/// The positions of each key in a filter of this shape, k a key, in the order in which its program computes them.
///
/// Creates no filter. Raises ParameterError for a shape that the format does not have, KeyTypeError.
#[pyfunction]
#[pyo3(signature = (
    format: "str", num_bits: "int", num_hashes: "int", keys: "Iterable[Key]", *, key_type: "str | None" = None
) -> "list[list[int]]")]
pub(crate) fn foreign_positions(
    #[pyo3(from_py_with = arguments::format)] format: &'static Format,
    num_bits: &Bound<'_, PyAny>,
    num_hashes: &Bound<'_, PyAny>,
    keys: &Bound<'_, PyAny>,
    key_type: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<Vec<u64>>> {
    let py = keys.py();
    let num_bits = parameters::parse_whole("num_bits", num_bits, 1)?;
    let num_hashes = u32::try_from(parameters::parse_whole("num_hashes", num_hashes, 1)?).unwrap_or(u32::MAX);
    let key_type = format.key_type(arguments::key_type(key_type)?).or_raise(py)?;
    let filter = BitFilter::without_bits(format, key_type, num_bits, num_hashes).or_raise(py)?;
    let hashing = filter.hashing();
    let mut parts = vec![[0; 2]; hashing.parts()];
    refuse_single(keys)?;
    keys.try_iter()?
        .map(|key| {
            digest_parts(&hashing, &key?, &mut parts)?;
            Ok(filter.positions(&parts))
        })
        .collect()
}

/// One dict per format of other programs: name, title, rule, types of keys, and how it was checked.
#[pyfunction]
#[pyo3(signature = () -> "list[dict[str, Any]]")]
pub(crate) fn foreign_formats(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let rows = PyList::empty(py);
    for &format in formats::ALL {
        let row = PyDict::new(py);
        row.set_item("number", format.number)?;
        row.set_item("name", format.name)?;
        row.set_item("program", format.program)?;
        row.set_item("title", format.title)?;
        row.set_item("rule", format.rule_in_words)?;
        row.set_item("key_types", format.key_types.iter().map(|of| of.name()).collect::<Vec<_>>())?;
        row.set_item("key_type_name", format.key_type_name)?;
        row.set_item("class", format.contents.class())?;
        row.set_item("detected", format.is_detected)?;
        row.set_item("needs", needs(format))?;
        row.set_item("written", format.is_written)?;
        let layout = format.bits().ok();
        row.set_item("seeded", layout.is_some_and(|layout| layout.is_seeded))?;
        row.set_item("order", layout.map_or("lsb", |layout| layout.order.name()))?;
        row.set_item("twin", formats::twin(format).map(|twin| twin.name))?;
        row.set_item("own_layout", format.own.as_ref().map(|own| own.layout))?;
        row.set_item("own_hash", format.own.as_ref().map(|own| own.hash))?;
        row.set_item("verified", format.verified)?;
        row.set_item("limits", format.limits)?;
        rows.append(row)?;
    }
    Ok(rows)
}

/// The arguments beside the format without which its bytes cannot be read.
fn needs(format: &Format) -> Vec<&'static str> {
    let mut needs = Vec::new();
    if format.is_bare() {
        needs.extend(["num_bits", "num_hashes"]);
    }
    if format.needs_block_hash() {
        needs.push("block_hash");
    }
    needs
}
