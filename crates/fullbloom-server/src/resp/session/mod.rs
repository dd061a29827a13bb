//! [`Session`]: the state of one client, and the execution of its commands. It waits for nothing except a filter's
//! lock.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::RwLockReadGuard;
use tokio::sync::OwnedSemaphorePermit;

use super::clients::Client;
use super::command::{Command, Table, flag};
use super::error::{CommandError, CommandResult};
use super::parser::{Args, Caps, ParseError, Parser, Progress, Span};
use super::places::Place;
use super::reply::Reply;
use super::server::{Buffers, Server};
use super::transaction::Transaction;
use crate::auth::Grant;
use crate::auth::Scope;
use crate::blocking::run_blocking;
use crate::log::Durability;
use crate::store::{self, Entry, Lsn};

mod filters;

/// Replies are sent before more commands are executed once they have this many bytes. A modest reply on top of them
/// still fits into the bytes that are not charged.
const OUTPUT: usize = 48 << 10;
/// Commands with this many words or bytes are charged for the memory that they need while they run.
const MANY: usize = 2048;
const LARGE: usize = 128 << 10;
/// Commands with `MANY` words or this many bytes run aside. Below, keys of 16 bytes take less than a millisecond.
const ASIDE: usize = 512 << 10;
/// The memory for each word of a large command, in bytes: its hash, its flag, its reply, its record in the log.
const WORD: usize = 40;

/// What the connection does next.
pub(super) enum NextStep {
    /// Read more.
    Read,
    /// Send the replies, then continue.
    Write,
    /// Wait until the task over the whole filter ends, then continue.
    WaitForFilter(Arc<Entry>),
    /// Wait until a transaction ends, then continue.
    WaitForTransaction,
    /// Wait for a slot for a slow command, then continue.
    WaitForSlot,
    /// Send the replies and close.
    Close,
}

/// The filter that a client's last command used.
struct CachedEntry {
    /// The epoch of the catalogue at that time.
    epoch: u64,
    name: Vec<u8>,
    entry: Arc<Entry>,
}

/// The state of one client.
pub(super) struct Session {
    pub(super) server: Arc<Server>,
    pub(super) table: &'static Table<Session>,
    pub(super) client: Arc<Client>,
    pub(super) reply: Reply,
    pub(super) hashes: Vec<u64>,
    pub(super) flags: Vec<u8>,
    /// What the client may do; `None` until it has authenticated.
    pub(super) grant: Option<Grant>,
    /// Its token, and the authenticator's epoch at login.
    token: Option<(Vec<u8>, u64)>,
    caps: Caps,
    place: Arc<Place>,
    /// True once a whole command was authorized: the client is no stranger.
    admitted: bool,
    pub(super) transaction: Option<Transaction<&'static Command<Session>>>,
    /// True while `EXEC` has exclusive access to the filters.
    pub(super) exclusive: bool,
    pub(super) closing: bool,
    cached: Option<CachedEntry>,
    last: Option<(Vec<u8>, &'static Command<Session>)>,
    /// The last change on which an unsent reply depends, and the positions of such replies. Used only if replies wait
    /// for the disk.
    pending_lsn: Option<Lsn>,
    pending_replies: Vec<Range<usize>>,
    /// True once the current command has recorded what its reply depends on.
    recorded: bool,
    missing: usize,
    waits_for_disk: bool,
    /// The slot of a slow command, once the connection has waited for it.
    pub(super) slot: Option<OwnedSemaphorePermit>,
}

type SharedGuard<'a> = Option<RwLockReadGuard<'a, ()>>;

impl From<CommandError> for NextStep {
    fn from(error: CommandError) -> Self {
        match error {
            CommandError::Busy(entry) => NextStep::WaitForFilter(entry),
            CommandError::NoSlot => NextStep::WaitForSlot,
            CommandError::InTransaction | CommandError::Refused(_) => NextStep::WaitForTransaction,
        }
    }
}

impl Session {
    pub(super) fn new(
        server: Arc<Server>,
        table: &'static Table<Session>,
        client: Arc<Client>,
        place: Arc<Place>,
    ) -> Self {
        let waits_for_disk = server.store.durability() == Durability::Always;
        let reply = Reply { held: Some(server.store.budget().empty()), ..Reply::default() };
        let mut session = Session {
            server,
            table,
            client,
            reply,
            hashes: Vec::new(),
            flags: Vec::new(),
            grant: None,
            token: None,
            caps: Caps::before_auth(),
            place,
            admitted: false,
            transaction: None,
            exclusive: false,
            closing: false,
            cached: None,
            last: None,
            pending_lsn: None,
            pending_replies: Vec::new(),
            recorded: false,
            missing: 1,
            waits_for_disk,
            slot: None,
        };
        session.reset();
        session
    }

