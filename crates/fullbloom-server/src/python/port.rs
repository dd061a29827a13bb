//! [`Port`]: the runtime of a RESP port, and the configuration of its TLS.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::runtime::{Builder, Runtime};

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
pub(super) fn tls(certificate: &PathBuf, key: &PathBuf) -> Result<Arc<ServerConfig>> {
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
