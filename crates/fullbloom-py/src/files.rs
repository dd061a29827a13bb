//! Filters from bytes and files, filters to files.

use std::path::{Path, PathBuf};

use fullbloom_core::bloom::BloomFilter;
use fullbloom_core::cells::Memory;
use fullbloom_core::container::Verify;
use fullbloom_core::container::file::{OpenFile, Writer};
use fullbloom_core::error::{Error, Result};
use fullbloom_core::registry;
use fullbloom_core::structure::Loadable;
pub(crate) use fullbloom_core::structure::opening::OpenOptions;
use fullbloom_core::structure::opening::{check_payload, with_path};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::errors::{OrRaise, parameter, parameter_type};
use crate::parameters;

const BLOOM_ONLY: &str =
    "mode=\"r+\" is for a BloomFilter, whose file does not grow; open with mode=\"r\", copy(), add and save()";

/// `mode=` of open.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Mode {
    Read,
    Write,
}

/// Refuses any mode but `"r"`, for structures that are not written in place.
pub(crate) fn check_read_only(py: Python<'_>, value: &str) -> PyResult<()> {
    if mode(py, value)? == Mode::Write {
        return Err(parameter(py, BLOOM_ONLY));
    }
    Ok(())
}

/// Reads `mode=`.
pub(crate) fn mode(py: Python<'_>, name: &str) -> PyResult<Mode> {
    match name {
        "r" => Ok(Mode::Read),
        "r+" => Ok(Mode::Write),
        _ => Err(parameter(py, format!("mode must be \"r\" or \"r+\", got {name:?}"))),
    }
}

/// Reads `verify=`, `secret=` and `max_bytes=`.
pub(crate) fn read_open_options(
    py: Python<'_>,
    verify: &str,
    secret: Option<&Bound<'_, PyAny>>,
    max_bytes: Option<&Bound<'_, PyAny>>,
) -> PyResult<OpenOptions> {
    let verify = match verify {
        "header" => Verify::Header,
        "full" => Verify::Full,
        _ => return Err(parameter(py, format!("verify must be \"header\" or \"full\", got {verify:?}"))),
    };
    let max_bytes = max_bytes.map_or(Ok(u64::MAX), |bytes| parameters::parse_whole("max_bytes", bytes, 1))?;
    Ok(OpenOptions { verify, secret: parameters::secret(secret)?, max_bytes })
}

/// Opens the file at `path` and checks its header.
pub(crate) fn open(path: &Path) -> Result<OpenFile> {
    with_path(OpenFile::new(path), path)
}

/// What the arguments of a class's `open` name: a file that is not written in place, its path, and how to read it.
pub(crate) fn open_read_only(
    value: &Bound<'_, PyAny>,
    mode: &str,
    verify: &str,
    secret: Option<&Bound<'_, PyAny>>,
    max_bytes: Option<&Bound<'_, PyAny>>,
) -> PyResult<(OpenFile, PathBuf, OpenOptions)> {
    let py = value.py();
    check_read_only(py, mode)?;
    let (wanted, path) = (read_open_options(py, verify, secret, max_bytes)?, path(value)?);
    let file = py.detach(|| open(&path)).or_raise(py)?;
    Ok((file, path, wanted))
}

/// A Bloom filter over a writable mapping of `path`, which stays locked while the filter lives. Every byte is checked, since
/// closing writes new checksums, unless a writer crashed, so that the file has no valid checksums.
pub(crate) fn open_write(path: &Path, wanted: &OpenOptions) -> Result<BloomFilter> {
    let writer = Writer::open(path)?;
    let load = || {
        let parsed = writer.parse()?;
        if registry::by_id(parsed.header.variant).is_some_and(|row| row.id != registry::BLOOM) {
            return Err(Error::parameter(BLOOM_ONLY));
        }
        if wanted.verify == Verify::Full || !parsed.header.unclean {
            check_payload(&parsed, &writer.map()?)?;
        }
        wanted.load(&parsed, registry::BLOOM, |span| Memory::from_map_mut(writer.map_mut()?, span.offset, span.len / 8))
    };
    let mut filter: BloomFilter = with_path(load(), path)?;
    filter.attach(writer)?;
    Ok(filter)
}

/// Refuses a mapped filter whose cells are damaged: after a merge the damage could not be detected any more.
pub(crate) fn check_sound<F: Loadable>(filter: &F) -> Result<()> {
    let container = filter.container();
    if container.sections.iter().all(|section| section.checksum.is_none()) {
        return Ok(());
    }
    container.sections.iter().try_for_each(|section| section.check().map(drop))?;
    filter.check_cells()
}

/// Refuses a mapped filter whose cells contradict each other; they may not have been checked yet.
pub(crate) fn check_mapped<F: Loadable>(filter: &F) -> Result<()> {
    let mapped = filter.container().sections.iter().any(|section| section.checksum.is_some());
    if mapped { filter.check_cells() } else { Ok(()) }
}

/// Refuses a new filter that is larger than `max_bytes`; nothing has been written to its cells yet.
pub(crate) fn check_size<F: Loadable>(filter: &F, max_bytes: u64) -> Result<()> {
    let bytes = filter.nbytes();
    if bytes <= max_bytes {
        return Ok(());
    }
    Err(Error::Memory(format!(
        "the new filter would have {bytes} bytes, max_bytes is {max_bytes}; give capacity or fpr, or open the file with \
         more if you trust it"
    )))
}

/// An independent copy; of a mapped filter only if it is not damaged.
pub(crate) fn copy<F: Loadable>(filter: &F) -> Result<F> {
    check_mapped(filter)?;
    filter.try_clone()
}

/// Saves; a mapped filter only if it is not damaged, otherwise the saved file could not be opened.
pub(crate) fn save<F: Loadable>(filter: &F, path: &Path) -> Result<()> {
    check_mapped(filter)?;
    filter.save(path)
}

/// A path from `str`, `bytes` or `os.PathLike`.
pub(crate) fn path(value: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    let py = value.py();
    let decoded = py.import("os")?.call_method1("fsdecode", (value,)).map_err(|error| {
        if error.is_instance_of::<PyTypeError>(py) {
            let why = format!("path must be str, bytes or os.PathLike ({})", error.value(py));
            return parameter_type(py, why);
        }
        error
    })?;
    decoded.extract()
}
