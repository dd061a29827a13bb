//! One connection: it reads, executes, waits for the disk, and writes.
//!
//! It executes all commands that arrived, waits for the disk once, and sends all replies at once. An idle connection
//! holds no buffer.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio::task::coop::{consume_budget, unconstrained};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::clients::ClientGuard;
use super::commands;
use super::parser::Parser;
use super::places::Place;
use super::server::{Buffers, Server};
use super::server::{Shutdown, wait_for_shutdown};
use super::session::{NextStep, Session};
use super::stream::Stream;
use crate::blocking::run_blocking;
use crate::budget::Reservation;

/// The number of bytes read at once, unless more are known to follow.
const READ: usize = 64 << 10;

/// How long a client may take to acknowledge that the connection is closed.
const FAREWELL: Duration = Duration::from_secs(1);
/// The bytes of an incomplete command that are not charged to the budget.
const UNCOUNTED: usize = 4 << 10;
/// How long a connection keeps the buffers of its last command while the rest of the next is outstanding. A client that
/// sends batches without a pause fills them again at once: `BLOOM.PCHECK` of 10,000 keys, 44 M keys/s instead of 35
/// (together with `session::ASIDE`).
const BRIEF: Duration = Duration::from_millis(2);
/// The bytes of a file that are sent at once.
const PIECE: usize = 256 << 10;
/// How long a client that waits for a transaction sleeps before it tries again.
const RETRY: Duration = Duration::from_millis(5);

struct Connection {
    server: Arc<Server>,
    stream: Stream,
    session: Session,
    parser: Parser,
    buffers: Buffers,
    /// The memory charged for the input.
    held: Reservation,
    place: Arc<Place>,
    since: Instant,
    /// When the rest of an incomplete command must have arrived.
    deadline: Option<Instant>,
}

/// Serves a client until it disconnects, breaks the protocol, or is too slow; then closes the connection.
pub(super) async fn serve(
    server: Arc<Server>,
    stream: Stream,
    (address, local): (SocketAddr, SocketAddr),
    place: Arc<Place>,
    shutdown: &mut watch::Receiver<Shutdown>,
) {
    let present = ClientGuard::new(server.clients.clone(), address, local);
    let session = Session::new(server.clone(), commands::table(), present.client.clone(), place.clone());
    let (parser, buffers) = (Parser::default(), Buffers::default());
    let held = server.store.budget().empty();
    let since = Instant::now();
    let mut connection = Connection { server, stream, session, parser, buffers, held, place, since, deadline: None };
    let _ = connection.run(shutdown).await;
    let _ = timeout(FAREWELL, connection.stream.shutdown()).await;
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.server.transfers.forget(self.session.client.id);
    }
}

impl Connection {
    async fn run(&mut self, shutdown: &mut watch::Receiver<Shutdown>) -> io::Result<()> {
        // Bytes that arrived with the end of a handshake are already read: the socket does not report them again.
        let mut ready = !self.stream.is_plain();
        loop {
            if std::mem::take(&mut ready) {
                self.buffers = self.server.buffers();
            } else if self.buffers.input.is_empty() {
                self.release();
                self.server.places.wait_for(&self.place);
                let deadline = self.first_command_deadline();
                tokio::select! {
                    biased;
                    ready = self.stream.readable() => ready?,
                    () = wait_for_shutdown(shutdown, Shutdown::Drain) => return Ok(()),
                    () = sleep_until(deadline.unwrap_or(self.since)), if deadline.is_some() => return Ok(()),
                }
                self.buffers = self.server.buffers();
            } else {
                if !self.charge_input() {
                    self.shrink();
                    if !self.charge_input() {
                        return self.refuse().await;
                    }
                }
                if !self.wait_for_rest().await? {
                    return Ok(());
                }
            }
            if !self.place.work() {
                return Ok(());
            }
            self.server.places.note_activity(&self.place);
            loop {
                let Some(room) = self.reserve_input() else { return self.refuse().await };
                let Some(read) = self.read_now()? else {
                    consume_budget().await;
                    break;
                };
                if read == 0 || !self.handle_input().await? {
                    return Ok(());
                }
                consume_budget().await;
                if read < room && self.stream.is_plain() {
                    break;
                }
            }
        }
    }

    /// When the first command of a stranger must have arrived.
    fn first_command_deadline(&self) -> Option<Instant> {
        let receive = self.server.store.options.limits.receive;
        (!self.session.is_admitted()).then(|| self.since + receive)
    }

    /// Frees what an idle connection does not need.
    fn release(&mut self) {
        self.session.release();
        self.deadline = None;
        self.held.release();
        self.server.put_back(std::mem::take(&mut self.buffers));
    }

    /// Waits until more of an incomplete command arrives; false if the deadline passes first.
    async fn wait_for_rest(&mut self) -> io::Result<bool> {
        let now = Instant::now();
        let deadline = *self.deadline.get_or_insert_with(|| now + self.server.store.options.limits.receive);
        let deadline = self.first_command_deadline().map_or(deadline, |first| first.min(deadline));
        self.server.places.wait_for(&self.place);
        if let Ok(ready) = timeout_at(deadline.min(now + BRIEF), self.stream.readable()).await {
            return ready.map(|()| true);
        }
        self.shrink();
        // What is charged decreases, which cannot fail.
        self.charge_input();
        timeout_at(deadline, self.stream.readable()).await.map_or(Ok(false), |ready| ready.map(|()| true))
    }

