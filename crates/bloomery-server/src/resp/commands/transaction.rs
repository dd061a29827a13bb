//! `MULTI` and `EXEC`: commands that are done one after the other with no other connection's between them.

use std::sync::Arc;

use super::super::gate::Scope;
use super::super::parse::{Args, Found, Parser};
use super::super::reply::Reply;
use super::super::session::{Done, Halt, Session};
use super::{Command, NONE, command, flag};
use crate::store::Entry;

const AT_ONCE: u16 = flag::FAST | flag::AT_ONCE;

pub(super) const COMMANDS: &[Command] = &[
    command("multi", 1, AT_ONCE, NONE, Scope::Nothing, multi, "Puts off the commands that follow"),
    command("exec", 1, flag::SLOW | flag::AT_ONCE, NONE, Scope::Nothing, exec, "Does what was put off, as one"),
    command("discard", 1, AT_ONCE, NONE, Scope::Nothing, discard, "Forgets what was put off"),
    command("watch", -2, AT_ONCE, super::ALL, Scope::Read, watch, "Is not to be had"),
    command("unwatch", 1, AT_ONCE, NONE, Scope::Nothing, unwatch, "Does nothing: nothing is watched"),
];

/// Bytes of answers of one transaction, beyond which no more is done.
const MOST_ANSWERED: usize = 64 << 20;

/// Commands that were put off.
#[derive(Default)]
pub(in crate::resp) struct Transaction {
    commands: Vec<&'static Command>,
    /// Their words, as they came in.
    bytes: Vec<u8>,
    /// True once one was refused.
    spoiled: bool,
}

impl Transaction {
    /// Notes that a command was refused: none is done, then.
    pub(in crate::resp) fn spoil(&mut self) {
        self.spoiled = true;
    }

    /// Puts a command off.
    pub(in crate::resp) fn queue(&mut self, command: &'static Command, args: Args<'_>, reply: &mut Reply) -> Done {
        const MOST: usize = 64 << 20;
        let bytes: usize = args.iter().map(|arg| arg.len() + 32).sum();
        if self.bytes.len() + bytes > MOST {
            self.spoiled = true;
            return Err(Halt::text(format!("ERR a transaction has at most {MOST} bytes")));
        }
        let mut words = Reply { out: std::mem::take(&mut self.bytes), three: false };
        words.array(args.len());
        args.iter().for_each(|arg| words.bulk(arg));
        self.bytes = words.out;
        self.commands.push(command);
        reply.simple("QUEUED");
        Ok(())
    }

    /// Does something with each command.
    fn each(&self, caps: &super::super::parse::Caps, mut work: impl FnMut(&'static Command, Args<'_>)) {
        let (mut parser, mut spans, mut at) = (Parser::default(), Vec::new(), 0);
        for command in &self.commands {
            let Ok(Found::Array(length)) = parser.next(&self.bytes[at..], &mut spans, caps) else { return };
            work(command, Args::new(&self.bytes[at..], &spans));
            at += length;
        }
    }
}

fn multi(session: &mut Session, _: Args<'_>) -> Done {
    if session.transaction.is_some() {
        return Err(Halt::text("ERR MULTI calls can not be nested"));
    }
    session.transaction = Some(Transaction::default());
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

fn exec(session: &mut Session, _: Args<'_>) -> Done {
    let Some(transaction) = session.transaction.take() else {
        return Err(Halt::text("ERR EXEC without MULTI"));
    };
    if transaction.spoiled {
        return Err(Halt::text("EXECABORT Transaction discarded because of previous errors."));
    }
    let caps = session.all_caps();
    let mut saved: Option<Arc<Entry>> = None;
    transaction.each(&caps, |command, args| {
        for name in command.keys(args) {
            saved = saved.take().or(session.find(name).ok().flatten().filter(|entry| entry.is_saving()));
        }
    });
    if let Some(entry) = saved {
        session.transaction = Some(transaction);
        return Err(Halt::Wait(entry));
    }
    let server = session.server.clone();
    let _alone = server.turn.write();
    session.exclusive = true;
    session.reply.array(transaction.commands.len());
    transaction.each(&caps, |command, args| {
        let from = session.reply.out.len();
        if from > MOST_ANSWERED {
            session.reply.error(&format!("ERR not done: the answers before it have more than {MOST_ANSWERED} bytes"));
        } else if let Err(Halt::Text(text)) = (command.run)(session, args) {
            session.reply.out.truncate(from);
            session.reply.error(&text);
        }
    });
    session.exclusive = false;
    Ok(())
}
