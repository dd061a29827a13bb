//! The Python classes, one per row of the registry.
//!
//! * [`declared`]: a class from its row and its declaration in the core;
//! * [`common`], [`capabilities`], [`merging`], [`comparing`]: the methods that macros add;
//! * [`one_key`]: `in`, `add` and `remove`, by [`hot`]; [`times`]: one key many times; [`shared`]: functions of several
//!   methods.

use fullbloom_core::container::file::Opened;
use pyo3::prelude::*;
use std::path::Path;

use crate::errors::OrRaise;
use crate::files::Wanted;

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
        adds: $adds:ident, can: $can:tt, stage: $stage:ident, false_negatives: $promise:ident,
        layouts: $layouts:expr, ns: $ns:expr,
        merging: $merging:literal,
        $($rest:tt)*
    })*) => {
        $(fullbloom_core::$Class! { crate::classes::declared::class ! { $ID $module $family $adds $can $merging } })*

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
            file: Opened,
            path: &Path,
            wanted: &Wanted,
        ) -> Option<PyResult<Bound<'py, PyAny>>> {
            match file.parsed.header.variant {
                $($number => {
                    let filter = py.detach(|| wanted.open(&file, path, $number)).or_raise(py);
                    Some(filter.and_then(|filter| {
                        let filter = $module::$Class::wrap_file(filter, path).within(wanted.max_bytes);
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
        fullbloom_core::variants!(crate::classes::try_class! { [key] $filter, $lock => $work })
    };
}

/// As [`with_filter!`], for lookups only: of a class that is built from its keys, too.
macro_rules! with_lookup_filter {
    ($filter:expr, $lock:ident => $work:expr) => {
        fullbloom_core::variants!(crate::classes::try_class! { [key build] $filter, $lock => $work })
    };
}

/// The chain of casts behind [`with_filter!`] and [`with_lookup_filter!`].
macro_rules! try_class {
    ({ $adds:tt $filter:expr, $lock:ident => $work:expr }) => { None };
    ({ [key $($build:ident)?] $filter:expr, $lock:ident => $work:expr } {
        $ID:ident = $number:literal, $module:ident $name:literal, $family:ident::$Class:ident;
        adds: key, $($rest:tt)*
    } $($rows:tt)*) => {
        crate::classes::try_class!(@cast [key $($build)?] $module $Class $filter, $lock => $work; $($rows)*)
    };
    ({ [key build] $filter:expr, $lock:ident => $work:expr } {
        $ID:ident = $number:literal, $module:ident $name:literal, $family:ident::$Class:ident;
        adds: build, $($rest:tt)*
    } $($rows:tt)*) => {
        crate::classes::try_class!(@cast [key build] $module $Class $filter, $lock => $work; $($rows)*)
    };
    ({ [key build] $filter:expr, $lock:ident => $work:expr } {
        $ID:ident = $number:literal, $module:ident $name:literal, $family:ident::$Class:ident;
        adds: build_pairs, $($rest:tt)*
    } $($rows:tt)*) => {
        crate::classes::try_class!(@cast [key build] $module $Class $filter, $lock => $work; $($rows)*)
    };
    ({ [key build] $filter:expr, $lock:ident => $work:expr } {
        $ID:ident = $number:literal, $module:ident $name:literal, $family:ident::$Class:ident;
        adds: world, $($rest:tt)*
    } $($rows:tt)*) => {
        crate::classes::try_class!(@cast [key build] $module $Class $filter, $lock => $work; $($rows)*)
    };
    ({ $adds:tt $filter:expr, $lock:ident => $work:expr } $other:tt $($rows:tt)*) => {
        crate::classes::try_class!({ $adds $filter, $lock => $work } $($rows)*)
    };
    (@cast $adds:tt $module:ident $Class:ident $filter:expr, $lock:ident => $work:expr; $($rows:tt)*) => {
        if let Ok(filter) = $filter.cast::<crate::classes::$module::$Class>() {
            let $lock = &filter.get().lock;
            Some($work)
        } else {
            crate::classes::try_class!({ $adds $filter, $lock => $work } $($rows)*)
        }
    };
}

pub(crate) use {try_class, with_filter, with_lookup_filter};
