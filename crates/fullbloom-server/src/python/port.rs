//! [`Port`]: the RESP port, on threads of its own.

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

/// How long clients have to take their last answers.
const GRACE: Duration = Duration::from_secs(5);

/// A port that is listened on, and the threads that do.
pub(super) struct Port {
    runtime: Runtime,
    pub(super) listener: Listener,
}

/// What TLS needs, from two PEM files.
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
    /// Listens.
    pub(super) fn open(store: Arc<Store>, options: Options) -> Result<Self> {
        let runtime = Builder::new_multi_thread().enable_all().thread_name("fullbloom-resp").build();
        let runtime = runtime.map_err(|error| Fault::new(Code::Io, error.to_string()))?;
        let listener = runtime.block_on(resp::listen(store, options))?;
        Ok(Port { runtime, listener })
    }

    /// Answers what has come in, and closes.
    pub(super) fn close(self) {
        self.runtime.block_on(self.listener.stop(GRACE));
        self.runtime.shutdown_timeout(GRACE);
    }
}
