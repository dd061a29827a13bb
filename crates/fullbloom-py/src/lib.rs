//! Python classes over `fullbloom-core`: glue only.
//!
//! | room | holds |
//! |---|---|
//! | `classes` | one class a row of the registry, stamped |
//! | `extras` | methods that only some classes have |
//! | `cpython` | objects read where they lie, past the stable ABI |
//! | `keys` | Python objects, buffers and Arrow columns to hashes |
//! | `arrow` | the Arrow PyCapsule interface |
//! | `answers` | masks and hashes in the caller's kind |
//! | `operations` | add, check, hash: what a batch does with hashes |
//! | `biased_lock`, `turns` | one filter, many threads; long batches and signals |
//! | `building`, `gathering`, `freezing` | structures that are made of all their keys at once |
//! | `forks` | what a child process finds |
//! | `reconcile` | coded symbols, and what two sets have not in common |
//! | `wire` | cells that a server holds: keys to commands, replies to answers |
//! | `files`, `parameters`, `params`, `errors`, `functions`, `text` | what their names say |

#![cfg_attr(feature = "stubs", allow(dead_code))] // what the hot methods use

use pyo3::prelude::*;

mod answers;
mod arrow;
mod biased_lock;
mod building;
mod classes;
mod cpython;
mod domains;
mod errors;
mod extras;
mod files;
mod forks;
mod freezing;
mod functions;
mod gathered;
mod gathering;
mod keys;
mod keywords;
mod objects;
mod operations;
mod parameters;
mod params;
mod reconcile;
mod records;
mod regenerating;
mod rows;
mod second_look;
mod text;
mod turns;
mod wire;

/// The module, with a class a row of the registry.
macro_rules! module {
    ({} $({
        $ID:ident = $number:literal, $module:ident $name:literal, $family:ident::$Class:ident;
        $($rest:tt)*
    })*) => {
        /// The native half of fullbloom; import from `fullbloom` instead.
        // Free of the GIL where the interpreter is: there the lock of a filter always locks, see `biased_lock`.
        #[cfg_attr(Py_GIL_DISABLED, pymodule(gil_used = false))]
        #[cfg_attr(not(Py_GIL_DISABLED), pymodule(gil_used = true))]
        mod _core {
            #[pymodule_export]
            use super::arrow::ArrowColumn;
                $(#[pymodule_export]
            use super::classes::$module::$Class;)*
            #[pymodule_export]
            use super::cpython::fast_paths;
            #[pymodule_export]
            use super::forks::watch_forks;
            #[pymodule_export]
            use super::functions::{
                capacity_at, force_isa, format_numbers, fpr_at, hash_key, hash_many, isa, isas, law, layout_for, layouts, least_fpr,
                loads, open, shapes_within, size_for, variants,
            };
            #[pymodule_export]
            use super::gathering::Gathering;
            #[pymodule_export]
            const LINE_BYTES: usize = fullbloom_core::cells::LINE_BYTES;
            #[pymodule_export]
            use super::records::{KeyedRecords, Selection};
            #[pymodule_export]
            use super::second_look::LastOccurrences;
            #[pymodule_export]
            use super::reconcile::{CharacteristicSketch, Decoded, RatelessDecoder, RatelessEncoder, StrataEstimator};
            #[pymodule_export]
            use super::text::{CandidateDuplicates, add_lines, check_lines};
            #[pymodule_export]
            use super::wire::{WireBatch, WireCells, WireExchange, WireKeys, WireText};
            #[pymodule_export]
            use super::wire::{WireCounterBatch, WireCounterKeys, WireCounters};

            #[pymodule_init]
            fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
                super::cpython::require_main_interpreter(module.py())
            }
        }
    };
}
fullbloom_core::variants!(module! {});
