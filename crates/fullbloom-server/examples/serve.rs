//! The data plane on its own: `cargo run -p fullbloom-server --release --example serve -- [ADDRESS] [FOLDER] [MODE]`.
//!
//! Listens on `127.0.0.1:6380`, or `ADDRESS`, until its standard input ends; keeps filters in `FOLDER`, if it is named.
//! Words of the form `name=value` set what is not a place: tokens (`admin`, `reader`), `tls=CERTIFICATE,KEY` (PEM files),
//! `plain`, and limits.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use fullbloom_server::auth::{Authenticator, Grant};
use fullbloom_server::log::Durability;
use fullbloom_server::resp;
use fullbloom_server::store::{Options, Store};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// What TLS needs, from the names of two PEM files.
fn encrypted(files: &str) -> Result<Arc<ServerConfig>, Box<dyn std::error::Error>> {
    let (certificate, key) = files.split_once(',').ok_or("tls=CERTIFICATE,KEY")?;
    let chain = CertificateDer::pem_file_iter(certificate)?.collect::<Result<Vec<_>, _>>()?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let config = config.with_no_client_auth().with_single_cert(chain, PrivateKeyDer::from_pem_file(key)?)?;
    Ok(Arc::new(config))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (settings, places): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|word| word.contains('='));
    let mut options = Options { folder: places.get(1).map(Into::into), ..Options::default() };
    if let Some(mode) = places.get(2) {
        options.durability = Durability::parse(mode).ok_or("MODE is always, everysec or off")?;
    }
    let mut listening = resp::Options {
        address: places.first().map_or("127.0.0.1:6380", |address| address).to_string(),
        keys: true,
        flush: true,
        ..resp::Options::default()
    };
    let mut tokens = Vec::new();
    for setting in &settings {
        let (name, value) = setting.split_once('=').unwrap_or_default();
        match name {
            "admin" => tokens.push((1, Authenticator::digest(value.as_bytes()), Grant::all())),
            "reader" => {
                let grant = Grant { read: true, patterns: vec!["r:*".into()], ..Grant::default() };
                tokens.push((2, Authenticator::digest(value.as_bytes()), grant));
            }
            "tls" => listening.tls = Some(encrypted(value)?),
            "plain" => options.plain = value == "yes",
            "receive" => options.limits.receive = Duration::from_millis(value.parse()?),
            "connections" => options.limits.connections = value.parse()?,
            "memory_bytes" => options.limits.memory_bytes = value.parse()?,
            "total_bytes" => options.limits.total_bytes = value.parse()?,
            "filter_bytes" => options.limits.filter_bytes = value.parse()?,
            "request_bytes" => options.limits.request_bytes = value.parse()?,
            "batch_keys" => options.limits.batch_keys = value.parse()?,
            "key_bytes" => options.limits.key_bytes = value.parse()?,
            _ => return Err(format!("no setting is called {name}").into()),
        }
    }
    if settings.iter().any(|setting| setting.starts_with("admin=")) {
        let authenticator = Authenticator::default();
        authenticator.set_tokens(tokens);
        listening.authenticator = Some(Arc::new(authenticator));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = Arc::new(Store::open(options)?);
        let listener = resp::listen(store.clone(), listening).await?;
        println!("{}", listener.address());
        // A pipe ends with whoever holds it.
        tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
        listener.stop(Duration::from_secs(2)).await;
        store.checkpoint()?;
        store.log().close();
        Ok(())
    })
}