    /// Resets everything except the number of the connection.
    pub(super) fn reset(&mut self) {
        // An authenticator may accept an empty token while no token exists.
        (self.grant, self.token) = match &self.server.options.authenticator {
            None => (Some(Grant::all()), None),
            Some(authenticator) => {
                let epoch = authenticator.epoch();
                let grant = authenticator.authenticate(b"");
                let token = grant.is_some().then(|| (Vec::new(), epoch));
                (grant, token)
            }
        };
        self.reply.is_resp3 = false;
        self.transaction = None;
        self.place.set_token(false);
        self.refresh_caps();
    }

    fn refresh_caps(&mut self) {
        let known = self.grant.is_some();
        self.caps = if known { self.full_caps() } else { Caps::before_auth() };
    }

    /// The caps of an authenticated client.
    pub(super) fn full_caps(&self) -> Caps {
        Caps::of(&self.server.store.options.limits)
    }

    /// Authenticates with a token; false if it is rejected.
    pub(super) fn log_in(&mut self, token: &[u8]) -> bool {
        let Some(authenticator) = &self.server.options.authenticator else { return false };
        let epoch = authenticator.epoch();
        let Some(grant) = authenticator.authenticate(token) else { return false };
        self.grant = Some(grant);
        self.token = Some((token.to_vec(), epoch));
        self.place.set_token(!token.is_empty());
        self.refresh_caps();
        true
    }

    /// Authenticates again after tokens were created or revoked.
    fn check_token(&mut self) {
        let Some((token, epoch)) = &self.token else { return };
        let Some(authenticator) = &self.server.options.authenticator else { return };
        let now = authenticator.epoch();
        if now != *epoch {
            self.grant = authenticator.authenticate(token);
            self.place.set_token(self.grant.is_some() && !token.is_empty());
            self.token = self.grant.is_some().then(|| (token.clone(), now));
            self.refresh_caps();
        }
    }

    /// True once a whole command was authorized.
    pub(super) fn is_admitted(&self) -> bool {
        self.admitted
    }

    /// Records that the client is no stranger, once it has a grant; false if the connection must close instead.
    fn admit(&mut self) -> bool {
        if !self.admitted && self.grant.is_some() {
            self.admitted = self.server.places.admit(&self.place);
            return self.admitted;
        }
        true
    }

    /// The bytes of the incomplete command that are still missing, as far as the parser knows.
    pub(super) fn missing(&self) -> usize {
        self.missing
    }

    /// Frees what an idle connection does not need. A filter that was dropped is freed now.
    pub(super) fn release(&mut self) {
        self.cached = None;
        self.missing = 1;
    }

    /// Returns the memory of the replies, which were sent.
    pub(super) fn release_replies(&mut self) {
        self.reply.release();
    }

    /// Executes the complete commands in the buffer, from `at` on. Returns how many bytes they had, and what to do
    /// next.
    pub(super) fn run(&mut self, parser: &mut Parser, buffers: &mut Buffers, at: usize) -> (usize, NextStep) {
        let Buffers { input, spans, output, hashes, flags } = buffers;
        let mut swap = |session: &mut Session| {
            std::mem::swap(&mut session.reply.out, output);
            std::mem::swap(&mut session.hashes, hashes);
            std::mem::swap(&mut session.flags, flags);
        };
        swap(self);
        self.check_token();
        let ran = self.run_commands(parser, &input[at..], spans);
        // The command that waited for the slot may have been refused before it took it.
        self.slot = None;
        swap(self);
        ran
    }

