//! [`Target`]: the filter that a change is about, and the versions it may have for the change to be made.

use std::sync::Arc;

use super::Entry;
use crate::fault::{Code, Fault, Result};

/// See the head of this file. An entry alone is changed whatever version it has.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    pub(super) entry: &'a Entry,
    versions: Option<&'a [(u64, u64)]>,
}

impl Entry {
    /// To be changed only while its number and version are among these, if any are given.
    pub fn at<'a>(&'a self, versions: Option<&'a [(u64, u64)]>) -> Target<'a> {
        Target { entry: self, versions }
    }
}

impl Target<'_> {
    /// Refuses a filter of another version; asked while nobody else can change it.
    pub fn check(&self) -> Result<()> {
        match self.versions {
            Some(versions) if !versions.contains(&(self.entry.id, self.entry.version())) => {
                Err(Fault::new(Code::Changed, "the filter was changed since; read it again"))
            }
            _ => Ok(()),
        }
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
