//! [`Session`]: what one client has said so far, and the commands it sends. Nothing here waits but for a filter's lock.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::RwLockReadGuard;

use super::clients::Client;
use super::command::{Command, Table, flag};
use super::gate::Grant;
use super::halt::{Done, Halt};
use super::parse::{Args, Caps, Found, Parser, Span, Wrong};
use super::reply::Reply;
use super::server::{Buffers, Server};
use super::transaction::Transaction;
use crate::log::Durability;
use crate::store::{self, Entry, Lsn};

mod filters;
mod known;

use known::Known;

/// Bytes of answers that are sent before more is done.
const OUTPUT: usize = 1 << 20;

/// What the connection does next.
pub(super) enum Next {
    /// Reads on.
    More,
    /// Sends the answers, then goes on.
    Write,
    /// Waits until the file of a filter is written, then goes on.
    Wait(Arc<Entry>),
    /// Sends the answers and closes.
    Close,
}

/// See the head of this file.
pub(super) struct Session {
    pub(super) server: Arc<Server>,
    pub(super) table: &'static Table<Session>,
    pub(super) client: Arc<Client>,
    pub(super) reply: Reply,
    pub(super) hashes: Vec<u64>,
    pub(super) flags: Vec<u8>,
    /// What the client may do; nothing before it has said who it is, where that is asked.
    pub(super) grant: Option<Grant>,
    /// Its token, and the gate's epoch when it was opened.
    token: Option<(Vec<u8>, u64)>,
    caps: Caps,
    pub(super) transaction: Option<Transaction<&'static Command<Session>>>,
    /// True while `EXEC` has the filters for itself.
    pub(super) exclusive: bool,
    pub(super) closing: bool,
    known: Option<Known>,
    last: Option<(Vec<u8>, &'static Command<Session>)>,
    /// The last change whose answer was not sent, and where such answers lie; only where they wait for the disk.
    changed: Option<Lsn>,
    answers: Vec<Range<usize>>,
    missing: usize,
    waits: bool,
}

type Turn<'a> = Option<RwLockReadGuard<'a, ()>>;

impl Session {
    pub(super) fn new(server: Arc<Server>, table: &'static Table<Session>, client: Arc<Client>) -> Self {
        let waits = server.store.durability() == Durability::Always;
        let mut session = Session {
            server,
            table,
            client,
            reply: Reply::default(),
            hashes: Vec::new(),
            flags: Vec::new(),
            grant: None,
            token: None,
            caps: Caps::before_auth(),
            transaction: None,
            exclusive: false,
            closing: false,
            known: None,
            last: None,
            changed: None,
            answers: Vec::new(),
            missing: 1,
            waits,
        };
        session.forget_client();
        session
    }

    /// As at the beginning of a connection, but for its number.
    pub(super) fn forget_client(&mut self) {
        // A gate may be open to nobody's token, which is empty, until there are others.
        (self.grant, self.token) = match &self.server.options.gate {
            None => (Some(Grant::all()), None),
            Some(gate) => {
                let epoch = gate.epoch();
                let grant = gate.open(b"");
                let token = grant.is_some().then(|| (Vec::new(), epoch));
                (grant, token)
            }
        };
        self.reply.three = false;
        self.transaction = None;
        self.refresh_caps();
    }

    fn refresh_caps(&mut self) {
        let known = self.grant.is_some();
        self.caps = if known { self.all_caps() } else { Caps::before_auth() };
    }

    /// Of a client that may send what the service takes.
    pub(super) fn all_caps(&self) -> Caps {
        Caps::of(&self.server.store.options.limits)
    }

    /// Opens the gate with a token: false where that is none.
    pub(super) fn open(&mut self, token: &[u8]) -> bool {
        let Some(gate) = &self.server.options.gate else { return false };
        let epoch = gate.epoch();
        let Some(grant) = gate.open(token) else { return false };
        self.grant = Some(grant);
        self.token = Some((token.to_vec(), epoch));
        self.refresh_caps();
        true
    }

    /// Asks the gate again where tokens were made or withdrawn.
    fn check_token(&mut self) {
        let Some((token, epoch)) = &self.token else { return };
        let Some(gate) = &self.server.options.gate else { return };
        let now = gate.epoch();
        if now != *epoch {
            self.grant = gate.open(token);
            self.token = self.grant.is_some().then(|| (token.clone(), now));
            self.refresh_caps();
        }
    }

    /// Bytes of the command that is arriving that are still to come, as far as is known.
    pub(super) fn missing(&self) -> usize {
        self.missing
    }

    /// Lets go of what an idle connection does not need: a filter that was dropped is freed, then.
    pub(super) fn rest(&mut self) {
        self.known = None;
        self.missing = 1;
    }

    /// Does the commands that lie whole in the input from `at` on: bytes of those that were done, and what is next.
    pub(super) fn run(&mut self, parser: &mut Parser, buffers: &mut Buffers, at: usize) -> (usize, Next) {
        let Buffers { input, spans, output, hashes, flags } = buffers;
        let mut swap = |session: &mut Session| {
            std::mem::swap(&mut session.reply.out, output);
            std::mem::swap(&mut session.hashes, hashes);
            std::mem::swap(&mut session.flags, flags);
        };
        swap(self);
        self.check_token();
        let ran = self.run_all(parser, &input[at..], spans);
        swap(self);
        ran
    }

