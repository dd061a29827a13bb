//! [`Server`]: what all connections share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::sync::{Notify, Semaphore, watch};

use super::clients::Clients;
use super::parser::Span;
use super::places::Places;
use super::transfer::Transfers;
use crate::auth::Authenticator;
use crate::store::{self, Store};

/// How to open a listener.
#[derive(Clone, Default)]
pub struct Options {
    /// `HOST:PORT`; port 0 selects a free one.
    pub address: String,
    /// Certificate and key, if connections are encrypted.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Without an authenticator, every client has full access, and the address must be a loopback address.
    pub authenticator: Option<Arc<Authenticator>>,
    /// True allows `KEYS`, whose cost grows with the number of filters.
    pub keys: bool,
    /// True allows `FLUSHDB` and `FLUSHALL`.
    pub flush: bool,
    /// True accepts no client before [`Listener::serve`](super::Listener::serve); clients wait.
    pub paused: bool,
}

/// The buffers of an active connection; an idle one has none.
#[derive(Debug, Default)]
pub struct Buffers {
    /// Bytes received.
    pub input: Vec<u8>,
    /// Arguments.
    pub spans: Vec<Span>,
    /// Bytes to send.
    pub output: Vec<u8>,
    /// Hashes of keys.
    pub hashes: Vec<u64>,
    /// Results for keys.
    pub flags: Vec<u8>,
}

/// The most slow commands that run at once, each on its own thread.
const SLOW: usize = 64;
/// The number of buffers kept for the next connection, and the largest size of one.
const KEPT: usize = 16;
const KEPT_BYTES: usize = 256 << 10;

impl Buffers {
    /// The memory of the input and of everything parsed from it, in bytes.
    pub fn nbytes(&self) -> usize {
        self.input.capacity() + 8 * (self.spans.capacity() + self.hashes.capacity()) + self.flags.capacity()
    }

    fn is_modest(&self) -> bool {
        let words = self.hashes.capacity() + self.spans.capacity();
        self.input.capacity() + self.output.capacity() + self.flags.capacity() + 8 * words <= KEPT_BYTES
    }
}

/// Counters since the listener was opened.
#[derive(Debug, Default)]
pub struct Counters {
    /// Accepted connections.
    pub connections: AtomicU64,
    /// Rejected connections.
    pub rejected: AtomicU64,
    /// Executed commands.
    pub commands: AtomicU64,
    /// Open connections.
    pub connected: AtomicUsize,
}

/// What all connections share.
pub struct Server {
    /// The filters.
    pub store: Arc<Store>,
    /// How the listener was opened.
    pub options: Options,
    /// When it was opened: in milliseconds since 1970, and on the monotonic clock.
    pub since: (u64, Instant),
    /// Counters.
    pub counters: Counters,
    /// True while a checkpoint runs that a client requested.
    pub saving: AtomicBool,
    /// When the last checkpoint ended, in seconds since 1970.
    pub last_saved: AtomicU64,
    /// Filters that clients are sending or receiving in chunks.
    pub transfers: Transfers,
    /// Slots of slow commands.
    pub(super) slow_slots: Arc<Semaphore>,
    /// Notified at the end of each transaction.
    pub(super) transaction_ended: Notify,
    pub(super) clients: Arc<Clients>,
    pub(super) places: Arc<Places>,
    /// Random for each start: 40 hexadecimal digits.
    pub(super) run_id: String,
    port: u16,
    spare: Mutex<Vec<Buffers>>,
}

/// A hash of process, time and port, which no other start shares.
fn run_id(port: u16) -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let digest = Sha256::digest(format!("{} {} {port}", std::process::id(), since.as_nanos()));
    digest.iter().take(20).map(|byte| format!("{byte:02x}")).collect()
}

impl Server {
    /// The state of a listener on `port`.
    pub fn new(store: Arc<Store>, options: Options, port: u16) -> Self {
        let now = store::now();
        let places = Places::new(store.options.limits.connections);
        Server {
            store,
            options,
            since: (now, Instant::now()),
            counters: Counters::default(),
            saving: AtomicBool::new(false),
            last_saved: AtomicU64::new(now / 1000),
            transfers: Transfers::default(),
            slow_slots: Arc::new(Semaphore::new(SLOW)),
            transaction_ended: Notify::new(),
            clients: Arc::default(),
            places,
            run_id: run_id(port),
            port,
            spare: Mutex::new(Vec::new()),
        }
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Takes buffers for an active connection.
    pub fn buffers(&self) -> Buffers {
        self.spare.lock().pop().unwrap_or_default()
    }

    /// Returns buffers.
    pub fn put_back(&self, mut buffers: Buffers) {
        if buffers.is_modest() {
            buffers.input.clear();
            buffers.output.clear();
            let mut spare = self.spare.lock();
            if spare.len() < KEPT {
                spare.push(buffers);
            }
        }
    }

    /// Begins a checkpoint; `None` if one is already running.
    pub(super) fn begin_save(self: &Arc<Self>) -> Option<SaveGuard> {
        (!self.saving.swap(true, Ordering::AcqRel)).then(|| SaveGuard(self.clone()))
    }
}

/// The only checkpoint that clients may request, until it is dropped.
pub(super) struct SaveGuard(Arc<Server>);

impl SaveGuard {
    /// Writes the checkpoint, which may take long. Its time is known before its end: clients wait for the end first.
    pub(super) fn run(self) -> crate::fault::Result<()> {
        self.0.store.checkpoint()?;
        self.0.last_saved.store(store::now() / 1000, Ordering::Release);
        Ok(())
    }
}

impl Drop for SaveGuard {
    fn drop(&mut self) {
        self.0.saving.store(false, Ordering::Release);
    }
}

/// How far the shutdown of the service has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shutdown {
    /// The service is running.
    None,
    /// Connections execute what has arrived and read no more.
    Drain,
    /// Connections are dropped.
    Now,
}

/// Waits until the shutdown has come this far.
pub(super) async fn wait_for_shutdown(shutdown: &mut watch::Receiver<Shutdown>, end: Shutdown) {
    // If the listener was dropped, that is the end as well.
    let _ = shutdown.wait_for(|now| *now >= end).await;
}