    /// Charges the memory of an incomplete command while the rest is outstanding; false if there is no memory.
    fn charge_input(&mut self) -> bool {
        let bytes = self.buffers.nbytes();
        self.held.set(if bytes <= UNCOUNTED { 0 } else { bytes as u64 }).is_ok()
    }

    /// Frees what an incomplete command does not need.
    fn shrink(&mut self) {
        if self.buffers.input.len() <= UNCOUNTED {
            self.buffers.input.shrink_to(UNCOUNTED);
        }
        // Hashes and flags belong to a command that is complete.
        (self.buffers.hashes, self.buffers.flags) = (Vec::new(), Vec::new());
    }

    /// Reports that memory ran out, and closes.
    async fn refuse(&mut self) -> io::Result<()> {
        self.buffers.output.extend_from_slice(
            b"-OOM the memory for clients is exhausted: try again later, or raise limits.memory_bytes\r\n",
        );
        self.write().await
    }

    /// Reserves space to read into: at most as much as has already arrived, so that a stated length allocates nothing.
    /// `None` if clients hold too much memory.
    fn reserve_input(&mut self) -> Option<usize> {
        let input = &self.buffers.input;
        let missing = self.session.missing().clamp(1, input.len().max(READ));
        // A buffer that shrank around the start of a command grows again: a pipeline of 50 kB that is read in pieces of
        // 4 kB takes 1.4 times as long for BF.ADD, and twice as long for PING.
        let wanted = if input.len() < READ { missing.max(READ / 2) } else { missing };
        if input.capacity() - input.len() < wanted {
            let more = wanted.max(READ).max(input.len() / 2);
            if input.len() >= READ {
                self.held.set((self.buffers.nbytes() + more) as u64).ok()?;
            }
            self.buffers.input.reserve_exact(more);
        }
        Some(self.buffers.input.capacity() - self.buffers.input.len())
    }

    /// Reads what has arrived; `None` if nothing has.
    fn read_now(&mut self) -> io::Result<Option<usize>> {
        // Waiting happens in `readable`, which ignores the task's budget: a read that fails for lack of budget would be
        // retried forever. `consume_budget` applies the budget instead.
        let mut reading = std::pin::pin!(unconstrained(self.stream.read_buf(&mut self.buffers.input)));
        match reading.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(read) => read.map(Some),
            Poll::Pending => Ok(None),
        }
    }

    /// Executes the complete commands in the buffer; false if the connection must be closed.
    async fn handle_input(&mut self) -> io::Result<bool> {
        let mut at = 0;
        loop {
            let (taken, next) = self.session.run(&mut self.parser, &mut self.buffers, at);
            at += taken;
            if taken > 0 {
                self.deadline = None;
            }
            match next {
                NextStep::Read => break,
                NextStep::Write => self.write().await?,
                NextStep::WaitForFilter(entry) => {
                    self.write().await?;
                    entry.wait_until_idle().await;
                }
                NextStep::WaitForTransaction => {
                    self.write().await?;
                    let _ = timeout(RETRY, self.server.transaction_ended.notified()).await;
                }
                NextStep::WaitForSlot => {
                    self.write().await?;
                    self.session.slot = self.server.slow_slots.clone().acquire_owned().await.ok();
                }
                NextStep::Close => {
                    self.write().await?;
                    return Ok(false);
                }
            }
        }
        self.buffers.input.drain(..at);
        self.write().await?;
        Ok(true)
    }

    /// Sends the replies once the disk has what they promise. Nothing is read meanwhile: a client that does not take
    /// its replies gets no more.
    async fn write(&mut self) -> io::Result<()> {
        self.session.wait_until_durable(&mut self.buffers).await;
        let file = self.session.reply.file.take();
        if self.buffers.output.is_empty() && file.is_none() {
            return Ok(());
        }
        let until = Instant::now() + self.server.store.options.limits.receive;
        let mut written = self.send(until).await;
        if let Some(file) = file {
            let mut at = 0;
            while written.is_ok() && at < file.nbytes() {
                let end = file.nbytes().min(at + PIECE as u64);
                self.buffers.output.clear();
                // The first chunk computes the checksums of the whole file.
                let output = &mut self.buffers.output;
                let read =
                    if at == 0 { run_blocking(|| file.append(at..end, output)) } else { file.append(at..end, output) };
                read.map_err(|fault| io::Error::other(fault.text))?;
                at = end;
                written = self.send(until).await;
                consume_budget().await;
            }
            if written.is_ok() {
                self.buffers.output.clear();
                self.buffers.output.extend_from_slice(b"\r\n");
                written = self.send(until).await;
            }
        }
        self.buffers.output.clear();
        if self.buffers.output.capacity() > PIECE {
            self.buffers.output = Vec::new();
        }
        self.session.release_replies();
        written
    }

    async fn send(&mut self, until: Instant) -> io::Result<()> {
        let stream = &mut self.stream;
        match stream.write_now(&self.buffers.output)? {
            written if written == self.buffers.output.len() && stream.is_plain() => Ok(()),
            written => {
                let rest = &self.buffers.output[written..];
                let all = async {
                    stream.write_all(rest).await?;
                    stream.flush().await
                };
                self.server.places.wait_for(&self.place);
                let sent = timeout_at(until, all).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
                if self.place.work() { sent } else { Err(io::ErrorKind::ConnectionAborted.into()) }
            }
        }
    }
}
