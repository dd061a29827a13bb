//! The Python classes, one per row of the registry.
//!
//! * [`declared`]: a class from its row and its declaration in the core;
//! * [`common`], [`capabilities`], [`merging`], [`comparing`]: the methods that macros add;
//! * [`one_key`]: `in`, `add` and `remove`, by [`hot`]; [`times`]: one key many times; [`shared`]: functions of several
//!   methods.

use fullbloom_core::container::file::OpenFile;
use pyo3::prelude::*;
use std::path::Path;

use crate::errors::OrRaise;
use crate::files::OpenOptions;

pub(crate) mod absent;
mod capabilities;
mod common;
mod comparing;
pub(crate) mod declared;
pub(crate) mod hot;
pub(crate) mod merging;
mod one_key;
pub(crate) mod shared;
pub(crate) mod times;

/// One class per row, and lookups by the number of a row.
macro_rules! classes {
    ({} $({
        $ID:ident = $number:literal, $module:ident $name:literal, $family:ident::$Class:ident;
        adds: $when:ident $entry:tt, can: $can:tt, stage: $stage:ident, false_negatives: $promise:ident,
        layouts: $layouts:expr, ns: $ns:expr,
        merging: $merging:literal,
        $($rest:tt)*
    })*) => {
        $(fullbloom_core::$Class! { crate::classes::declared::class ! { $ID $module $family $when $entry $can $merging } })*

        /// The class with registry number `variant`, if this release has one.
        pub(crate) fn class_of(py: Python<'_>, variant: u16) -> Option<Bound<'_, PyAny>> {
            match variant {
                $($number => Some(py.get_type::<$module::$Class>().into_any()),)*
                _ => None,
            }
        }

        /// The filter in a file that was opened as `path`, as its class; `None` if this release has none for it.
        pub(crate) fn open_as<'py>(
            py: Python<'py>,
            file: OpenFile,
            path: &Path,
            wanted: &OpenOptions,
        ) -> Option<PyResult<Bound<'py, PyAny>>> {
            match file.parsed.header.variant {
                $($number => {
                    let filter = py.detach(|| wanted.open(&file, path, $number)).or_raise(py);
                    Some(filter.and_then(|filter| {
                        let filter = $module::$Class::wrap_file(filter, path).with_limit(wanted.max_bytes);
                        Ok(Bound::new(py, filter)?.into_any())
                    }))
                })*
                _ => None,
            }
        }
    };
}
fullbloom_core::variants!(classes! {});

/// `Some($work)` with the lock of `$filter` as `$lock`, if it is of any class to which keys are added alone; `None` for
/// anything else.
macro_rules! with_filter {
    ($filter:expr, $lock:ident => $work:expr) => {
        fullbloom_core::variants!(crate::classes::try_class! { [open] $filter, $lock => $work })
    };
}

/// As [`with_filter!`], for lookups only: of a class that is built from its keys, too.
macro_rules! with_lookup_filter {
    ($filter:expr, $lock:ident => $work:expr) => {
        fullbloom_core::variants!(crate::classes::try_class! { [open built] $filter, $lock => $work })
    };
}

/// The chain of casts behind [`with_filter!`] and [`with_lookup_filter!`].
macro_rules! try_class {
    ({ $when:tt $filter:expr, $lock:ident => $work:expr }) => { None };
    ({ [open $($built:ident)?] $filter:expr, $lock:ident => $work:expr } {
        $ID:ident = $number:literal, $module:ident $name:literal, $family:ident::$Class:ident;
        adds: open [key], $($rest:tt)*
    } $($rows:tt)*) => {
        crate::classes::try_class!(@cast [open $($built)?] $module $Class $filter, $lock => $work; $($rows)*)
    };
    ({ [open built] $filter:expr, $lock:ident => $work:expr } {
        $ID:ident = $number:literal, $module:ident $name:literal, $family:ident::$Class:ident;
        adds: built $entry:tt, $($rest:tt)*
    } $($rows:tt)*) => {
        crate::classes::try_class!(@cast [open built] $module $Class $filter, $lock => $work; $($rows)*)
    };
    ({ $when:tt $filter:expr, $lock:ident => $work:expr } $other:tt $($rows:tt)*) => {
        crate::classes::try_class!({ $when $filter, $lock => $work } $($rows)*)
    };
    (@cast $when:tt $module:ident $Class:ident $filter:expr, $lock:ident => $work:expr; $($rows:tt)*) => {
        if let Ok(filter) = $filter.cast::<crate::classes::$module::$Class>() {
            let $lock = &filter.get().lock;
            Some($work)
        } else {
            crate::classes::try_class!({ $when $filter, $lock => $work } $($rows)*)
        }
    };
}

pub(crate) use {try_class, with_filter, with_lookup_filter};
