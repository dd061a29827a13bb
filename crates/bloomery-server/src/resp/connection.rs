//! One connection: reading, waiting for the disk, writing.
//!
//! Whatever has come in is answered, the disk is waited for once, and the answers are sent at once. An idle connection
//! holds no buffer.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio::task::coop::{consume_budget, unconstrained};
use tokio::time::{Instant, timeout, timeout_at};

use super::clients::Present;
use super::commands;
use super::end::{End, reached};
use super::parse::Parser;
use super::server::{Buffers, Server};
use super::session::{Next, Session};
use super::stream::Stream;

/// Bytes that are read at once, unless more are known to come.
const READ: usize = 64 << 10;

/// How long a client may take to hear that the connection is closed.
const FAREWELL: Duration = Duration::from_secs(1);
/// Bytes of input of a connection that are not worth counting.
const UNCOUNTED: u64 = 256 << 10;
/// Largest requests whose bytes all connections may hold together.
const REQUESTS: u64 = 16;

struct Connection {
    server: Arc<Server>,
    stream: Stream,
    session: Session,
    parser: Parser,
    buffers: Buffers,
    /// Bytes of the input that are counted among those of all connections.
    counted: u64,
    /// When the rest of a command that has begun to arrive must be there.
    deadline: Option<Instant>,
}

/// Answers until the client goes, errs, or is too slow, and closes.
pub(super) async fn serve(
    server: Arc<Server>,
    stream: Stream,
    (address, local): (SocketAddr, SocketAddr),
    ended: &mut watch::Receiver<End>,
) {
    let present = Present::new(server.clients.clone(), address, local);
    let session = Session::new(server.clone(), commands::table(), present.client.clone());
    let (parser, buffers) = (Parser::default(), Buffers::default());
    let mut connection = Connection { server, stream, session, parser, buffers, counted: 0, deadline: None };
    let _ = connection.run(ended).await;
    let _ = timeout(FAREWELL, connection.stream.shutdown()).await;
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.uncount();
    }
}

impl Connection {
    async fn run(&mut self, ended: &mut watch::Receiver<End>) -> io::Result<()> {
        // What came in together with the end of a handshake was read with it: the socket has nothing to tell of.
        let mut ready = !self.stream.is_plain();
        loop {
            if std::mem::take(&mut ready) {
                self.buffers = self.server.buffers();
            } else if self.buffers.input.is_empty() {
                self.rest();
                tokio::select! {
                    biased;
                    ready = self.stream.readable() => ready?,
                    () = reached(ended, End::Drain) => return Ok(()),
                }
                self.buffers = self.server.buffers();
            } else {
                let patience = self.server.store.options.limits.receive;
                let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + patience);
                match timeout_at(deadline, self.stream.readable()).await {
                    Ok(ready) => ready?,
                    Err(_) => return Ok(()),
                }
            }
            loop {
                let Some(room) = self.make_room() else {
                    self.buffers.output.extend_from_slice(b"-ERR too many bytes are on their way: try again later\r\n");
                    return self.write().await;
                };
                let Some(read) = self.read_now()? else {
                    consume_budget().await;
                    break;
                };
                if read == 0 || !self.answer().await? {
                    return Ok(());
                }
                consume_budget().await;
                if read < room && self.stream.is_plain() {
                    break;
                }
            }
        }
    }

    /// Lets go of what an idle connection does not need.
    fn rest(&mut self) {
        self.session.rest();
        self.deadline = None;
        self.uncount();
        self.server.put_back(std::mem::take(&mut self.buffers));
    }

    /// Takes the input out of the count of all connections.
    fn uncount(&mut self) {
        self.server.counters.held.fetch_sub(std::mem::take(&mut self.counted), Ordering::AcqRel);
    }

    /// Room to read into: at most as much again as has come in, so that nobody is given memory for what they only state.
    /// None where all connections have so much that there is none to give.
    fn make_room(&mut self) -> Option<usize> {
        let input = &mut self.buffers.input;
        let wanted = self.session.missing().clamp(1, input.len().max(READ));
        if input.capacity() - input.len() < wanted {
            input.reserve(wanted.max(READ));
        }
        let (room, capacity) = (input.capacity() - input.len(), input.capacity() as u64);
        if capacity > UNCOUNTED && capacity > self.counted {
            let more = capacity - self.counted;
            let held = self.server.counters.held.fetch_add(more, Ordering::AcqRel) + more;
            self.counted = capacity;
            if held > REQUESTS * self.server.store.options.limits.request_bytes as u64 {
                return None;
            }
        }
        Some(room)
    }

    /// Reads what is there; `None` where nothing is.
    fn read_now(&mut self) -> io::Result<Option<usize>> {
        // Whoever waits does so in `readable`, which knows nothing of the task's budget: a read that is put off for want
        // of it would be tried for ever. The budget is that of `consume_budget`.
        let mut reading = std::pin::pin!(unconstrained(self.stream.read_buf(&mut self.buffers.input)));
        match reading.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(read) => read.map(Some),
            Poll::Pending => Ok(None),
        }
    }

    /// Answers the commands that have come in whole; false when the connection is to be closed.
    async fn answer(&mut self) -> io::Result<bool> {
        let mut at = 0;
        loop {
            let (taken, next) = self.session.run(&mut self.parser, &mut self.buffers, at);
            at += taken;
            if taken > 0 {
                self.deadline = None;
            }
            match next {
                Next::More => break,
                Next::Write => self.write().await?,
                Next::Wait(entry) => {
                    self.write().await?;
                    entry.idle().await;
                }
                Next::Close => {
                    self.write().await?;
                    return Ok(false);
                }
            }
        }
        self.buffers.input.drain(..at);
        self.write().await?;
        Ok(true)
    }

    /// Sends the answers, once the disk has what they promise.
    async fn write(&mut self) -> io::Result<()> {
        self.session.settle(&mut self.buffers).await;
        if self.buffers.output.is_empty() {
            return Ok(());
        }
        let patience = self.server.store.options.limits.receive;
        let stream = &mut self.stream;
        let written = match stream.write_now(&self.buffers.output)? {
            written if written == self.buffers.output.len() && stream.is_plain() => Ok(()),
            written => {
                let rest = &self.buffers.output[written..];
                let all = async {
                    stream.write_all(rest).await?;
                    stream.flush().await
                };
                timeout(patience, all).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            }
        };
        self.buffers.output.clear();
        written
    }
}
