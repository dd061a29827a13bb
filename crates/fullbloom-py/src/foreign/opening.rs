//! Any filter in a file of another program, as its class.

use std::path::Path;

use fullbloom_core::container::REDISBLOOM;
use pyo3::prelude::*;

use super::ForeignFilter;
use super::arguments::check_no_secret;
use super::dumps::{ForeignCuckooFilter, ForeignScalableFilter};
use super::files::{self, Wanted};
use super::fingerprints::ForeignStaticFilter;
use crate::errors::OrRaise;
use crate::files::OpenOptions;

/// The filter of another program in the file at `path`.
fn open_detected(py: Python<'_>, path: &Path, wanted: &OpenOptions) -> PyResult<ForeignFilter> {
    check_no_secret(wanted).or_raise(py)?;
    let detected = Wanted { format: None, key_type: None, shape: None, max_bytes: wanted.max_bytes };
    py.detach(|| detected.open(path)).or_raise(py).map(ForeignFilter::wrap)
}

/// The static filter of another program in the file at `path`.
fn open_static(py: Python<'_>, path: &Path, wanted: &OpenOptions) -> PyResult<ForeignStaticFilter> {
    check_no_secret(wanted).or_raise(py)?;
    let max_bytes = wanted.max_bytes;
    py.detach(|| files::open_static(path, None, None, max_bytes)).or_raise(py).map(ForeignStaticFilter::wrap)
}

/// The filter of another program in the file at `path`, if its bytes say all that is needed.
pub(crate) fn open_theirs<'py>(
    py: Python<'py>,
    path: &Path,
    wanted: &OpenOptions,
) -> Option<PyResult<Bound<'py, PyAny>>> {
    if matches!(files::detect(path), Ok(Some(_))) {
        return Some(open_detected(py, path, wanted).and_then(|filter| Ok(Bound::new(py, filter)?.into_any())));
    }
    let Some(row) = files::detect_dump(path) else {
        files::detect_static(path)?;
        return Some(open_static(py, path, wanted).and_then(|filter| Ok(Bound::new(py, filter)?.into_any())));
    };
    Some(check_no_secret(wanted).or_raise(py).and_then(|()| match row.number {
        REDISBLOOM => Ok(Bound::new(py, ForeignScalableFilter::open_dump(py, path, wanted.max_bytes)?)?.into_any()),
        _ => Ok(Bound::new(py, ForeignCuckooFilter::open_dump(py, path, wanted.max_bytes)?)?.into_any()),
    }))
}
