//! A database that has the function, and what it finds its filters with.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::interpreter::{self, Retired};
use super::types::KeyType;

/// Databases that have the function, by their numbers.
static DATABASES: Mutex<Option<HashMap<u64, Weak<Database>>>> = Mutex::new(None);
/// The number of the next database: from 1 on, never used again.
static NEXT: AtomicU64 = AtomicU64::new(1);
/// The Python functions that the engine passes.
pub(super) static CALLS: PyOnceLock<Calls> = PyOnceLock::new();

/// Functions of `fullbloom.engines.duckdb`.
pub(super) struct Calls {
    /// Raises the error for a name in a database without filters.
    pub(super) find: Py<PyAny>,
    /// Looks up the keys of a vector in a filter whose class is written in Python.
    pub(super) look_up: Py<PyAny>,
}

/// The filters of one database, which live as long as its function.
pub(super) struct Database {
    pub(super) number: u64,
    /// Changes with every change of the filters.
    pub(super) version: AtomicU64,
    /// Returns the filter of a name or raises the error for it; `None` before the first is registered.
    find: Mutex<Option<Py<PyAny>>>,
}

impl Database {
    /// A database with a number of its own.
    pub(super) fn create() -> Arc<Self> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let database = Arc::new(Database { number, version: AtomicU64::new(0), find: Mutex::new(None) });
        with_databases(|databases| databases.insert(number, Arc::downgrade(&database)));
        database
    }

    /// Sets the function that finds its filters.
    pub(super) fn bind(&self, find: Py<PyAny>) {
        let before = self.find.lock().unwrap_or_else(PoisonError::into_inner).replace(find);
        self.version.fetch_add(1, Ordering::Release);
        drop(before); // without the lock, because this may run Python code
    }

    /// The filter of a name.
    pub(super) fn find<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
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
pub(super) fn database(number: u64) -> Option<Arc<Database>> {
    with_databases(|databases| databases.get(&number).and_then(Weak::upgrade))
}

/// The data of one overload of a function.
pub(super) struct Overload {
    pub(super) database: Arc<Database>,
    pub(super) keys: &'static KeyType,
}
