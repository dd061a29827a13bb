//! [`CommandError`]: why a command failed, and the reply that reports it.

use std::borrow::Cow;
use std::sync::Arc;

use crate::fault::{Code, Fault};
use crate::store::Entry;

/// The error for a filter of another type.
pub(super) const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

/// Why a command failed, or must be repeated later.
pub(super) enum CommandError {
    /// The command is refused.
    Refused(Cow<'static, str>),
    /// A task over the whole filter is running. Repeat the command when it ends.
    Busy(Arc<Entry>),
    /// A transaction is running or about to start. Repeat the command when it ends.
    InTransaction,
    /// Too many slow commands are running. Repeat the command when one of them ends.
    NoSlot,
}

pub(super) type CommandResult<T = ()> = Result<T, CommandError>;

impl CommandError {
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

/// The refusal of a key that is too long. It does not contain the key.
#[cold]
pub(super) fn too_long(most: usize) -> CommandError {
    CommandError::new(format!("ERR a key has at most {most} bytes"))
}

/// The refusal of too few or too many words.
pub(super) fn wrong_arity(name: &str) -> CommandError {
    CommandError::new(format!("ERR wrong number of arguments for '{name}' command"))
}

/// The refusal of an unknown subcommand.
pub(super) fn unknown_subcommand(command: &str, word: &[u8]) -> CommandError {
    let word = word[..word.len().min(128)].escape_ascii().to_string();
    CommandError::new(format!("ERR unknown subcommand '{word}'. Try {command} HELP."))
}