    fn run_all(&mut self, parser: &mut Parser, input: &[u8], spans: &mut Vec<Span>) -> (usize, Next) {
        let server = self.server.clone();
        let mut turn = Some(server.store.turn.read());
        let (mut at, mut commands) = (0, 0);
        let next = loop {
            if self.closing {
                break Next::Close;
            }
            if self.reply.out.len() >= OUTPUT {
                break Next::Write;
            }
            let (words, length) = match parser.next(&input[at..], spans, &self.caps) {
                Ok(Found::Missing(missing)) => {
                    self.missing = missing;
                    break Next::More;
                }
                Ok(Found::Array(length)) => (&input[at..], length),
                Ok(Found::Line(length)) => (parser.words(), length),
                Err(Wrong::Http) => break Next::Close,
                Err(Wrong::Protocol(text)) => {
                    self.reply.error(&format!("ERR Protocol error: {text}"));
                    break Next::Close;
                }
            };
            let args = Args::new(words, spans);
            if !args.is_empty() {
                if let Err(entry) = self.answer(args, &mut turn, &server) {
                    break Next::Wait(entry);
                }
                commands += 1;
            }
            at += length;
        };
        server.counters.commands.fetch_add(commands, Ordering::Relaxed);
        if commands > 0 {
            self.note_client();
        }
        (at, next)
    }

    fn note_client(&self) {
        self.client.heard.store(store::now(), Ordering::Relaxed);
        if let Some((_, command)) = &self.last {
            let mut about = self.client.about.lock();
            (about.command, about.three) = (command.name, self.reply.three);
        }
    }

    /// Answers one command; a filter to wait for instead.
    fn answer<'a>(&mut self, args: Args<'_>, turn: &mut Turn<'a>, server: &'a Server) -> Result<(), Arc<Entry>> {
        let (from, before) = (self.reply.out.len(), self.changed);
        let done = match self.admitted(args) {
            Err(halt) => {
                if let Some(transaction) = &mut self.transaction {
                    transaction.spoil();
                }
                Err(halt)
            }
            Ok(command) => match &mut self.transaction {
                Some(transaction) if !command.is(flag::AT_ONCE) => transaction.queue(command, args, &mut self.reply),
                _ if command.is(flag::SLOW) && !command.is(flag::WRITE) => {
                    *turn = None;
                    let done = blocking(|| (command.run)(self, args));
                    *turn = Some(server.store.turn.read());
                    done
                }
                _ if command.is(flag::SLOW) => blocking(|| (command.run)(self, args)),
                _ => (command.run)(self, args),
            },
        };
        match done {
            Ok(()) => {}
            Err(Halt::Text(text)) => {
                self.reply.out.truncate(from);
                self.reply.error(&text);
            }
            Err(Halt::Wait(entry)) => {
                self.reply.out.truncate(from);
                return Err(entry);
            }
        }
        if self.changed != before {
            self.answers.push(from..self.reply.out.len());
        }
        Ok(())
    }

    /// The command that is asked for, if it is one, has as many words as it should, and the client may.
    fn admitted(&mut self, args: Args<'_>) -> Done<&'static Command<Session>> {
        let name = args.at(0);
        let command = match &self.last {
            Some((known, command)) if known == name => *command,
            _ => {
                let found = self.table.find(name).ok_or_else(|| unknown(args));
                if self.grant.is_none() && found.as_ref().map_or(true, |command| !command.is(flag::NO_AUTH)) {
                    return Err(Halt::text("NOAUTH Authentication required."));
                }
                let found = found?;
                self.last = Some((name.to_vec(), found));
                found
            }
        };
        let Some(grant) = &self.grant else {
            return if command.is(flag::NO_AUTH) {
                command.check_arity(args.len()).map(|()| command)
            } else {
                Err(Halt::text("NOAUTH Authentication required."))
            };
        };
        command.check_arity(args.len())?;
        if !grant.allows(command.scope) {
            let text = format!("NOPERM this token has no permissions to run the '{}' command", command.name);
            return Err(Halt::text(text));
        }
        if !grant.patterns.is_empty() && !command.keys(args).all(|name| grant.covers(name)) {
            return Err(Halt::text("NOPERM No permissions to access a key"));
        }
        Ok(command)
    }

    /// Waits until the changes are as safe as the service promises; what cannot be made safe is answered by a refusal.
    pub(super) async fn settle(&mut self, buffers: &mut Buffers) {
        let Some(lsn) = self.changed.take() else { return };
        if let Err(fault) = self.server.store.log().durable(lsn.0).await {
            let Halt::Text(text) = Halt::from(fault) else { return };
            let (mut reply, mut from) = (Reply::default(), 0);
            for answer in &self.answers {
                reply.out.extend_from_slice(&buffers.output[from..answer.start]);
                reply.error(&text);
                from = answer.end;
            }
            reply.out.extend_from_slice(&buffers.output[from..]);
            buffers.output = reply.out;
        }
        self.answers.clear();
    }
}

#[cold]
fn unknown(args: Args<'_>) -> Halt {
    let shown = |bytes: &[u8]| bytes[..bytes.len().min(128)].escape_ascii().to_string();
    let beginning: String = args.from(1).iter().take(8).map(|arg| format!("'{}' ", shown(arg))).collect();
    Halt::text(format!("ERR unknown command '{}', with args beginning with: {beginning}", shown(args.at(0))))
}

/// Does what takes its time, other tasks of this thread going to another one.
fn blocking<T>(work: impl FnOnce() -> T) -> T {
    match tokio::runtime::Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(tokio::runtime::RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}