    fn run_commands(&mut self, parser: &mut Parser, input: &[u8], spans: &mut Vec<Span>) -> (usize, NextStep) {
        let server = self.server.clone();
        let mut guard = None;
        let (mut at, mut commands) = (0, 0);
        let next = loop {
            if self.closing {
                break NextStep::Close;
            }
            if self.reply.out.len() >= OUTPUT || self.reply.file.is_some() {
                break NextStep::Write;
            }
            let (words, length) = match parser.next(&input[at..], spans, &self.caps) {
                Ok(Progress::Missing(missing)) => {
                    self.missing = missing;
                    break NextStep::Read;
                }
                Ok(Progress::Array(length)) => (&input[at..], length),
                Ok(Progress::Line(length)) => (parser.words(), length),
                Err(ParseError::Http) => break NextStep::Close,
                Err(ParseError::Protocol(text)) => {
                    self.reply.error(&format!("ERR Protocol error: {text}"));
                    break NextStep::Close;
                }
            };
            let args = Args::new(words, spans);
            if !args.is_empty() {
                if let Err(error) = self.handle(args, length, &mut guard, &server) {
                    break error.into();
                }
                commands += 1;
            }
            at += length;
        };
        server.counters.commands.fetch_add(commands, Ordering::Relaxed);
        if commands > 0 {
            self.update_client();
        }
        (at, next)
    }

    fn update_client(&self) {
        self.client.last_active.store(store::now(), Ordering::Relaxed);
        if let Some((_, command)) = &self.last {
            let mut about = self.client.about.lock();
            (about.command, about.is_resp3) = (command.name, self.reply.is_resp3);
        }
    }

    /// Executes one command of `length` bytes, or returns what to wait for.
    fn handle<'a>(
        &mut self,
        args: Args<'_>,
        length: usize,
        guard: &mut SharedGuard<'a>,
        server: &'a Server,
    ) -> Result<(), CommandError> {
        let from = self.reply.out.len();
        self.recorded = false;
        let done = match self.authorize(args) {
            Err(error) => {
                if let Some(transaction) = &mut self.transaction {
                    transaction.abort();
                }
                Err(error)
            }
            Ok(_) if !self.admit() => {
                self.closing = true;
                return Ok(());
            }
            Ok(command) => match &mut self.transaction {
                Some(transaction) if !command.is(flag::AT_ONCE) => transaction.queue(command, args, &mut self.reply),
                _ => self.schedule(command, args, length, guard, server),
            },
        };
        match done {
            Ok(()) => {}
            Err(CommandError::Refused(text)) => {
                self.reply.out.truncate(from);
                self.reply.file = None;
                self.reply.error(&text);
            }
            Err(error) => {
                self.reply.out.truncate(from);
                return Err(error);
            }
        }
        if self.recorded {
            self.pending_replies.push(from..self.reply.out.len());
        }
        // The command may have been `AUTH`.
        self.closing |= !self.admit();
        Ok(())
    }

    /// Runs a command. If a command could have made a change but made none, because a key or name was already present
    /// or absent, its reply depends on the changes of others. The reply waits for them as for a change of its own.
    #[inline]
    pub(super) fn run_command(&mut self, command: &Command<Session>, args: Args<'_>) -> CommandResult {
        let before = std::mem::take(&mut self.recorded);
        let done = (command.run)(self, args);
        if self.waits_for_disk && !self.recorded && command.is(flag::WRITE) {
            self.record(Lsn(self.server.store.log().next() - 1));
        }
        self.recorded |= before;
        done
    }

