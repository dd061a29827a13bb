//! `MULTI` and `EXEC`: commands that are done one after the other with no other connection's between them.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLockWriteGuard;

use super::super::command::{ALL, Command, NONE, command, flag};
use super::super::gate::Scope;
use super::super::halt::{Done, Halt};
use super::super::parse::Args;
use super::super::session::Session;
use super::super::transaction::Transaction;
use crate::store::{Entry, Store};

const AT_ONCE: u16 = flag::FAST | flag::AT_ONCE;

pub(super) const COMMANDS: &[Command<Session>] = &[
    command("multi", 1, AT_ONCE, NONE, Scope::Nothing, multi, "Puts off the commands that follow"),
    command("exec", 1, flag::SLOW | flag::AT_ONCE, NONE, Scope::Nothing, exec, "Does what was put off, as one"),
    command("discard", 1, AT_ONCE, NONE, Scope::Nothing, discard, "Forgets what was put off"),
    command("watch", -2, AT_ONCE, ALL, Scope::Read, watch, "Is not to be had"),
    command("unwatch", 1, AT_ONCE, NONE, Scope::Nothing, unwatch, "Does nothing: nothing is watched"),
];

/// Bytes of answers of one transaction, beyond which no more is done.
const MOST_ANSWERED: usize = 64 << 20;
/// Time for which others wait with a transaction that waits.
const PATIENCE: Duration = Duration::from_millis(5);

fn multi(session: &mut Session, _: Args<'_>) -> Done {
    if session.transaction.is_some() {
        return Err(Halt::text("ERR MULTI calls can not be nested"));
    }
    session.transaction = Some(Transaction::new(session.server.store.budget()));
    session.reply.ok();
    Ok(())
}

fn discard(session: &mut Session, _: Args<'_>) -> Done {
    if session.transaction.take().is_none() {
        return Err(Halt::text("ERR DISCARD without MULTI"));
    }
    session.reply.ok();
    Ok(())
}

fn watch(_: &mut Session, _: Args<'_>) -> Done {
    Err(Halt::text("ERR WATCH is not supported: MULTI and EXEC are done as one without it"))
}

fn unwatch(session: &mut Session, _: Args<'_>) -> Done {
    session.reply.ok();
    Ok(())
}

/// Waits until nobody makes a change, and keeps others from it. Who waits for a long change lets others go on meanwhile.
fn alone(store: &Store) -> RwLockWriteGuard<'_, ()> {
    loop {
        if let Some(alone) = store.turn.try_write_for(PATIENCE) {
            return alone;
        }
        std::thread::sleep(PATIENCE);
    }
}

fn exec(session: &mut Session, _: Args<'_>) -> Done {
    let Some(transaction) = session.transaction.take() else {
        return Err(Halt::text("ERR EXEC without MULTI"));
    };
    if transaction.is_spoiled() {
        return Err(Halt::text("EXECABORT Transaction discarded because of previous errors."));
    }
    let caps = session.all_caps();
    let mut saved: Option<Arc<Entry>> = None;
    transaction.each(&caps, |command, args| {
        for name in command.keys(args) {
            saved = saved.take().or(session.find(name).ok().flatten().filter(|entry| entry.is_busy()));
        }
    });
    if let Some(entry) = saved {
        session.transaction = Some(transaction);
        return Err(Halt::Wait(entry));
    }
    let server = session.server.clone();
    let alone = alone(&server.store);
    session.exclusive = true;
    session.reply.array(transaction.len());
    transaction.each(&caps, |command, args| {
        let from = session.reply.out.len();
        if from > MOST_ANSWERED {
            session.reply.error(&format!("ERR not done: the answers before it have more than {MOST_ANSWERED} bytes"));
        } else if let Err(Halt::Text(text)) = session.do_now(command, args) {
            session.reply.out.truncate(from);
            session.reply.error(&text);
        }
    });
    session.exclusive = false;
    drop(alone);
    server.freed.notify_waiters();
    Ok(())
}
