//! Notes: small texts under names, beside the filters.
//!
//! A note never changes: another text is another entry that takes over its name, in one log record, so that a crash
//! leaves either text.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::catalogue::check_name;
use super::{Entry, Flavour, Lsn, Store, now};
use crate::fault::Result;
use crate::kind::{Note, settings};
use crate::log::Record;

/// When a note expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteExpiry {
    /// Never.
    Never,
    /// At a time, in milliseconds since 1970.
    At(u64),
    /// When the note that it replaces would have expired.
    Keep,
}

/// The result of setting a note.
pub struct NoteUpdate {
    /// The previous owner of the name; a filter is never replaced.
    pub before: Option<Arc<Entry>>,
    /// The change; `None` if nothing changed.
    pub lsn: Option<Lsn>,
}

impl Entry {
    /// True for a note, which is not a filter.
    pub fn is_note(&self) -> bool {
        self.settings.flavour == Flavour::Note
    }
}

impl Store {
    /// Sets a note. `present` requires that a note of its name exists (true) or does not exist (false).
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
