//! The methods that open, serve and close the RESP port.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;

use super::port::{self, Port};
use super::service::Service;
use super::to_exception;
use crate::fault::Fault;
use crate::resp::Options;

#[pymethods]
impl Service {
    /// Opens the RESP port, where clients wait until `serve_resp`. Returns host and port; the system chooses the port
    /// if it is 0.
    #[pyo3(signature = (host, port, *, tls=None, keys=false, flush=false))]
    fn listen_resp(
        &self,
        py: Python<'_>,
        host: &str,
        port: u16,
        tls: Option<(PathBuf, PathBuf)>,
        keys: bool,
        flush: bool,
    ) -> PyResult<(String, u16)> {
        let address = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let authenticator = self.authenticator.clone();
        let store = self.store.clone();
        let open = || {
            let tls = tls.map(|(certificate, key)| port::tls(&certificate, &key)).transpose()?;
            Port::open(store, Options { address, tls, authenticator: Some(authenticator), keys, flush, paused: true })
        };
        let port = py.detach(open).map_err(|fault: Fault| to_exception(py, &fault))?;
        let address = port.listener.address();
        *self.port.lock() = Some(port);
        Ok((address.ip().to_string(), address.port()))
    }

    /// Serves the RESP port until `stop_resp`.
    fn serve_resp(&self) {
        if let Some(port) = self.port.lock().as_ref() {
            port.listener.serve();
        }
    }

    /// Executes what has arrived, and closes the RESP port.
    fn stop_resp(&self, py: Python<'_>) {
        // In a statement of its own: `resp_counters` waits for this lock with the interpreter's.
        let port = self.port.lock().take();
        py.detach(|| port.into_iter().for_each(Port::close));
    }

    /// The numbers of open, accepted and rejected connections, and of commands.
    fn resp_counters(&self) -> (usize, u64, u64, u64) {
        let port = self.port.lock();
        let Some(port) = port.as_ref() else { return (0, 0, 0, 0) };
        let c = &port.listener.server().counters;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (c.connected.load(Ordering::Relaxed), read(&c.connections), read(&c.rejected), read(&c.commands))
    }
}
