//! `MULTI` and `EXEC`: commands that execute without interference from other connections.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLockWriteGuard;

use crate::resp::error::{CommandError, CommandResult};
use crate::resp::parser::Args;
use crate::resp::session::Session;
use crate::resp::transaction::Transaction;
use crate::store::{Entry, Store};

/// Once the replies of one transaction have more bytes than this, its other commands are not executed.
const MOST_ANSWERED: usize = 64 << 20;
/// How long a waiting transaction holds up other clients before it lets them continue.
const TIMEOUT: Duration = Duration::from_millis(5);

pub(super) fn multi(session: &mut Session, _: Args<'_>) -> CommandResult {
    if session.transaction.is_some() {
        return Err(CommandError::new("ERR MULTI calls can not be nested"));
    }
    session.transaction = Some(Transaction::new(session.server.store.budget()));
    session.ok()
}

pub(super) fn discard(session: &mut Session, _: Args<'_>) -> CommandResult {
    if session.transaction.take().is_none() {
        return Err(CommandError::new("ERR DISCARD without MULTI"));
    }
    session.ok()
}

pub(super) fn watch(_: &mut Session, _: Args<'_>) -> CommandResult {
    Err(CommandError::new("ERR WATCH is not supported: MULTI and EXEC execute as one without it"))
}

pub(super) fn unwatch(session: &mut Session, _: Args<'_>) -> CommandResult {
    session.ok()
}

/// Waits until no change is in progress, and excludes other changes. While it waits for a long change, other clients
/// continue.
fn lock_exclusively(store: &Store) -> RwLockWriteGuard<'_, ()> {
    loop {
        if let Some(alone) = store.transaction_lock.try_write_for(TIMEOUT) {
            return alone;
        }
        std::thread::sleep(TIMEOUT);
    }
}

pub(super) fn exec(session: &mut Session, _: Args<'_>) -> CommandResult {
    let Some(transaction) = session.transaction.take() else {
        return Err(CommandError::new("ERR EXEC without MULTI"));
    };
    if transaction.is_aborted() {
        return Err(CommandError::new("EXECABORT Transaction discarded because of previous errors."));
    }
    let caps = session.full_caps();
    let mut saved: Option<Arc<Entry>> = None;
    transaction.each(&caps, |command, args| {
        for name in command.keys(args) {
            saved = saved.take().or(session.find(name).ok().flatten().filter(|entry| entry.is_busy()));
        }
    });
    if let Some(entry) = saved {
        session.transaction = Some(transaction);
        return Err(CommandError::Busy(entry));
    }
    let server = session.server.clone();
    let alone = lock_exclusively(&server.store);
    session.exclusive = true;
    session.reply.array(transaction.len());
    transaction.each(&caps, |command, args| {
        let from = session.reply.out.len();
        if from > MOST_ANSWERED {
            session
                .reply
                .error(&format!("ERR not executed: the replies before it have more than {MOST_ANSWERED} bytes"));
        } else if let Err(CommandError::Refused(text)) = session.execute_queued(command, args) {
            session.reply.out.truncate(from);
            session.reply.error(&text);
        }
    });
    session.exclusive = false;
    drop(alone);
    server.transaction_ended.notify_waiters();
    Ok(())
}
