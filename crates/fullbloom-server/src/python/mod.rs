//! The module that the control plane imports: the store's operations for Python, and the RESP listener.
//!
//! Filters never leave this module as objects: keys, hashes and the bytes of files go in, results come out. Every call
//! lets other Python threads run while it works. A change returns once it is as durable as the mode promises.
//!
//! * `service`: the service, opened and closed; `port`, `listener`: the RESP port; `auth`: tokens;
//! * `catalogue`: create, find and drop filters; `keys`: batches of keys, whose `results` are bytes or texts; `stats`: what a filter reports about itself;
//! * `owners`: owners of a bank; `files`: dump, restore, merge, clone, back up; `memory`: memory charged for Python;
//! * `waiting`: waiting for a filter or the disk, without a thread or in one.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use crate::fault::{Fault as Refusal, Result};
use crate::store::{Lsn, Store};

mod auth;
mod catalogue;
mod files;
mod keys;
mod listener;
mod memory;
mod owners;
mod port;
mod results;
mod service;
mod stats;
mod waiting;

pub(crate) use files::Dump;
pub(crate) use memory::SharedReservation;
pub(crate) use service::Service;
pub(crate) use waiting::Waiting;

create_exception!(fullbloom_server, Fault, PyException, "A refusal; `code` says which, the text why.");

/// The numbers and versions that a filter may have for a change to be made; None allows any.
type Versions = Option<Vec<(u64, u64)>>;

/// The exception for a fault.
fn to_exception(py: Python<'_>, refusal: &Refusal) -> PyErr {
    let error = Fault::new_err(refusal.text.clone());
    match error.value(py).setattr("code", refusal.code.name()) {
        Ok(()) => error,
        Err(other) => other,
    }
}

impl Service {
    /// Runs `work` while other Python threads run.
    fn call<T: Send>(&self, py: Python<'_>, work: impl Send + FnOnce(&Store) -> Result<T>) -> PyResult<T> {
        let store = &self.store;
        py.detach(|| work(store)).map_err(|fault| to_exception(py, &fault))
    }

    /// Makes a change, and waits until it is as durable as the mode promises; a refusal waits for the changes it
    /// depends on.
    fn change<T: Send>(&self, py: Python<'_>, work: impl Send + FnOnce(&Store) -> Result<(T, Lsn)>) -> PyResult<T> {
        self.call(py, |store| {
            let turn = store.transaction_lock.read();
            let done = work(store);
            drop(turn);
            let lsn = done.as_ref().map_or_else(|_| store.log().next() - 1, |(_, lsn)| lsn.0);
            store.log().wait_blocking(lsn)?;
            done.map(|(done, _)| done)
        })
    }
}

/// The native module of the filter service; `fullbloom.service` is its control plane.
#[pymodule]
mod fullbloom_server {
    #[pymodule_export]
    use super::Dump;
    #[pymodule_export]
    use super::Fault;
    #[pymodule_export]
    use super::Service;
    #[pymodule_export]
    use super::SharedReservation;
    #[pymodule_export]
    use super::Waiting;
    #[pymodule_export]
    use super::catalogue::more_kinds;
    #[pymodule_export]
    use super::keys::hash_body;
    #[pymodule_export]
    use super::results::{flags_text, numbers_text};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
