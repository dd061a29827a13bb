//! Conditions on a change: [`Target`], the versions that the changed filter may have; [`Conflict`], what to do about a
//! filter that already has the name.

use std::sync::Arc;

use fullbloom_core::key::KeyDomains;

use super::Entry;
use crate::fault::{Code, Fault, Result};

/// The filter to change, and the versions it may have. An [`Entry`] alone allows any version.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    pub(super) entry: &'a Entry,
    versions: Option<Versions<'a>>,
    /// The domains of the keys in the change.
    pub(super) domains: KeyDomains,
}

impl Entry {
    /// Restricts a change to these numbers and versions of the filter, if any are given.
    pub fn at<'a>(&'a self, versions: Option<Versions<'a>>) -> Target<'a> {
        Target { entry: self, versions, domains: KeyDomains::TEXT }
    }
}

impl Target<'_> {
    /// Sets the domains of the keys in the change.
    pub fn with_domains(self, domains: KeyDomains) -> Self {
        Target { domains, ..self }
    }

    /// Refuses a filter of another version. The caller excludes changes.
    pub fn check(&self) -> Result<()> {
        self.check_version(self.entry.version())
    }

    /// Refuses a version that is not allowed.
    pub fn check_version(&self, version: u64) -> Result<()> {
        match self.versions {
            Some(versions) if !versions.contains(&(self.entry.id, version)) => Err(version_changed()),
            _ => Ok(()),
        }
    }

    /// True if only some versions are allowed.
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

/// The numbers and versions that a filter may have for a change to be made.
pub type Versions<'a> = &'a [(u64, u64)];

/// What to do about the filter or note that already has a name.
#[derive(Clone, Copy, Debug)]
pub enum Conflict<'a> {
    /// Refuses to replace either.
    Refuse,
    /// Replaces either.
    Replace,
    /// Replaces a filter that has one of these versions, if any are given; refuses to replace a note.
    ReplaceFilter(Option<Versions<'a>>),
}

impl Conflict<'_> {
    /// Refuses to replace the holder of a name. The caller excludes changes of the holder.
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

/// The refusal of another version.
pub(super) fn version_changed() -> Fault {
    Fault::new(Code::Changed, "the filter was changed since; read it again")
}

/// The refusal of the name of a note: HTTP neither shows nor replaces notes.
pub fn note_has_name() -> Fault {
    let text = "the name is that of a note (SET); choose another name, or drop the note with DEL over RESP";
    Fault::new(Code::Exists, text)
}