    /// Runs a command as soon as nothing has to be waited for.
    fn schedule<'a>(
        &mut self,
        command: &'static Command<Session>,
        args: Args<'_>,
        length: usize,
        guard: &mut SharedGuard<'a>,
        server: &'a Server,
    ) -> CommandResult {
        let is_large = args.len() >= MANY || length >= LARGE;
        let alone = command.is(flag::SLOW) && !command.is(flag::WRITE);
        if alone {
            *guard = None;
        } else if guard.is_none() && command.scope != Scope::Nothing {
            *guard = Some(server.store.transaction_lock.try_read().ok_or(CommandError::InTransaction)?);
        }
        if !is_large && !command.is(flag::SLOW) {
            return self.execute(command, args);
        }
        let words = args.len().max(length / 8).min(server.store.options.limits.batch_keys);
        let _held = if is_large { Some(server.store.budget().take((words * WORD) as u64)?) } else { None };
        if args.len() < MANY && length < ASIDE && !command.is(flag::SLOW) {
            return self.execute(command, args);
        }
        // The number of slots is limited, so that commands that wait for each other leave threads to all others.
        let _slow = match self.slot.take() {
            Some(slow) => slow,
            None => server.slow_slots.clone().try_acquire_owned().map_err(|_| CommandError::NoSlot)?,
        };
        run_blocking(|| self.execute(command, args))
    }

    /// Runs a command. Refuses it if its reply does not fit into memory.
    pub(super) fn execute(&mut self, command: &Command<Session>, args: Args<'_>) -> CommandResult {
        if args.len() >= MANY && command.is(flag::WRITE) {
            // Before anything is changed.
            self.reply.ensure(args.len() * 8)?;
        }
        let done = self.run_command(command, args);
        match self.reply.fault.take() {
            Some(fault) if done.is_ok() => Err(fault.into()),
            _ => done,
        }
    }

    /// Finds the command, and checks its number of words and the client's permissions.
    fn authorize(&mut self, args: Args<'_>) -> CommandResult<&'static Command<Session>> {
        let name = args.at(0);
        let command = match &self.last {
            Some((known, command)) if known == name => *command,
            _ => {
                let found = self.table.find(name).ok_or_else(|| unknown(args));
                if self.grant.is_none() && found.as_ref().map_or(true, |command| !command.is(flag::NO_AUTH)) {
                    return Err(CommandError::new("NOAUTH Authentication required."));
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
                Err(CommandError::new("NOAUTH Authentication required."))
            };
        };
        command.check_arity(args.len())?;
        check_grant(grant, command, args).map(|()| command)
    }

    /// Runs a queued command, if the client's token still permits it: the token may have changed since `MULTI`.
    pub(super) fn execute_queued(&mut self, command: &Command<Session>, args: Args<'_>) -> CommandResult {
        check_grant(self.grant.as_ref().unwrap_or(&Grant::default()), command, args)?;
        self.execute(command, args)
    }

    /// Waits until the changes are as durable as the service promises. If that fails, replaces the replies by an error.
    pub(super) async fn wait_until_durable(&mut self, buffers: &mut Buffers) {
        let Some(lsn) = self.pending_lsn.take() else { return };
        if let Err(fault) = self.server.store.log().wait_until_durable(lsn.0).await {
            let CommandError::Refused(text) = CommandError::from(fault) else { return };
            let (mut reply, mut from) = (Reply::default(), 0); // no longer than the answers it replaces, or nearly
            for answer in &self.pending_replies {
                reply.out.extend_from_slice(&buffers.output[from..answer.start]);
                reply.error(&text);
                from = answer.end;
            }
            reply.out.extend_from_slice(&buffers.output[from..]);
            buffers.output = reply.out;
        }
        self.pending_replies.clear();
    }
}

/// Refuses a command, or the name of a filter, that a grant does not include.
fn check_grant(grant: &Grant, command: &Command<Session>, args: Args<'_>) -> CommandResult {
    if !grant.allows(command.scope) {
        let text = format!("NOPERM this token has no permissions to run the '{}' command", command.name);
        return Err(CommandError::new(text));
    }
    if !grant.patterns.is_empty() && !command.keys(args).all(|name| grant.covers(name)) {
        return Err(CommandError::new("NOPERM No permissions to access a key"));
    }
    Ok(())
}

#[cold]
fn unknown(args: Args<'_>) -> CommandError {
    let shown = |bytes: &[u8]| bytes[..bytes.len().min(128)].escape_ascii().to_string();
    let beginning: String = args.from(1).iter().take(8).map(|arg| format!("'{}' ", shown(arg))).collect();
    CommandError::new(format!("ERR unknown command '{}', with args beginning with: {beginning}", shown(args.at(0))))
}
