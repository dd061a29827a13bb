//! The SQL function `bloom_contains` for DuckDB, compiled: no Python and no GIL per call.
//!
//! DuckDB calls a scalar function for each vector of 2,048 rows. A Python function that does nothing costs 60 us per call
//! on one thread and more on two, the lookups 10. [`load_duckdb`] registers this module with the DuckDB library that Python has loaded, as an extension that is linked
//! statically, so every database that is opened later has the function; nothing is loaded from a file and nothing needs a
//! signature. `fullbloom.engines.duckdb` finds a database by the number that the function `fullbloom_database` returns,
//! and passes the function that finds its filters.
//!
//! * [`api`]: the functions of DuckDB's C interface, found by name;
//! * [`extension`]: what a database gets when it is opened;
//! * [`types`]: the types of keys, and their vectors as sources of hashes;
//! * [`filters`]: the classes that are visited without the interpreter;
//! * [`lookup`]: one call of the function; [`interpreter`]: Python in such a call.
//!
//! A row whose type has no overload here, such as a struct, goes to the Python function of the same name, which
//! `register` adds as an overload for all types. A filter whose class is written in Python is called with the interpreter.

mod api;
mod extension;
mod filters;
mod interpreter;
mod lookup;
mod types;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use interpreter::Retired;

/// Databases that have the function, by their numbers.
static DATABASES: Mutex<Option<HashMap<u64, Weak<Database>>>> = Mutex::new(None);
/// The number of the next database: from 1 on, never used again.
static NEXT: AtomicU64 = AtomicU64::new(1);
/// Whether databases that are opened get the function.
static ENABLED: AtomicBool = AtomicBool::new(true);
/// The Python functions that the engine passes.
static CALLS: PyOnceLock<Calls> = PyOnceLock::new();

/// Functions of `fullbloom.engines.duckdb`.
struct Calls {
    /// Raises the error for a name in a database without filters.
    find: Py<PyAny>,
    /// Looks up the keys of a vector in a filter whose class is written in Python.
    look_up: Py<PyAny>,
}

/// The filters of one database, which live as long as its function.
struct Database {
    number: u64,
    /// Changes with every change of the filters.
    version: AtomicU64,
    /// Returns the filter of a name or raises the error for it; `None` before the first is registered.
    find: Mutex<Option<Py<PyAny>>>,
}

impl Database {
    /// A database with a number of its own.
    fn create() -> Arc<Self> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let database = Arc::new(Database { number, version: AtomicU64::new(0), find: Mutex::new(None) });
        with_databases(|databases| databases.insert(number, Arc::downgrade(&database)));
        database
    }

    /// The filter of a name.
    fn find<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let bound = self.find.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|find| find.clone_ref(py));
        match (bound, CALLS.get(py)) {
            (Some(find), _) => find.bind(py).call1((name,)),
            (None, Some(calls)) => calls.find.bind(py).call1((name,)),
            (None, None) => Err(crate::errors::parameter(py, "no filter is registered")),
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        with_databases(|databases| databases.remove(&self.number));
        let find = self.find.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        interpreter::retire(find.map(Retired::Object));
    }
}

fn with_databases<R>(visit: impl FnOnce(&mut HashMap<u64, Weak<Database>>) -> R) -> R {
    visit(DATABASES.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

/// The database of a number, unless it is closed.
fn database(number: u64) -> Option<Arc<Database>> {
    with_databases(|databases| databases.get(&number).and_then(Weak::upgrade))
}

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
        let before = known.find.lock().unwrap_or_else(PoisonError::into_inner).replace(find);
        known.version.fetch_add(1, Ordering::Release);
        drop(before); // without the lock, because this may run Python code
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
