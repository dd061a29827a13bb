//! The module that the control plane imports: the store's calls for Python, and the RESP listener's switch.
//!
//! Filters never leave this module as objects: keys, hashes and the bytes of files go in, answers come out. Every call
//! lets other Python threads run while it works, and a change returns once it is as safe as the mode promises.
//!
//! * `options`: the service, opened and closed;
//! * `names`: making, finding, dropping;
//! * `keys`: keys in, answers out;
//! * `files`: filters as bytes, merged, copied, backed up;
//! * `memory`: bytes of the budget, taken for what Python holds;
//! * `port`, `ports`: the RESP port;
//! * `told`: what a filter tells of itself;
//! * `doors`, `tokens`: who may do what.

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
mod service;
mod stats;

pub(crate) use files::Dump;
pub(crate) use memory::Held;
pub(crate) use service::Service;

create_exception!(fullbloom_server, Fault, PyException, "A refusal; `code` says which, the text why.");

/// Numbers and versions that a filter may have for a change of it to be made; any without.
type Versions = Option<Vec<(u64, u64)>>;

/// The exception of a fault.
fn to_exception(py: Python<'_>, refusal: &Refusal) -> PyErr {
    let error = Fault::new_err(refusal.text.clone());
    match error.value(py).setattr("code", refusal.code.name()) {
        Ok(()) => error,
        Err(other) => other,
    }
}

impl Service {
    /// Does `work` while other threads run.
    fn call<T: Send>(&self, py: Python<'_>, work: impl Send + FnOnce(&Store) -> Result<T>) -> PyResult<T> {
        let store = &self.store;
        py.detach(|| work(store)).map_err(|fault| to_exception(py, &fault))
    }

    /// Makes a change, and waits until it is as safe as the mode promises; a refusal waits for what it rests on.
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

/// The native half of the filter service; `fullbloom.service` is the other.
#[pymodule]
mod fullbloom_server {
    #[pymodule_export]
    use super::Dump;
    #[pymodule_export]
    use super::Fault;
    #[pymodule_export]
    use super::Held;
    #[pymodule_export]
    use super::Service;
    #[pymodule_export]
    use super::keys::{flags_text, hash_body, numbers_text};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
