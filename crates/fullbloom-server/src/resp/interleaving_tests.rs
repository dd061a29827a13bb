//! What happens between two steps of a client: tokens and filters change, memory runs out, a checkpoint begins.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use super::clients::ClientGuard;
use super::commands;
use super::parser::Parser;
use super::places::PlaceGuard;
use super::server::{Buffers, Options, Server};
use super::session::{NextStep, Session};
use crate::auth::{Authenticator, Grant};
use crate::fault::{Code, Fault, Result};
use crate::fault_points::{Action, arm};
use crate::limits::Limits;
use crate::store::{self, Store};

struct Client {
    session: Session,
    parser: Parser,
    buffers: Buffers,
    _present: ClientGuard,
    _place: PlaceGuard,
}

impl Client {
    fn new(server: &Arc<Server>) -> Self {
        let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let present = ClientGuard::new(server.clients.clone(), nobody, nobody);
        let place = server.places.take();
        let session = Session::new(server.clone(), commands::table(), present.client.clone(), place.place.clone());
        let (parser, buffers) = (Parser::default(), Buffers::default());
        Client { session, parser, buffers, _present: present, _place: place }
    }

    /// Sends lines of words; returns the replies, and what the connection would do next.
    fn send(&mut self, lines: &str) -> (String, NextStep) {
        self.buffers.input.extend_from_slice(format!("{lines}\r\n").as_bytes());
        let (taken, next) = self.session.run(&mut self.parser, &mut self.buffers, 0);
        self.buffers.input.drain(..taken);
        let replies = String::from_utf8_lossy(&std::mem::take(&mut self.buffers.output)).into_owned();
        self.session.release_replies();
        (replies, next)
    }
}

fn serve(limits: Limits, authenticator: Option<Arc<Authenticator>>) -> Result<Arc<Server>> {
    let store = Store::open(store::Options { limits, ..store::Options::default() })?;
    Ok(Arc::new(Server::new(Arc::new(store), Options { authenticator, ..Options::default() }, 0)))
}

fn set_token(authenticator: &Authenticator, grant: Grant) {
    authenticator.set_tokens(vec![(1, Authenticator::digest(b"token"), grant)]);
}

#[test]
fn a_slow_command_that_is_refused_after_it_waited_returns_its_slot() -> Result<()> {
    let authenticator = Arc::new(Authenticator::default());
    set_token(&authenticator, Grant::all());
    let server = serve(Limits::default(), Some(authenticator.clone()))?;
    let mut client = Client::new(&server);
    let slots = server.slow_slots.available_permits();
    let all = server.slow_slots.clone().try_acquire_many_owned(slots as u32);
    assert!(matches!(client.send("AUTH token\r\nSCAN 0"), (_, NextStep::WaitForSlot)));
    drop(all);
    client.session.slot = server.slow_slots.clone().try_acquire_owned().ok();
    authenticator.set_tokens(Vec::new());
    let (replies, _) = client.send("");
    assert!(replies.starts_with("-NOAUTH"), "{replies}");
    assert_eq!(server.slow_slots.available_permits(), slots);
    Ok(())
}

#[test]
fn exec_refuses_commands_that_the_token_no_longer_permits() -> Result<()> {
    let authenticator = Arc::new(Authenticator::default());
    set_token(&authenticator, Grant::all());
    let server = serve(Limits::default(), Some(authenticator.clone()))?;
    let mut client = Client::new(&server);
    client.send("AUTH token\r\nMULTI\r\nBF.ADD a k\r\nEXISTS b");
    set_token(&authenticator, Grant { read: true, patterns: vec!["b*".into()], ..Grant::default() });
    let (replies, _) = client.send("EXEC");
    assert!(replies.starts_with("*2\r\n-NOPERM") && replies.ends_with(":0\r\n"), "{replies}");
    assert!(server.store.is_empty());
    Ok(())
}

#[test]
fn exec_replies_to_every_queued_command_even_if_its_words_came_as_a_long_line() -> Result<()> {
    let server = serve(Limits { request_bytes: 16 << 10, ..Limits::default() }, None)?;
    let line = format!("EXISTS{}", " a".repeat(4000));
    let (replies, _) = Client::new(&server).send(&format!("MULTI\r\n{line}\r\nPING\r\nEXEC"));
    assert_eq!(replies, "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:0\r\n+PONG\r\n");
    Ok(())
}

#[test]
fn a_checkpoint_in_the_background_has_begun_when_the_client_is_told() -> Result<()> {
    let folder = tempfile::tempdir().map_err(|error| Fault::new(Code::Io, error.to_string()))?;
    let options = store::Options { folder: Some(folder.path().to_owned()), ..store::Options::default() };
    let server = Arc::new(Server::new(Arc::new(Store::open(options)?), Options::default(), 0));
    let paused = arm(folder.path(), "checkpoint.rotated", 0, Action::Pause);
    let (replies, _) = Client::new(&server).send("BGSAVE\r\nINFO persistence\r\nBGSAVE");
    assert!(replies.contains("rdb_bgsave_in_progress:1"), "{replies}");
    assert!(replies.ends_with("-ERR Background save already in progress\r\n"), "{replies}");
    paused.release();
    // The end is reported last, and a checkpoint may then begin again.
    while server.begin_save().is_none() {
        std::thread::yield_now();
    }
    Ok(())
}

#[test]
fn abandoned_dumps_do_not_keep_the_memory_of_a_new_one() -> Result<()> {
    let server = serve(Limits { memory_bytes: 200 << 10, ..Limits::default() }, None)?;
    let mut client = Client::new(&server);
    client.send("BLOOM.CREATE a KIND bloom capacity 100000");
    let begun = client.send("BF.SCANDUMP a 0").0;
    assert!(begun.starts_with("*2\r\n:"), "{begun}");
    client.send("BLOOM.ADD a k");
    let refused = client.send("BF.SCANDUMP a 0").0;
    assert!(refused.starts_with("-OOM"), "{refused}");
    server.transfers.abandon();
    let begun = client.send("BF.SCANDUMP a 0").0;
    assert!(begun.starts_with("*2\r\n:"), "{begun}");
    Ok(())
}
