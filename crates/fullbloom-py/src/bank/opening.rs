//! A bank from a file that was opened already.

use std::path::Path;

use fullbloom_core::bank::FilterBank as Core;
use fullbloom_core::container::BANK;
use fullbloom_core::container::file::OpenFile;
use pyo3::prelude::*;

use super::FilterBank;
use crate::errors::OrRaise;
use crate::files::OpenOptions;

/// The bank in a file of ours that was opened as `path`.
pub(crate) fn open_file(py: Python<'_>, file: &OpenFile, path: &Path, wanted: &OpenOptions) -> PyResult<FilterBank> {
    let bank = py.detach(|| Core::open(file, path, wanted)).or_raise(py)?;
    Ok(FilterBank::wrap_file(bank, path, wanted.max_bytes))
}

/// [`open_file`], if it holds one.
pub(crate) fn open_own<'py>(
    py: Python<'py>,
    file: &OpenFile,
    path: &Path,
    wanted: &OpenOptions,
) -> Option<PyResult<Bound<'py, PyAny>>> {
    (file.parsed.header.variant == BANK)
        .then(|| open_file(py, file, path, wanted).and_then(|bank| Ok(Bound::new(py, bank)?.into_any())))
}

/// The class of a file of ours that holds a bank.
pub(crate) fn class_of(py: Python<'_>, variant: u16) -> Option<Bound<'_, PyAny>> {
    (variant == BANK).then(|| py.get_type::<FilterBank>().into_any())
}
