//! The SQL function `bloom_contains` for DuckDB, compiled: no Python and no GIL per call.
//!
//! DuckDB calls a scalar function for each vector of 2,048 rows. A Python function that does nothing costs 60 us per call
//! on one thread and more on two, the lookups 10. [`load_duckdb`] registers this module with the DuckDB library that
//! Python has loaded, as an extension that is linked statically. Every database that is opened later has the function;
//! nothing is loaded from a file, and nothing needs a signature. `fullbloom.engines.duckdb` finds a database by the number
//! that the function `fullbloom_database` returns, and passes the function that finds its filters.
//!
//! * [`api`]: the functions of DuckDB's C interface, found by name;
//! * [`database`]: a database, and what it finds its filters with;
//! * [`extension`]: what a database gets when it is opened;
//! * [`types`]: the types of keys, and their vectors as sources of hashes;
//! * [`filters`]: the classes that are visited without the interpreter;
//! * [`lookup`]: one call of the function; [`interpreter`]: Python in such a call.
//!
//! A row whose type has no overload here, such as a struct, goes to the Python function of the same name, which
//! `register` adds as an overload for all types. A filter whose class is written in Python is called with the interpreter.

mod api;
mod database;
mod extension;
mod filters;
mod interpreter;
mod lookup;
mod types;

use std::sync::atomic::Ordering;

use pyo3::prelude::*;

use database::{CALLS, Calls, database};
use extension::ENABLED;

/// Gives every database that is opened from now on the compiled function; False if the library lacks what that needs.
///
/// library: path of DuckDB's module, which must be loaded. find, look_up: called for a name in a database without
/// filters, and for the keys of a vector whose filter is written in Python.
#[pyfunction]
#[pyo3(signature = (library: "str", find: "Callable[[str], Any]", look_up: "Callable[..., bytes]") -> "bool")]
pub(crate) fn load_duckdb(py: Python<'_>, library: &str, find: Py<PyAny>, look_up: Py<PyAny>) -> bool {
    CALLS.get_or_init(py, || Calls { find, look_up });
    py.detach(|| extension::register(library))
}

/// Sets the function that finds the filters of a database, of which a change is reported by refresh_duckdb. It should hold
/// no filter itself, because it may live longer than the database.
#[pyfunction]
#[pyo3(signature = (database: "int", find: "Callable[[str], Any]") -> "None")]
pub(crate) fn bind_duckdb(py: Python<'_>, database: u64, find: Py<PyAny>) {
    interpreter::drop_retired(py);
    if let Some(known) = self::database(database) {
        known.bind(find);
    }
}

/// Reports that a database has other filters, so that running queries look their names up again.
#[pyfunction]
#[pyo3(signature = (database: "int") -> "None")]
pub(crate) fn refresh_duckdb(py: Python<'_>, database: u64) {
    interpreter::drop_retired(py);
    if let Some(known) = self::database(database) {
        known.version.fetch_add(1, Ordering::Release);
    }
}

/// Whether databases that are opened from now on get the compiled function; returns whether they did. For tests.
#[pyfunction]
#[pyo3(signature = (enabled: "bool") -> "bool")]
pub(crate) fn enable_duckdb(enabled: bool) -> bool {
    ENABLED.swap(enabled, Ordering::Relaxed)
}
