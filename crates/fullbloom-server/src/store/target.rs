//! [`Target`]: the filter that a change is about, and the versions it may have for the change to be made.

use std::sync::Arc;

use fullbloom_core::key::KeyDomains;

use super::Entry;
use super::conflict::{Versions, changed};
use crate::fault::Result;

/// See the head of this file. An entry alone is changed whatever version it has.
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
    pub fn of(self, domains: KeyDomains) -> Self {
        Target { domains, ..self }
    }

    /// Refuses a filter of another version; asked while nobody else can change it.
    pub fn check(&self) -> Result<()> {
        self.check_version(self.entry.version())
    }

    /// Refuses any version but those that it may have.
    pub fn check_version(&self, version: u64) -> Result<()> {
        match self.versions {
            Some(versions) if !versions.contains(&(self.entry.id, version)) => Err(changed()),
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
