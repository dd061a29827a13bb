//! [`Clients`]: the connected clients.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::store;

/// What a client states about itself.
#[derive(Clone, Debug, Default)]
pub(super) struct ClientInfo {
    /// Set by `CLIENT SETNAME`.
    pub(super) name: String,
    /// Set by `CLIENT SETINFO`.
    pub(super) library: String,
    pub(super) version: String,
    /// Its last command.
    pub(super) command: &'static str,
    /// True if it speaks RESP3.
    pub(super) is_resp3: bool,
}

#[derive(Debug)]
pub(super) struct Client {
    pub(super) id: u64,
    address: SocketAddr,
    local: SocketAddr,
    since: u64,
    /// When it last sent something, in milliseconds since 1970.
    pub(super) last_active: AtomicU64,
    pub(super) about: Mutex<ClientInfo>,
}

impl Client {
    /// Its line in `CLIENT LIST`.
    pub(super) fn describe(&self) -> String {
        let (about, now) = (self.about.lock().clone(), store::now());
        let seconds = |then: u64| now.saturating_sub(then) / 1000;
        format!(
            "id={} addr={} laddr={} fd=-1 name={} age={} idle={} flags=N db=0 sub=0 psub=0 ssub=0 multi=-1 cmd={} \
             user=default redir=-1 resp={} lib-name={} lib-ver={}",
            self.id,
            self.address,
            self.local,
            about.name,
            seconds(self.since),
            seconds(self.last_active.load(Ordering::Relaxed)),
            if about.command.is_empty() { "NULL" } else { about.command },
            if about.is_resp3 { 3 } else { 2 },
            about.library,
            about.version
        )
    }
}

/// The connected clients, by number.
#[derive(Debug, Default)]
pub(super) struct Clients {
    next: AtomicU64,
    all: Mutex<BTreeMap<u64, Arc<Client>>>,
}

impl Clients {
    /// All clients, in the order in which they connected.
    pub(super) fn all(&self) -> Vec<Arc<Client>> {
        self.all.lock().values().cloned().collect()
    }
}

/// Lists a client until it is dropped.
pub(super) struct ClientGuard {
    clients: Arc<Clients>,
    pub(super) client: Arc<Client>,
}

impl ClientGuard {
    pub(super) fn new(clients: Arc<Clients>, address: SocketAddr, local: SocketAddr) -> Self {
        let (id, now) = (clients.next.fetch_add(1, Ordering::Relaxed) + 1, store::now());
        let about = Mutex::new(ClientInfo::default());
        let client = Arc::new(Client { id, address, local, since: now, last_active: AtomicU64::new(now), about });
        clients.all.lock().insert(id, client.clone());
        ClientGuard { clients, client }
    }
}

impl Drop for ClientGuard {
    fn drop(&mut self) {
        self.clients.all.lock().remove(&self.client.id);
    }
}
