//! [`Server`]: what all connections share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::sync::{Notify, Semaphore, watch};

use super::clients::Clients;
use super::parser::Span;
use super::transfer::Transfers;
use crate::auth::Authenticator;
use crate::store::{self, Store};

/// How a listener is opened.
#[derive(Clone, Default)]
pub struct Options {
    /// `HOST:PORT`; port 0 takes a free one.
    pub address: String,
    /// Certificate and key, where connections are to be encrypted.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Who may do what. Without one everybody may do everything, which is refused but on a loopback address.
    pub authenticator: Option<Arc<Authenticator>>,
    /// True: `KEYS` may be used, whose cost grows with the number of filters.
    pub keys: bool,
    /// True: `FLUSHDB` and `FLUSHALL` may be used.
    pub flush: bool,
    /// True: nobody is accepted before [`Listener::serve`](super::Listener::serve); clients wait meanwhile.
    pub paused: bool,
}

/// Buffers of a connection that has something to do; an idle one has none.
#[derive(Debug, Default)]
pub struct Buffers {
    /// Bytes that came in.
    pub input: Vec<u8>,
    /// Arguments.
    pub spans: Vec<Span>,
    /// Bytes to be sent.
    pub output: Vec<u8>,
    /// Hashes of keys.
    pub hashes: Vec<u64>,
    /// Answers to keys.
    pub flags: Vec<u8>,
}

/// Commands that take their time which are under way at once, each on a thread of its own.
const SLOW: usize = 64;
/// Buffers that are kept for the next connection, and how large one of them may be.
const KEPT: usize = 16;
const KEPT_BYTES: usize = 256 << 10;

impl Buffers {
    /// Bytes of what came in, and of what was understood of it.
    pub fn nbytes(&self) -> usize {
        self.input.capacity() + 8 * (self.spans.capacity() + self.hashes.capacity()) + self.flags.capacity()
    }

    fn is_modest(&self) -> bool {
        let words = self.hashes.capacity() + self.spans.capacity();
        self.input.capacity() + self.output.capacity() + self.flags.capacity() + 8 * words <= KEPT_BYTES
    }
}

/// What has happened since the listener was opened.
#[derive(Debug, Default)]
pub struct Counters {
    /// Connections that were accepted.
    pub connections: AtomicU64,
    /// Connections that were turned away.
    pub rejected: AtomicU64,
    /// Commands.
    pub commands: AtomicU64,
    /// Connections there are.
    pub connected: AtomicUsize,
}

/// What all connections share.
pub struct Server {
    /// The filters.
    pub store: Arc<Store>,
    /// How the listener was opened.
    pub options: Options,
    /// When, in milliseconds since 1970, and by the clock that does not jump.
    pub since: (u64, Instant),
    /// What has happened.
    pub counters: Counters,
    /// True while a checkpoint is written that a client asked for.
    pub saving: AtomicBool,
    /// When the last one was, in seconds since 1970.
    pub saved: AtomicU64,
    /// Filters that clients are sent, or send, in pieces.
    pub transfers: Transfers,
    /// Turns of commands that take their time.
    pub(super) slow: Arc<Semaphore>,
    /// Tells of the end of each transaction.
    pub(super) freed: Notify,
    pub(super) clients: Arc<Clients>,
    /// Another one after each start: 40 hexadecimal digits.
    pub(super) run_id: String,
    port: u16,
    spare: Mutex<Vec<Buffers>>,
}

/// What no other start has: process, time and port, shortened.
fn run_id(port: u16) -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let digest = Sha256::digest(format!("{} {} {port}", std::process::id(), since.as_nanos()));
    digest.iter().take(20).map(|byte| format!("{byte:02x}")).collect()
}

impl Server {
    /// Of a listener on `port`.
    pub fn new(store: Arc<Store>, options: Options, port: u16) -> Self {
        let now = store::now();
        Server {
            store,
            options,
            since: (now, Instant::now()),
            counters: Counters::default(),
            saving: AtomicBool::new(false),
            saved: AtomicU64::new(now / 1000),
            transfers: Transfers::default(),
            slow: Arc::new(Semaphore::new(SLOW)),
            freed: Notify::new(),
            clients: Arc::default(),
            run_id: run_id(port),
            port,
            spare: Mutex::new(Vec::new()),
        }
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Buffers to work with.
    pub fn buffers(&self) -> Buffers {
        self.spare.lock().pop().unwrap_or_default()
    }

    /// Takes buffers back.
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

    /// Writes a checkpoint, which takes its time: false where one is being written already.
    pub fn save(&self) -> crate::fault::Result<bool> {
        if self.saving.swap(true, Ordering::AcqRel) {
            return Ok(false);
        }
        let done = self.store.checkpoint();
        self.saving.store(false, Ordering::Release);
        done.map(|_| {
            self.saved.store(store::now() / 1000, Ordering::Relaxed);
            true
        })
    }
}

/// How far the shutdown of the service has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shutdown {
    /// It has not.
    None,
    /// What has come in is answered, no more is read.
    Drain,
    /// Everything is let go of.
    Now,
}

/// Resolves once the end has come so far.
pub(super) async fn wait_for_shutdown(shutdown: &mut watch::Receiver<Shutdown>, end: Shutdown) {
    // The listener dropped is the end as well.
    let _ = shutdown.wait_for(|now| *now >= end).await;
}
