//! [`CommandError`]: why a command did not come to its end, and what that is called in an answer.

use std::borrow::Cow;
use std::sync::Arc;

use crate::fault::{Code, Fault};
use crate::store::Entry;

/// What a filter of another sort says.
pub(super) const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

/// See the head of this file.
pub(super) enum CommandError {
    /// It is refused.
    Refused(Cow<'static, str>),
    /// Work over a whole filter is under way that it would wait for: it is to be done again when that is over.
    Busy(Arc<Entry>),
    /// A transaction is under way, or about to be: it is to be done again when that is over.
    InTransaction,
    /// So many commands that take their time are under way: it is to be done again when one of them is over.
    NoSlot,
}

/// What a command comes to.
pub(super) type CommandResult<T = ()> = Result<T, CommandError>;

impl CommandError {
    /// A refusal.
    pub(super) fn new(text: impl Into<Cow<'static, str>>) -> Self {
        CommandError::Refused(text.into())
    }
}

impl From<Fault> for CommandError {
    fn from(fault: Fault) -> Self {
        let sort = match fault.code {
            Code::ReadOnly => "MISCONF",
            Code::Denied => "NOPERM",
            Code::Elsewhere => "ELSEWHERE",
            Code::Overloaded => "OOM",
            _ => "ERR",
        };
        CommandError::Refused(format!("{sort} {}", fault.text).into())
    }
}

/// The refusal of a key that is too long; its bytes are not told.
#[cold]
pub(super) fn too_long(most: usize) -> CommandError {
    CommandError::new(format!("ERR a key has at most {most} bytes"))
}

/// The refusal of too few or too many words.
pub(super) fn wrong_arity(name: &str) -> CommandError {
    CommandError::new(format!("ERR wrong number of arguments for '{name}' command"))
}

/// The refusal of a word that a command does not know.
pub(super) fn unknown_subcommand(command: &str, word: &[u8]) -> CommandError {
    let word = word[..word.len().min(128)].escape_ascii().to_string();
    CommandError::new(format!("ERR unknown subcommand '{word}'. Try {command} HELP."))
}
