//! Arguments, read under their names.

use std::path::Path;

use fullbloom_core::error::{Error, Result};
use fullbloom_core::foreign::formats::{self, Format};
use fullbloom_core::foreign::opening::{Description, Foreign};
use fullbloom_core::foreign::rules::Range;
use fullbloom_core::foreign::source::Source;
use fullbloom_core::structure::opening::with_path;
use pyo3::prelude::*;

use super::sources;
use crate::errors::{OrRaise, parameter, parameter_type};
use crate::files::OpenOptions;
use crate::parameters;
use crate::python_objects::bytes::read_bytes;

/// Bytes of the hash of a block.
const BLOCK_HASH: usize = 32;

/// The argument, unless it is None.
fn non_null<'a, 'py>(value: Option<&'a Bound<'py, PyAny>>) -> Option<&'a Bound<'py, PyAny>> {
    value.filter(|value| !value.is_none())
}

/// Reads `format=`.
pub(super) fn format(value: &Bound<'_, PyAny>) -> PyResult<&'static Format> {
    formats::find_by_name(parameters::text("format", value)?).or_raise(value.py())
}

/// Reads `key_type=` that may be None.
pub(super) fn key_type<'a>(value: Option<&'a Bound<'_, PyAny>>) -> PyResult<Option<&'a str>> {
    non_null(value).map(|value| parameters::text("key_type", value)).transpose()
}

/// Reads `seed=`, of 32 bits.
pub(super) fn seed(value: &Bound<'_, PyAny>) -> PyResult<u32> {
    let seed = parameters::parse_whole("seed", value, 0)?;
    let wide = || parameter(value.py(), format!("seed must be between 0 and 2**32 - 1, got {seed}"));
    u32::try_from(seed).map_err(|_| wide())
}

/// Reads `num_bits=` and `num_hashes=`, both or neither.
fn shape(
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

/// Reads `block_hash=` that may be None.
pub(super) fn block_hash(value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<[u8; BLOCK_HASH]>> {
    let Some(value) = non_null(value) else { return Ok(None) };
    let bytes = read_bytes("block_hash", value)?;
    let wrong = || parameter(value.py(), format!("block_hash must have {BLOCK_HASH} bytes, got {}", bytes.len()));
    <[u8; BLOCK_HASH]>::try_from(&bytes[..]).map(Some).map_err(|_| wrong())
}

/// The format of the same bits with the order that `order=` names; an order is for bits alone.
fn choose_order(
    py: Python<'_>,
    format: Option<&'static Format>,
    order: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<&'static Format>> {
    let Some(order) = non_null(order) else { return Ok(format) };
    let order = parameters::text("order", order)?;
    if !["lsb", "msb"].contains(&order) {
        return Err(parameter(py, format!("order must be \"lsb\" or \"msb\", got {order:?}")));
    }
    let Some((format, twin)) = format.and_then(|format| Some((format, formats::twin(format)?))) else {
        let name = format.map_or("None".into(), |format| format!("{:?}", format.name));
        return Err(parameter(py, format!("order is for formats of bits alone, got format {name}")));
    };
    let has_order = |format: &'static Format| format.bits().is_ok_and(|layout| layout.order.name() == order);
    Ok(Some(if has_order(format) { format } else { twin }))
}

/// The arguments of functions that read bytes of another program. Each may be None.
#[derive(Default)]
pub(crate) struct ForeignArguments<'a, 'py> {
    pub(crate) format: Option<&'a Bound<'py, PyAny>>,
    pub(crate) key_type: Option<&'a Bound<'py, PyAny>>,
    pub(crate) num_bits: Option<&'a Bound<'py, PyAny>>,
    pub(crate) num_hashes: Option<&'a Bound<'py, PyAny>>,
    pub(crate) order: Option<&'a Bound<'py, PyAny>>,
    pub(crate) block_hash: Option<&'a Bound<'py, PyAny>>,
    pub(crate) max_bytes: Option<&'a Bound<'py, PyAny>>,
}

impl<'a> ForeignArguments<'a, '_> {
    /// The name of an argument that the caller passed, other than the limit.
    pub(crate) fn name(&self) -> Option<&'static str> {
        let all = [
            ("format", self.format),
            ("key_type", self.key_type),
            ("num_bits", self.num_bits),
            ("num_hashes", self.num_hashes),
            ("order", self.order),
            ("block_hash", self.block_hash),
        ];
        all.into_iter().find(|(_, value)| non_null(*value).is_some()).map(|(name, _)| name)
    }

    /// What they say.
    pub(super) fn read(&self, py: Python<'_>) -> PyResult<Description<'a>> {
        let format = non_null(self.format).map(format).transpose()?;
        Ok(Description {
            format: choose_order(py, format, self.order)?,
            key_type: key_type(self.key_type)?,
            shape: shape(py, self.num_bits, self.num_hashes)?,
            block_hash: block_hash(self.block_hash)?,
            max_bytes: parameters::optional_whole("max_bytes", self.max_bytes, 1)?,
        })
    }

    /// The filter in `data`. Its class must be `class`, if one is given.
    pub(super) fn read_data(&self, data: &Bound<'_, PyAny>, class: Option<&str>) -> PyResult<Foreign> {
        let (py, bytes, described) = (data.py(), read_bytes("data", data)?, self.read(data.py())?);
        py.detach(|| read(&described, Source::of(&bytes), class)).or_raise(py)
    }

    /// The filter in the file at `path`, which is read once. Its class must be `class`, if one is given.
    pub(super) fn read_file(&self, py: Python<'_>, path: &Path, class: Option<&str>) -> PyResult<Foreign> {
        let described = self.read(py)?;
        py.detach(|| with_path(sources::of_file(path).and_then(|source| read(&described, source, class)), path))
            .or_raise(py)
    }
}

/// The filter in `source`, if it is of the class.
fn read(described: &Description<'_>, source: Source<'_>, class: Option<&str>) -> Result<Foreign> {
    let format = described.find_format(&source)?;
    class.map_or(Ok(()), |class| format.check_class(class))?;
    Description { format: Some(format), ..described.clone() }.read(source)
}

/// The object of a filter whose class was checked.
pub(super) fn of_class<T>(py: Python<'_>, filter: Option<T>) -> PyResult<T> {
    filter.ok_or_else(|| parameter(py, "the bytes hold a filter of another class"))
}

/// Refuses a secret.
pub(super) fn check_no_secret(wanted: &OpenOptions) -> Result<()> {
    match wanted.secret {
        None => Ok(()),
        Some(_) => Err(Error::parameter("the filter was built without a secret; open it without secret=")),
    }
}

/// The error for a source that is neither bytes nor a path.
pub(super) fn refuse_source(source: &Bound<'_, PyAny>) -> PyErr {
    let class = source.get_type().name().map_or_else(|_| "an object".into(), |name| name.to_string());
    parameter_type(source.py(), format!("source must be bytes or a path, got {class}"))
}
