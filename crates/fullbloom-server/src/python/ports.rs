//! The RESP port, opened and closed.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;

use super::port::{self, Port};
use super::{Service, raised};
use crate::fault::Fault;
use crate::resp::{Gate, Options};

#[pymethods]
impl Service {
    /// Listens on the RESP port, where clients wait until `serve_resp`: host and port, which the system chose where 0 was
    /// asked for.
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
        let gate: Arc<dyn Gate> = self.doors.clone();
        let store = self.store.clone();
        let open = || {
            let tls = tls.map(|(certificate, key)| port::tls(&certificate, &key)).transpose()?;
            Port::open(store, Options { address, tls, gate: Some(gate), keys, flush, paused: true })
        };
        let port = py.detach(open).map_err(|fault: Fault| raised(py, &fault))?;
        let address = port.listener.address();
        *self.port.lock() = Some(port);
        Ok((address.ip().to_string(), address.port()))
    }

    /// Answers on the RESP port until `stop_resp`.
    fn serve_resp(&self) {
        if let Some(port) = self.port.lock().as_ref() {
            port.listener.serve();
        }
    }

    /// Answers what has come in, and closes the RESP port.
    fn stop_resp(&self, py: Python<'_>) {
        py.detach(|| {
            if let Some(port) = self.port.lock().take() {
                port.close();
            }
        });
    }

    /// Connections there are, were, and were turned away; commands.
    fn resp_counters(&self) -> (usize, u64, u64, u64) {
        let port = self.port.lock();
        let Some(port) = port.as_ref() else { return (0, 0, 0, 0) };
        let c = &port.listener.server().counters;
        let told = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (c.connected.load(Ordering::Relaxed), told(&c.connections), told(&c.rejected), told(&c.commands))
    }
}
