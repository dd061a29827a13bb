//! The table of formats, and the format of bytes.

use fullbloom_core::foreign::bits::BitFilter;
use fullbloom_core::foreign::fingerprints;
use fullbloom_core::foreign::formats::{self, Order};
use fullbloom_core::foreign::redisbloom::row;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use super::keys::digest_parts;
use super::{arguments, files};
use crate::errors::OrRaise;
use crate::files::path as read_path;
use crate::keys::refusals::refuse_single;
use crate::parameters;
use crate::python_objects::bytes::read_bytes;

/// The name of the format of bytes, or of the file at a path; None if they fit none.
#[pyfunction]
#[pyo3(signature = (source: "bytes | bytearray | memoryview | str | os.PathLike[str]") -> "str | None")]
pub(crate) fn detect_foreign(source: &Bound<'_, PyAny>) -> PyResult<Option<&'static str>> {
    let py = source.py();
    let is_path = source.is_instance_of::<PyString>() || source.hasattr("__fspath__")?;
    if is_path {
        let path = read_path(source)?;
        return py.detach(|| files::detect_name(&path)).or_raise(py);
    }
    let bytes = read_bytes("source", source)?;
    let head = &bytes[..bytes.len().min(formats::Head::MOST)];
    let first = |count: usize| Some(bytes[..bytes.len().min(count)].to_vec());
    Ok(files::name_of(head, bytes.len() as u64, first))
}

/// The positions of each key in a filter of this shape, k a key, in the order in which its program computes them.
///
/// Creates no filter. Raises ParameterError for a shape that the format does not have, KeyTypeError.
#[pyfunction]
#[pyo3(signature = (
    format: "str", num_bits: "int", num_hashes: "int", keys: "Iterable[Key]", *, key_type: "str | None" = None
) -> "list[list[int]]")]
pub(crate) fn foreign_positions(
    #[pyo3(from_py_with = arguments::format)] format: &'static formats::Format,
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
    for format in formats::ALL {
        let row = PyDict::new(py);
        row.set_item("number", format.number)?;
        row.set_item("name", format.name)?;
        row.set_item("title", format.title)?;
        row.set_item("rule", format.rule_in_words)?;
        row.set_item("key_types", format.key_types.iter().map(|of| of.name()).collect::<Vec<_>>())?;
        row.set_item("key_type_name", format.key_type_name)?;
        row.set_item("seeded", format.is_seeded)?;
        row.set_item("written", format.frame.is_written)?;
        row.set_item("detected", format.frame.is_detected && !format.rule.is_bare())?;
        row.set_item("class", "ForeignFilter")?;
        // Of any number of bits, and in two orders: those of packages are not.
        row.set_item("bare", format.rule.is_bare() && format.bits_step == 1)?;
        row.set_item("order", if format.order == Order::HighBits { "msb" } else { "lsb" })?;
        row.set_item("verified", format.verified)?;
        row.set_item("limits", format.limits)?;
        rows.append(row)?;
    }
    for format in fingerprints::rows::ALL {
        let row = PyDict::new(py);
        row.set_item("number", format.number)?;
        row.set_item("name", format.name)?;
        row.set_item("title", format.title)?;
        row.set_item("rule", format.rule_in_words)?;
        row.set_item("key_types", format.keys().types.iter().map(|of| of.name()).collect::<Vec<_>>())?;
        row.set_item("key_type_name", format.keys().called)?;
        row.set_item("seeded", false)?;
        row.set_item("written", true)?;
        row.set_item("detected", true)?;
        row.set_item("class", "ForeignStaticFilter")?;
        row.set_item("bare", false)?;
        row.set_item("order", "lsb")?;
        row.set_item("verified", format.verified)?;
        row.set_item("limits", format.limits)?;
        rows.append(row)?;
    }
    for (dumped, class) in row::ROWS.into_iter().zip(["ForeignScalableFilter", "ForeignCuckooFilter"]) {
        let row = PyDict::new(py);
        row.set_item("number", dumped.number)?;
        row.set_item("name", dumped.name)?;
        row.set_item("title", dumped.title)?;
        row.set_item("rule", dumped.rule_in_words)?;
        row.set_item("key_types", ["bytes"])?;
        row.set_item("key_type_name", "key_type")?;
        row.set_item("seeded", false)?;
        row.set_item("written", true)?;
        row.set_item("detected", true)?;
        row.set_item("class", class)?;
        row.set_item("bare", false)?;
        row.set_item("order", "lsb")?;
        row.set_item("verified", dumped.verified)?;
        row.set_item("limits", dumped.limits)?;
        rows.append(row)?;
    }
    Ok(rows)
}
