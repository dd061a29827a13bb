//! [`Dialogue`]: a client without a socket, for fuzzing and tests.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::clients::ClientGuard;
use super::commands;
use super::parser::Parser;
use super::places::PlaceGuard;
use super::server::{Buffers, Options, Server};
use super::session::{NextStep, Session};
use crate::store::Store;

/// A client that passes bytes directly to a session. It does not wait for the disk: its replies are those of a store in
/// memory.
pub struct Dialogue {
    session: Session,
    parser: Parser,
    buffers: Buffers,
    open: bool,
    _present: ClientGuard,
    _place: PlaceGuard,
}

impl Dialogue {
    /// A client of its own server.
    pub fn new(store: Arc<Store>, options: Options) -> Self {
        let server = Arc::new(Server::new(store, options, 0));
        let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let present = ClientGuard::new(server.clients.clone(), nobody, nobody);
        let place = server.places.take();
        let session = Session::new(server, commands::table(), present.client.clone(), place.place.clone());
        let (parser, buffers) = (Parser::default(), Buffers::default());
        Dialogue { session, parser, buffers, open: true, _present: present, _place: place }
    }

    /// Sends bytes, which may be incomplete commands, and appends the replies to `answers`; false once the connection
    /// is closed.
    pub fn send(&mut self, bytes: &[u8], answers: &mut Vec<u8>) -> bool {
        self.buffers.input.extend_from_slice(bytes);
        let mut at = 0;
        while self.open {
            let (taken, next) = self.session.run(&mut self.parser, &mut self.buffers, at);
            at += taken;
            answers.append(&mut self.buffers.output);
            if let Some(file) = self.session.reply.file.take() {
                let _ = file.append(0..file.nbytes(), answers); // nothing to be read but memory
                answers.extend_from_slice(b"\r\n");
            }
            self.session.release_replies();
            match next {
                NextStep::Read => break,
                NextStep::Write | NextStep::WaitForFilter(_) | NextStep::WaitForTransaction | NextStep::WaitForSlot => {
                }
                NextStep::Close => self.open = false,
            }
        }
        self.buffers.input.drain(..at);
        self.open
    }

    /// The number of executed commands.
    pub fn commands(&self) -> u64 {
        self.session.server.counters.commands.load(Ordering::Relaxed)
    }
}
