//! [`Conflict`]: what a change does about the filter or note that has the name which it gives.

use super::Entry;
use crate::fault::{Code, Fault, Result};

/// Numbers and versions that a filter may have for a change to be made.
pub type Versions<'a> = &'a [(u64, u64)];

/// See the head of this file.
#[derive(Clone, Copy, Debug)]
pub enum Conflict<'a> {
    /// Refuses to take the name from either.
    Refuse,
    /// Takes the name over from either.
    Replace,
    /// Takes the name over from a filter, which has one of these versions if any are given; refuses a note.
    ReplaceFilter(Option<Versions<'a>>),
}

impl Conflict<'_> {
    /// Refuses a holder of the name that is not to be replaced. Called while nobody else can change it.
    pub(super) fn check(&self, holder: Option<&Entry>) -> Result<()> {
        match (self, holder) {
            (Conflict::ReplaceFilter(Some(_)), None) => Err(changed()),
            (_, None) | (Conflict::Replace, _) => Ok(()),
            (Conflict::Refuse, Some(_)) => Err(Fault::new(Code::Exists, "item exists")),
            (Conflict::ReplaceFilter(_), Some(holder)) if holder.is_note() => Err(note_has_name()),
            (Conflict::ReplaceFilter(versions), Some(holder)) => holder.at(*versions).check(),
        }
    }
}

/// The refusal of a filter of another version.
pub(super) fn changed() -> Fault {
    Fault::new(Code::Changed, "the filter was changed since; read it again")
}

/// The refusal of a name under which RESP clients keep a note: over HTTP notes are neither seen nor replaced.
pub fn note_has_name() -> Fault {
    let text = "the name is that of a note (SET); choose another name, or drop the note with DEL over RESP";
    Fault::new(Code::Exists, text)
}
