//! Notes: small texts under names, beside the filters.
//!
//! A note is never changed: another text is another entry that takes its name over, in one record of the log, so that a
//! crash leaves the one or the other.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::catalogue::check_name;
use super::{Entry, Flavour, Lsn, Store, now};
use crate::fault::Result;
use crate::kind::{Note, settings};
use crate::log::Record;

/// When a note is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteExpiry {
    /// Never.
    Never,
    /// At a time, in milliseconds since 1970.
    At(u64),
    /// When the one before it would have been.
    Keep,
}

/// What came of setting a note.
pub struct NoteUpdate {
    /// What had the name before: a filter stays, whatever was asked for.
    pub before: Option<Arc<Entry>>,
    /// The change; none where it was not made.
    pub lsn: Option<Lsn>,
}

impl Entry {
    /// True of a note, which is no filter.
    pub fn is_note(&self) -> bool {
        self.settings.flavour == Flavour::Note
    }
}

impl Store {
    /// Sets a note; `present` says whether there must be one of its name (true), must be none (false), or either.
    pub fn set_note(&self, name: &[u8], text: &[u8], present: Option<bool>, until: NoteExpiry) -> Result<NoteUpdate> {
        let name = check_name(name)?;
        let note = Note::new(text)?;
        let _one = self.lock_catalogue();
        self.check_local(name)?;
        let before = self.find_by_name(name).filter(|entry| entry.is_alive(now()));
        let stays = before.as_ref().is_some_and(|entry| !entry.is_note());
        if stays || present.is_some_and(|present| present != before.is_some()) {
            return Ok(NoteUpdate { before, lsn: None });
        }
        match &before {
            None => self.check_limits(text.len() as u64, self.find_by_name(name).as_deref())?,
            Some(entry) => self.check_bytes((text.len() as u64).saturating_sub(entry.nbytes()))?,
        }
        self.log.admit()?;
        let expires = match until {
            NoteExpiry::Never => None,
            NoteExpiry::At(at) => Some(at),
            NoteExpiry::Keep => before.as_ref().and_then(|entry| entry.expires()),
        };
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let entry = Entry::new(id, name, self.interner.lock().intern(Note::settings()), now(), Box::new(note));
        entry.set_expires(expires);
        let line = settings::line(name, entry.created, &entry.settings);
        let lsn = self.append_to_catalogue(&Record::Note { id, expires: expires.unwrap_or(0), line: &line, text })?;
        entry.lsn.store(lsn, Ordering::Relaxed);
        self.insert_entry(Arc::new(entry));
        Ok(NoteUpdate { before, lsn: Some(Lsn(lsn)) })
    }
}
