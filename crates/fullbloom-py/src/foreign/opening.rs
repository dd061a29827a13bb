//! Any filter of another program from a file, as its class.

use std::path::Path;

use fullbloom_core::container::file::OpenFile;
use fullbloom_core::container::{FOREIGN, FOREIGN_STATIC, REDISBLOOM, REDISBLOOM_CUCKOO};
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
    check_no_secret(py, wanted)?;
    let detected = Wanted { format: None, key_type: None, shape: None, max_bytes: wanted.max_bytes };
    py.detach(|| detected.open(path)).or_raise(py).map(ForeignFilter::wrap)
}

/// The static filter of another program in the file at `path`.
fn open_static(py: Python<'_>, path: &Path, wanted: &OpenOptions) -> PyResult<ForeignStaticFilter> {
    check_no_secret(py, wanted)?;
    let max_bytes = wanted.max_bytes;
    py.detach(|| files::open_static(path, None, None, max_bytes)).or_raise(py).map(ForeignStaticFilter::wrap)
}

/// The filter in a file of ours that was opened as `path`, if it is one of another program's.
pub(crate) fn open_own<'py>(
    py: Python<'py>,
    file: &OpenFile,
    path: &Path,
    wanted: &OpenOptions,
) -> Option<PyResult<Bound<'py, PyAny>>> {
    Some(match file.parsed.header.variant {
        FOREIGN => {
            ForeignFilter::open_file(py, file, path, wanted).and_then(|filter| Ok(Bound::new(py, filter)?.into_any()))
        }
        FOREIGN_STATIC => ForeignStaticFilter::open_file(py, file, path, wanted)
            .and_then(|filter| Ok(Bound::new(py, filter)?.into_any())),
        REDISBLOOM => ForeignScalableFilter::open_file(py, file, path, wanted)
            .and_then(|filter| Ok(Bound::new(py, filter)?.into_any())),
        REDISBLOOM_CUCKOO => ForeignCuckooFilter::open_file(py, file, path, wanted)
            .and_then(|filter| Ok(Bound::new(py, filter)?.into_any())),
        _ => return None,
    })
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
    Some(check_no_secret(py, wanted).and_then(|()| match row.number {
        REDISBLOOM => Ok(Bound::new(py, ForeignScalableFilter::open_dump(py, path, wanted.max_bytes)?)?.into_any()),
        _ => Ok(Bound::new(py, ForeignCuckooFilter::open_dump(py, path, wanted.max_bytes)?)?.into_any()),
    }))
}

/// The class of a file of ours that holds a filter of another program.
pub(crate) fn class_of(py: Python<'_>, variant: u16) -> Option<Bound<'_, PyAny>> {
    Some(match variant {
        FOREIGN => py.get_type::<ForeignFilter>().into_any(),
        FOREIGN_STATIC => py.get_type::<ForeignStaticFilter>().into_any(),
        REDISBLOOM => py.get_type::<ForeignScalableFilter>().into_any(),
        REDISBLOOM_CUCKOO => py.get_type::<ForeignCuckooFilter>().into_any(),
        _ => return None,
    })
}
