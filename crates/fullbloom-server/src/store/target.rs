//! Conditions on a change: [`Target`], the versions that the changed filter may have; [`Conflict`], what to do about a
//! filter that already has the name.

use std::sync::Arc;

use fullbloom_core::key::KeyDomains;

use super::Entry;
use crate::fault::{Code, Fault, Result};

/// The filter to change, and the versions it may have. An entry alone is changed whatever version it has.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    pub(super) entry: &'a Entry,
    versions: Option<Versions<'a>>,
    /// The domains of the keys with which it is changed.
    pub(super) domains: KeyDomains,
}

impl Entry {
    /// To be changed only while its number and version are among these, if any are given.
    pub fn at<'a>(&'a self, versions: Option<Versions<'a>>) -> Target<'a> {
        Target { entry: self, versions, domains: KeyDomains::TEXT }
    }
}

impl Target<'_> {
    /// To be changed with keys of these domains.
    pub fn with_domains(self, domains: KeyDomains) -> Self {
        Target { domains, ..self }
    }

    /// Refuses a filter of another version; asked while nobody else can change it.
    pub fn check(&self) -> Result<()> {
        self.check_version(self.entry.version())
    }

    /// Refuses any version but those that it may have.
    pub fn check_version(&self, version: u64) -> Result<()> {
        match self.versions {
            Some(versions) if !versions.contains(&(self.entry.id, version)) => Err(version_changed()),
            _ => Ok(()),
        }
    }

    /// True where only some versions are changed.
    pub(super) fn has_versions(&self) -> bool {
        self.versions.is_some()
    }
}

impl<'a> From<&'a Entry> for Target<'a> {
    fn from(entry: &'a Entry) -> Self {
        entry.at(None)
    }
}

impl<'a> From<&'a Arc<Entry>> for Target<'a> {
    fn from(entry: &'a Arc<Entry>) -> Self {
        entry.at(None)
    }
}

/// Numbers and versions that a filter may have for a change to be made.
pub type Versions<'a> = &'a [(u64, u64)];

/// What to do about the filter or note that already has a name.
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
            (Conflict::ReplaceFilter(Some(_)), None) => Err(version_changed()),
            (_, None) | (Conflict::Replace, _) => Ok(()),
            (Conflict::Refuse, Some(_)) => Err(Fault::new(Code::Exists, "item exists")),
            (Conflict::ReplaceFilter(_), Some(holder)) if holder.is_note() => Err(note_has_name()),
            (Conflict::ReplaceFilter(versions), Some(holder)) => holder.at(*versions).check(),
        }
    }
}

/// The refusal of a filter of another version.
pub(super) fn version_changed() -> Fault {
    Fault::new(Code::Changed, "the filter was changed since; read it again")
}

/// The refusal of a name under which RESP clients keep a note: over HTTP notes are neither seen nor replaced.
pub fn note_has_name() -> Fault {
    let text = "the name is that of a note (SET); choose another name, or drop the note with DEL over RESP";
    Fault::new(Code::Exists, text)
}
