//! The table of commands, one family a file.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::sync::{Arc, OnceLock};

use bloomery_core::structure::Value;

use super::gate::Scope;
use super::parse::Args;
use super::session::{Done, Halt, Session};
use crate::fault::Code;
use crate::kind::{Kind, Spec};
use crate::store::{Entry, Settings};

mod arguments;
mod bf;
mod cf;
mod connection;
mod describe;
pub(super) mod dump;
mod keyspace;
mod named;
mod packed;
mod service;
pub(super) mod transaction;

/// What is said of a command.
pub(super) mod flag {
    /// It changes something.
    pub(in crate::resp) const WRITE: u16 = 1;
    /// It takes a moment.
    pub(in crate::resp) const FAST: u16 = 2;
    /// It may take its time: the thread's other connections are looked after by another one meanwhile.
    pub(in crate::resp) const SLOW: u16 = 4;
    /// It may be sent before AUTH.
    pub(in crate::resp) const NO_AUTH: u16 = 8;
    /// `MULTI` does not put it off.
    pub(in crate::resp) const AT_ONCE: u16 = 16;
    /// It is about the service.
    pub(in crate::resp) const ADMIN: u16 = 32;
}

/// A command.
pub(super) struct Command {
    /// In small letters.
    pub(super) name: &'static str,
    /// Words, its name included; at least so many where it is negative.
    pub(super) arity: i32,
    pub(super) flags: u16,
    /// The words that name filters: first, last (-1 the last one), step; none with a first of 0.
    pub(super) keys: (i32, i32, i32),
    pub(super) scope: Scope,
    pub(super) run: fn(&mut Session, Args<'_>) -> Done,
    pub(super) summary: &'static str,
}

/// One filter, named by the first word behind the command.
const ONE: (i32, i32, i32) = (1, 1, 1);
/// No filter.
const NONE: (i32, i32, i32) = (0, 0, 0);
/// Every word behind the command names one.
const ALL: (i32, i32, i32) = (1, -1, 1);

impl Command {
    pub(super) fn is(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    pub(super) fn check_arity(&self, words: usize) -> Done {
        let least = self.arity.unsigned_abs() as usize;
        if words == least || (self.arity < 0 && words > least) { Ok(()) } else { Err(self.wrong_arity()) }
    }

    #[cold]
    fn wrong_arity(&self) -> Halt {
        wrong_arity(self.name)
    }

    /// The names of filters among its words.
    pub(super) fn keys<'a>(&self, args: Args<'a>) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (first, last, step) = self.keys;
        let end = if last < 0 { args.len() } else { (last as usize + 1).min(args.len()) };
        let first = if first == 0 { end } else { (first as usize).min(end) };
        args.from(first).iter().take(end - first).step_by(step.max(1) as usize)
    }
}

/// The refusal of too few or too many words.
fn wrong_arity(name: &str) -> Halt {
    Halt::text(format!("ERR wrong number of arguments for '{name}' command"))
}

/// A row of the table.
const fn command(
    name: &'static str,
    arity: i32,
    flags: u16,
    keys: (i32, i32, i32),
    scope: Scope,
    run: fn(&mut Session, Args<'_>) -> Done,
    summary: &'static str,
) -> Command {
    Command { name, arity, flags, keys, scope, run, summary }
}

/// Every command.
pub(super) fn all() -> impl Iterator<Item = &'static Command> {
    let families: [&[Command]; 9] = [
        connection::COMMANDS,
        describe::COMMANDS,
        service::COMMANDS,
        keyspace::COMMANDS,
        transaction::COMMANDS,
        bf::COMMANDS,
        cf::COMMANDS,
        named::COMMANDS,
        packed::COMMANDS,
    ];
    families.into_iter().flatten().chain(dump::COMMANDS)
}

/// Longest name of a command.
const NAME: usize = 32;

/// The command of this name, in letters of any size.
pub(super) fn find(name: &[u8]) -> Option<&'static Command> {
    static KNOWN: OnceLock<HashMap<&'static [u8], &'static Command>> = OnceLock::new();
    let known = KNOWN.get_or_init(|| all().map(|command| (command.name.as_bytes(), command)).collect());
    let mut lower = [0u8; NAME];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    known.get(&*lower).copied()
}

/// A whole number that a filter shows, by its name.
fn number_of(filter: &dyn Kind, name: &str) -> Option<u64> {
    filter.info().into_iter().find_map(|(known, value)| match value {
        Value::Number(number) if known == name => Some(number),
        _ => None,
    })
}

impl Session {
    /// A structure of a kind, keyed unless the service was told not to, with a seed of its own.
    fn spec(&self, kind: &str) -> Done<Spec> {
        let keyed = !self.server.store.options.plain;
        Ok(Spec { kind: kind.to_string(), seed: drawn()?, keyed, ..Spec::default() })
    }

    /// Makes a filter.
    fn create(&mut self, name: &[u8], settings: Settings) -> Done<Arc<Entry>> {
        match self.server.store.create(name, settings) {
            Ok((entry, lsn)) => {
                self.note(lsn);
                Ok(entry)
            }
            Err(fault) if fault.code == Code::Limit => {
                Err(Halt::text(format!("ERR Insufficient memory to create filter: {}", fault.text)))
            }
            Err(fault) => Err(fault.into()),
        }
    }
}

/// A random number from the system.
fn drawn() -> Done<u64> {
    let mut bytes = [0; 8];
    let read = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
    read.map_err(|error| Halt::text(format!("ERR /dev/urandom: {error}")))?;
    Ok(u64::from_le_bytes(bytes))
}
