//! [`listen()`]: the port.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::connection;
use super::places::PlaceGuard;
use super::server::{Options, Server};
use super::server::{Shutdown, wait_for_shutdown};
use super::stream::Stream;
use crate::fault::{Code, Fault, Result};
use crate::store::Store;

/// How long to wait after the system refused to accept a connection, for example because it has no descriptors left.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// How often abandoned transfers are removed, even if clients connect all the time.
const SWEEP_INTERVAL: Duration = Duration::from_secs(30);
/// Keepalive: how long a connection may be idle before the first probe, the time between probes, and their number.
#[cfg(target_os = "linux")]
const IDLE: Duration = Duration::from_secs(120);
#[cfg(target_os = "linux")]
const PROBE_INTERVAL: Duration = Duration::from_secs(20);
#[cfg(target_os = "linux")]
const PROBES: u32 = 3;

/// An open port, until it is dropped.
pub struct Listener {
    address: SocketAddr,
    server: Arc<Server>,
    end: watch::Sender<Shutdown>,
    serving: watch::Sender<bool>,
}

/// Opens the port of `options`, and serves it in tasks of the current runtime.
///
/// Faults: `Denied` for an address that other machines can reach, without an authenticator; `Io` for an address that is
/// not available.
pub async fn listen(store: Arc<Store>, options: Options) -> Result<Listener> {
    let io_fault = |error: std::io::Error| Fault::new(Code::Io, format!("{}: {error}", options.address));
    let socket = TcpListener::bind(&options.address).await.map_err(io_fault)?;
    keep_alive(&socket);
    let address = socket.local_addr().map_err(io_fault)?;
    if !address.ip().is_loopback() {
        let Some(authenticator) = &options.authenticator else {
            let text =
                format!("{address} can be reached from other machines: create a token first, or listen on 127.0.0.1");
            return Err(Fault::new(Code::Denied, text));
        };
        authenticator.require_token();
    }
    let (serving, may_serve) = watch::channel(!options.paused);
    let server = Arc::new(Server::new(store, options, address.port()));
    let (end, shutdown) = watch::channel(Shutdown::None);
    tokio::spawn(accept(socket, server.clone(), shutdown, may_serve));
    Ok(Listener { address, server, end, serving })
}

impl Listener {
    /// The address of the port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts clients from now on, if the listener was opened paused.
    pub fn serve(&self) {
        self.serving.send_replace(true);
    }

    /// What all its connections share.
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// Stops accepting and reading, executes what has arrived, and closes every connection, at the latest after
    /// `grace`.
    pub async fn stop(self, grace: Duration) {
        let _ = self.end.send(Shutdown::Drain);
        let all_gone = async {
            while self.server.counters.connected.load(Ordering::Acquire) > 0 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        if timeout(grace, all_gone).await.is_err() {
            let _ = self.end.send(Shutdown::Now);
        }
    }
}

/// Counts a connection, which has a place, until it is dropped.
struct ConnectionGuard {
    server: Arc<Server>,
    place: PlaceGuard,
}

impl ConnectionGuard {
    fn new(server: Arc<Server>, place: PlaceGuard) -> Self {
        server.counters.connected.fetch_add(1, Ordering::AcqRel);
        server.counters.connections.fetch_add(1, Ordering::Relaxed);
        ConnectionGuard { server, place }
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.server.counters.connected.fetch_sub(1, Ordering::AcqRel);
    }
}

async fn accept(
    socket: TcpListener,
    server: Arc<Server>,
    shutdown: watch::Receiver<Shutdown>,
    mut may_serve: watch::Receiver<bool>,
) {
    let acceptor = server.options.tls.clone().map(TlsAcceptor::from);
    let mut shutdown_now = shutdown.clone();
    tokio::select! {
        began = may_serve.wait_for(|&serving| serving) => {
            if began.is_err() {
                return;
            }
        }
        () = wait_for_shutdown(&mut shutdown_now, Shutdown::Drain) => return,
    }
    let mut sweep = tokio::time::interval(SWEEP_INTERVAL);
    loop {
        let accepted = tokio::select! {
            accepted = socket.accept() => accepted,
            () = wait_for_shutdown(&mut shutdown_now, Shutdown::Drain) => return,
            _ = sweep.tick() => {
                server.transfers.sweep();
                continue;
            }
        };
        let Ok((socket, address)) = accepted else {
            tokio::time::sleep(RETRY_AFTER).await;
            continue;
        };
        let Some(place) = server.places.enter().await else {
            server.counters.rejected.fetch_add(1, Ordering::Relaxed);
            reject(socket);
            continue;
        };
        tokio::spawn(serve_connection(
            ConnectionGuard::new(server.clone(), place),
            socket,
            address,
            acceptor.clone(),
            shutdown.clone(),
        ));
    }
}

/// Enables keepalive, which connections inherit, so that a client that vanished is detected. Errors are ignored.
fn keep_alive(socket: &TcpListener) {
    #[cfg(target_os = "linux")]
    {
        use rustix::net::sockopt;
        let _ = sockopt::set_socket_keepalive(socket, true)
            .and_then(|()| sockopt::set_tcp_keepidle(socket, IDLE))
            .and_then(|()| sockopt::set_tcp_keepintvl(socket, PROBE_INTERVAL))
            .and_then(|()| sockopt::set_tcp_keepcnt(socket, PROBES));
    }
    #[cfg(not(target_os = "linux"))]
    let _ = socket;
}

/// Sends the reason if that does not block, and closes.
fn reject(socket: TcpStream) {
    let _ = socket.try_write(b"-ERR max number of clients reached\r\n");
}

async fn serve_connection(
    guard: ConnectionGuard,
    socket: TcpStream,
    address: SocketAddr,
    acceptor: Option<TlsAcceptor>,
    mut shutdown: watch::Receiver<Shutdown>,
) {
    let (server, place) = (guard.server.clone(), guard.place.place.clone());
    let _ = socket.set_nodelay(true);
    let Ok(local) = socket.local_addr() else { return };
    let mut now = shutdown.clone();
    let whole = async {
        let stream = match acceptor {
            None => Stream::Plain(socket),
            Some(acceptor) => {
                let handshake = server.store.options.limits.receive;
                match timeout(handshake, acceptor.accept(socket)).await {
                    Ok(Ok(stream)) => Stream::Tls(Box::new(stream)),
                    _ => return,
                }
            }
        };
        connection::serve(server, stream, (address, local), place.clone(), &mut shutdown).await;
    };
    tokio::select! {
        () = whole => {}
        () = place.wait_for_eviction() => {}
        () = wait_for_shutdown(&mut now, Shutdown::Now) => {}
    }
}
