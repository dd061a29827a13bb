//! Python classes over `fullbloom-core`: glue only. Arrows run one way, see the last column.
//!
//! | module | holds | may use |
//! |---|---|---|
//! | `errors` | the exceptions of `fullbloom.errors` | nothing |
//! | `cpython` | objects read in place, past the stable ABI | nothing |
//! | `parameters` | arguments, read under their names; the parameters of constructors | errors |
//! | `locking` | one filter, many threads; long batches and signals; forks | errors |
//! | `dataframes` | all that is special about pandas, Polars, pyarrow, NumPy and DuckDB | errors |
//! | `column` | a column of keys in foreign memory | nothing |
//! | `arrow` | the Arrow PyCapsule interface | errors, locking, dataframes, column |
//! | `python_objects` | `bytes`, lists, and results in the same container type as the keys | errors, locking, dataframes, arrow |
//! | `keys` | Python objects, buffers and columns to hashes | errors, cpython, parameters, locking, dataframes, column, arrow, python_objects |
//! | `operations` | what batches do with hashes; values that come with keys; warnings | keys |
//! | `build` | structures that are built from all their keys at once | operations |
//! | `files` | filters from bytes and files, filters to files | errors, parameters |
//! | `secrets` | secrets that `secret=True` drew | errors |
//! | `stored` | files, bytes, copies and pickles of classes without a row | locking, python_objects, files, secrets |
//! | `classes` | one class per row of the registry | build, files, secrets |
//! | `reconcile` | coded symbols, and the differences of two sets | operations |
//! | `extras` | methods that only some classes have | classes, reconcile |
//! | `bank` | many filters in one, a key with its owner | classes, stored |
//! | `wire` | cells that a server holds: keys to commands, replies to results | classes |
//! | `foreign` | filters of other programs | operations, stored, classes |
//! | `text` | lines and records for the command line | classes, foreign |
//! | `signature` | signatures of rows: terms and tables in, row numbers out | operations, stored |
//! | `duckdb` | the compiled function of DuckDB | classes |
//! | `functions` | functions of the module | bank, classes, foreign, signature |

#![cfg_attr(feature = "stubs", allow(dead_code))] // what the hot methods use

use pyo3::prelude::*;

mod arrow;
mod bank;
mod build;
mod classes;
mod column;
mod cpython;
mod dataframes;
mod duckdb;
mod errors;
mod extras;
mod files;
mod foreign;
mod functions;
mod keys;
mod locking;
mod operations;
mod parameters;
mod python_objects;
mod reconcile;
mod secrets;
mod signature;
mod stored;
mod text;
mod wire;

/// The module, with one class per row of the registry.
macro_rules! module {
    ({} $({
        $ID:ident = $number:literal, $module:ident $name:literal, $family:ident::$Class:ident;
        $($rest:tt)*
    })*) => {
        /// The native half of fullbloom; import from `fullbloom` instead.
        // Free of the GIL if the interpreter is: without a GIL the lock of a filter always locks, see `locking::biased_lock`.
        #[cfg_attr(Py_GIL_DISABLED, pymodule(gil_used = false))]
        #[cfg_attr(not(Py_GIL_DISABLED), pymodule(gil_used = true))]
        mod _core {
            #[pymodule_export]
            use super::arrow::ArrowColumn;
                $(#[pymodule_export]
            use super::classes::$module::$Class;)*
            #[pymodule_export]
            use super::bank::FilterBank;
            #[pymodule_export]
            use super::foreign::{
                ForeignCuckooFilter, ForeignFilter, ForeignScalableFilter, ForeignStaticFilter, detect_foreign,
                foreign_formats, foreign_positions, open_foreign,
            };
            #[pymodule_export]
            use super::foreign::parquet::{ParquetChunks, parquet_filter_len, parquet_footer_len};
            #[pymodule_export]
            use super::cpython::fast_paths;
            #[pymodule_export]
            use super::duckdb::{bind_duckdb, enable_duckdb, load_duckdb, refresh_duckdb};
            #[pymodule_export]
            use super::locking::forks::watch_forks;
            #[pymodule_export]
            use super::locking::interrupts::repeat_interrupt;
            #[pymodule_export]
            use super::functions::{
                capacity_at, force_isa, format_numbers, fpr_at, hash_key, hash_many, isa, isas, law, layout_for, layouts, least_fpr,
                loads, open, shapes_within, size_for, variants,
            };
            #[pymodule_export]
            use super::build::key_buffer::KeyBuffer;
            #[pymodule_export]
            const LINE_BYTES: usize = fullbloom_core::cells::LINE_BYTES;
            #[pymodule_export]
            use super::signature::SignatureIndex;
            #[pymodule_export]
            use super::text::{KeyedRecords, Selection};
            #[pymodule_export]
            use super::text::LastOccurrences;
            #[pymodule_export]
            use super::reconcile::{CharacteristicSketch, SetDifference, RatelessDecoder, RatelessEncoder, StrataEstimator};
            #[pymodule_export]
            use super::text::{CandidateDuplicates, add_lines, check_lines, record_digests};
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
