//! [`Command`]: a row of the command table, with its syntax, its permissions and its handler; [`Table`]: all rows, by name.

use std::collections::HashMap;

use super::error::{CommandError, CommandResult, wrong_arity};
use super::parser::Args;
use crate::auth::Scope;

/// Properties of a command.
pub(super) mod flag {
    /// It changes something.
    pub(in crate::resp) const WRITE: u16 = 1;
    /// It takes constant time.
    pub(in crate::resp) const FAST: u16 = 2;
    /// It may take long: another thread serves the other connections of this thread meanwhile.
    pub(in crate::resp) const SLOW: u16 = 4;
    /// It may be sent before AUTH.
    pub(in crate::resp) const NO_AUTH: u16 = 8;
    /// `MULTI` does not queue it.
    pub(in crate::resp) const AT_ONCE: u16 = 16;
    /// It concerns the whole service.
    pub(in crate::resp) const ADMIN: u16 = 32;
}

/// A command. It runs on an `S`, the session that sent it.
pub(super) struct Command<S> {
    /// Lowercase.
    pub(super) name: &'static str,
    /// The number of words, including the name; a negative number is a minimum.
    pub(super) arity: i32,
    pub(super) keys: Keys,
    /// The permission it requires.
    pub(super) scope: Scope,
    pub(super) flags: u16,
    pub(super) run: fn(&mut S, Args<'_>) -> CommandResult,
    /// Its words: optional ones in brackets, alternatives separated by `|`, `...` after words that may repeat.
    pub(super) syntax: &'static str,
    pub(super) summary: &'static str,
}

/// The words that name filters, from `first` to `last`; a `last` of -1 is the last word, a `first` of 0 means none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Keys {
    pub(super) first: i32,
    pub(super) last: i32,
}

impl<S> Command<S> {
    pub(super) fn is(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    pub(super) fn check_arity(&self, words: usize) -> CommandResult {
        let least = self.arity.unsigned_abs() as usize;
        if words == least || (self.arity < 0 && words > least) { Ok(()) } else { Err(self.wrong_arity()) }
    }

    #[cold]
    fn wrong_arity(&self) -> CommandError {
        wrong_arity(self.name)
    }

    /// The names of filters among its words.
    pub(super) fn keys<'a>(&self, args: Args<'a>) -> impl Iterator<Item = &'a [u8]> + use<'a, S> {
        let Keys { first, last } = self.keys;
        let end = if last < 0 { args.len() } else { (last as usize + 1).min(args.len()) };
        let first = if first == 0 { end } else { (first as usize).min(end) };
        args.from(first).iter().take(end - first)
    }
}

const NAME: usize = 32;

pub(super) struct Table<S: 'static> {
    rows: &'static [Command<S>],
    by_name: HashMap<&'static [u8], &'static Command<S>>,
}

impl<S> Table<S> {
    pub(super) fn new(rows: &'static [Command<S>]) -> Self {
        Table { rows, by_name: rows.iter().map(|command| (command.name.as_bytes(), command)).collect() }
    }

    pub(super) fn rows(&self) -> &'static [Command<S>] {
        self.rows
    }

    /// The command with this name, case-insensitive.
    pub(super) fn find(&self, name: &[u8]) -> Option<&'static Command<S>> {
        let mut lower = [0u8; NAME];
        let lower = lower.get_mut(..name.len())?;
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        self.by_name.get(&*lower).copied()
    }
}
