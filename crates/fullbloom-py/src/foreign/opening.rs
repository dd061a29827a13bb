//! Any filter of another program, as its class.

use std::path::Path;

use fullbloom_core::error::display_name;
use fullbloom_core::foreign::formats::{self, Format};
use fullbloom_core::foreign::opening::{Description, Foreign};
use fullbloom_core::foreign::source::Source;
use fullbloom_core::structure::opening::with_path;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::ForeignFilter;
use super::arguments::{ForeignArguments, check_no_secret, refuse_source};
use super::dumps::{ForeignCuckooFilter, ForeignScalableFilter};
use super::fingerprints::ForeignStaticFilter;
use super::sources::{AnyFile, open_any};
use crate::errors::{OrRaise, parameter};
use crate::files::{OpenOptions, path as read_path};
use crate::python_objects::bytes::read_bytes;

/// The object of a filter.
pub(super) fn wrap(py: Python<'_>, filter: Foreign) -> PyResult<Bound<'_, PyAny>> {
    Ok(match filter {
        Foreign::Bits(filter) => Bound::new(py, ForeignFilter::wrap(filter))?.into_any(),
        Foreign::Static(filter) => Bound::new(py, ForeignStaticFilter::wrap(filter))?.into_any(),
        Foreign::Layers(filter) => Bound::new(py, ForeignScalableFilter::wrap(filter))?.into_any(),
        Foreign::Tables(filter) => Bound::new(py, ForeignCuckooFilter::wrap(filter))?.into_any(),
    })
}

/// True if `source` names a file.
fn is_path(source: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(source.is_instance_of::<PyString>() || source.hasattr("__fspath__")?)
}

/// True if `source` is bytes, as `read_bytes` takes them.
fn is_data(source: &Bound<'_, PyAny>) -> bool {
    // SAFETY: a live object, and an attached thread.
    unsafe { pyo3::ffi::PyObject_CheckBuffer(source.as_ptr()) == 1 }
}

/// The filter in bytes or in a file that another program wrote, as the class of its format.
#[pyfunction]
#[pyo3(signature = (
    source: "bytes | bytearray | memoryview | str | os.PathLike[str]", format: "str | None" = None, *,
    key_type: "str | None" = None, num_bits: "int | None" = None, num_hashes: "int | None" = None,
    order: "str | None" = None, block_hash: "bytes | None" = None, max_bytes: "int | None" = None
) -> "Any")]
#[allow(clippy::too_many_arguments)] // the public signature
pub(crate) fn open_foreign<'py>(
    source: &Bound<'py, PyAny>,
    format: Option<&Bound<'py, PyAny>>,
    key_type: Option<&Bound<'py, PyAny>>,
    num_bits: Option<&Bound<'py, PyAny>>,
    num_hashes: Option<&Bound<'py, PyAny>>,
    order: Option<&Bound<'py, PyAny>>,
    block_hash: Option<&Bound<'py, PyAny>>,
    max_bytes: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let given = ForeignArguments { format, key_type, num_bits, num_hashes, order, block_hash, max_bytes };
    let py = source.py();
    let found = match is_path(source)? {
        true => given.read_file(py, &read_path(source)?, None),
        false if is_data(source) => given.read_data(source, None),
        false => Err(refuse_source(source)),
    };
    wrap(py, found?)
}

/// The name of the format of bytes, or of the file at a path; None if they fit none.
#[pyfunction]
#[pyo3(signature = (source: "bytes | bytearray | memoryview | str | os.PathLike[str]") -> "str | None")]
pub(crate) fn detect_foreign(source: &Bound<'_, PyAny>) -> PyResult<Option<&'static str>> {
    let py = source.py();
    let name = |source: &Source<'_>| formats::detect(source.head(), source.len()).map(|format| format.name);
    if !is_path(source)? {
        return Ok(name(&Source::of(&read_bytes("source", source)?)));
    }
    let path = read_path(source)?;
    let opened = py.detach(|| with_path(open_any(&path), &path)).or_raise(py)?;
    Ok(match opened {
        AnyFile::Ours(_) => None,
        AnyFile::Theirs(source) => name(&source),
    })
}

/// The filter of `fullbloom.open` in a file of another program: what the caller says, or what the bytes do. None if they fit
/// no format, which is an error of a file of ours.
pub(crate) fn open_theirs<'py>(
    py: Python<'py>,
    path: &Path,
    source: Source<'static>,
    (given, wanted): (&ForeignArguments<'_, 'py>, &OpenOptions),
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let described = given.read(py)?;
    let found: Option<&'static Format> = described.format.or_else(|| formats::detect(source.head(), source.len()));
    let Some(format) = found else {
        return match given.name() {
            // Without a format, other arguments say nothing of bytes that fit none.
            Some(_) => described.find_format(&source).or_raise(py).map(|_| None),
            None => Ok(None),
        };
    };
    check_no_secret(wanted).or_raise(py)?;
    let described = Description { format: Some(format), ..described };
    let read = py.detach(|| with_path(described.read(source), path)).or_raise(py)?;
    wrap(py, read).map(Some)
}

/// Refuses arguments that are for files of other programs.
pub(crate) fn check_ours(py: Python<'_>, given: &ForeignArguments<'_, '_>, path: &Path) -> PyResult<()> {
    match given.name() {
        None => Ok(()),
        Some(name) => Err(parameter(
            py,
            format!("{name}= is for files of other programs, and {} is a file of fullbloom's", display_name(path)),
        )),
    }
}
