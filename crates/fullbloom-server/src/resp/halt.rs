//! [`Halt`]: why a command did not come to its end, and what that is called in an answer.

use std::borrow::Cow;
use std::sync::Arc;

use crate::fault::{Code, Fault};
use crate::store::Entry;

/// What a filter of another sort says.
pub(super) const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

/// See the head of this file.
pub(super) enum Halt {
    /// It is refused.
    Text(Cow<'static, str>),
    /// Work over a whole filter is under way that it would wait for: it is to be done again when that is over.
    Wait(Arc<Entry>),
    /// A transaction is under way, or about to be: it is to be done again when that is over.
    Pause,
    /// So many commands that take their time are under way: it is to be done again when one of them is over.
    Turn,
}

/// What a command comes to.
pub(super) type Done<T = ()> = Result<T, Halt>;

impl Halt {
    /// A refusal.
    pub(super) fn text(text: impl Into<Cow<'static, str>>) -> Self {
        Halt::Text(text.into())
    }
}

impl From<Fault> for Halt {
    fn from(fault: Fault) -> Self {
        let sort = match fault.code {
            Code::ReadOnly => "MISCONF",
            Code::Denied => "NOPERM",
            Code::Elsewhere => "ELSEWHERE",
            Code::Overloaded => "OOM",
            _ => "ERR",
        };
        Halt::Text(format!("{sort} {}", fault.text).into())
    }
}

/// The refusal of a key that is too long; its bytes are not told.
#[cold]
pub(super) fn too_long(most: usize) -> Halt {
    Halt::text(format!("ERR a key has at most {most} bytes"))
}

/// The refusal of too few or too many words.
pub(super) fn wrong_arity(name: &str) -> Halt {
    Halt::text(format!("ERR wrong number of arguments for '{name}' command"))
}

/// The refusal of a word that a command does not know.
pub(super) fn unknown_subcommand(command: &str, word: &[u8]) -> Halt {
    let word = word[..word.len().min(128)].escape_ascii().to_string();
    Halt::text(format!("ERR unknown subcommand '{word}'. Try {command} HELP."))
}
