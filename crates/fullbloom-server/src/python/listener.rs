//! The RESP port, on its own threads.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pyo3::prelude::*;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::runtime::{Builder, Runtime};

use super::{Service, to_exception};
use crate::fault::{Code, Fault, Result};
use crate::resp::{self, Listener, Options};
use crate::store::Store;

/// How long clients have to take their last replies.
const GRACE: Duration = Duration::from_secs(5);

pub(super) struct Port {
    runtime: Runtime,
    pub(super) listener: Listener,
}

/// The TLS configuration from two PEM files.
fn tls(certificate: &PathBuf, key: &PathBuf) -> Result<Arc<ServerConfig>> {
    let wrong = |path: &PathBuf, why: String| Fault::new(Code::Io, format!("{}: {why}", path.display()));
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<std::result::Result<Vec<_>, _>>)
        .map_err(|error| wrong(certificate, error.to_string()))?;
    let own = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(certificate, error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, own)
        .map_err(|error| wrong(certificate, error.to_string()))?;
    Ok(Arc::new(config))
}

impl Port {
    pub(super) fn open(store: Arc<Store>, options: Options) -> Result<Self> {
        let runtime = Builder::new_multi_thread().enable_all().thread_name("fullbloom-resp").build();
        let runtime = runtime.map_err(|error| Fault::new(Code::Io, error.to_string()))?;
        let listener = runtime.block_on(resp::listen(store, options))?;
        Ok(Port { runtime, listener })
    }

    /// Executes what has arrived, and closes the port.
    pub(super) fn close(self) {
        self.runtime.block_on(self.listener.stop(GRACE));
        self.runtime.shutdown_timeout(GRACE);
    }
}

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
            let tls = tls.map(|(certificate, key)| self::tls(&certificate, &key)).transpose()?;
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
        py.detach(|| {
            if let Some(port) = self.port.lock().take() {
                port.close();
            }
        });
    }

    /// The numbers of open, accepted and rejected connections, and of commands.
    fn resp_counters(&self) -> (usize, u64, u64, u64) {
        let port = self.port.lock();
        let Some(port) = port.as_ref() else { return (0, 0, 0, 0) };
        let c = &port.listener.server().counters;
        let told = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (c.connected.load(Ordering::Relaxed), told(&c.connections), told(&c.rejected), told(&c.commands))
    }
}
