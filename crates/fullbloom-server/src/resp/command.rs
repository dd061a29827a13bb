//! [`Command`]: its name, its words, who may send it and what it does; [`Table`]: all of them, by name.

use std::collections::HashMap;

use super::gate::Scope;
use super::halt::{Done, Halt, wrong_arity};
use super::parse::Args;

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

/// A command, which is run on an `S`: the session that sent it.
pub(super) struct Command<S> {
    /// In small letters.
    pub(super) name: &'static str,
    /// Words, its name included; at least so many where it is negative.
    pub(super) arity: i32,
    pub(super) flags: u16,
    /// The words that name filters: first, last (-1 the last one), step; none with a first of 0.
    pub(super) keys: (i32, i32, i32),
    pub(super) scope: Scope,
    pub(super) run: fn(&mut S, Args<'_>) -> Done,
    pub(super) summary: &'static str,
}

/// One filter, named by the first word behind the command.
pub(super) const ONE: (i32, i32, i32) = (1, 1, 1);
/// No filter.
pub(super) const NONE: (i32, i32, i32) = (0, 0, 0);
/// Every word behind the command names one.
pub(super) const ALL: (i32, i32, i32) = (1, -1, 1);

impl<S> Command<S> {
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
    pub(super) fn keys<'a>(&self, args: Args<'a>) -> impl Iterator<Item = &'a [u8]> + use<'a, S> {
        let (first, last, step) = self.keys;
        let end = if last < 0 { args.len() } else { (last as usize + 1).min(args.len()) };
        let first = if first == 0 { end } else { (first as usize).min(end) };
        args.from(first).iter().take(end - first).step_by(step.max(1) as usize)
    }
}

/// A row of the table.
pub(super) const fn command<S>(
    name: &'static str,
    arity: i32,
    flags: u16,
    keys: (i32, i32, i32),
    scope: Scope,
    run: fn(&mut S, Args<'_>) -> Done,
    summary: &'static str,
) -> Command<S> {
    Command { name, arity, flags, keys, scope, run, summary }
}

/// Longest name of a command.
const NAME: usize = 32;

/// The commands that there are.
pub(super) struct Table<S: 'static> {
    all: Vec<&'static Command<S>>,
    known: HashMap<&'static [u8], &'static Command<S>>,
}

impl<S> Table<S> {
    pub(super) fn new(all: impl Iterator<Item = &'static Command<S>>) -> Self {
        let all: Vec<_> = all.collect();
        let known = all.iter().map(|&command| (command.name.as_bytes(), command)).collect();
        Table { all, known }
    }

    /// Every command.
    pub(super) fn all(&self) -> &[&'static Command<S>] {
        &self.all
    }

    /// The command of this name, in letters of any size.
    pub(super) fn find(&self, name: &[u8]) -> Option<&'static Command<S>> {
        let mut lower = [0u8; NAME];
        let lower = lower.get_mut(..name.len())?;
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        self.known.get(&*lower).copied()
    }
}
