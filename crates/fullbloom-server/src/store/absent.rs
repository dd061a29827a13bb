//! Adding where there is room, and what is not there yet.

use std::sync::atomic::Ordering;

use fullbloom_core::key::KeyDomains;

use super::{Entry, Lsn, Store};
use crate::fault::{Code, Fault, Result};
use crate::kind::{Kind, recorded};
use crate::log::Record;

impl Entry {
    /// Adds in order, unless the filter is not to have keys beyond its capacity and would: on the way back as when it
    /// happened, so that what was refused stays so.
    pub(super) fn add_to(&self, filter: &mut dyn Kind, hashes: &[u64], new: Option<&mut [u8]>) -> Result<()> {
        if self.settings.strict && filter.num_added() + (hashes.len() / self.text.width()) as u64 > filter.capacity() {
            return Err(Fault::new(Code::Full, "non scaling filter is full"));
        }
        filter.add(hashes, new)
    }
}

impl Store {
    /// Adds the key of some words unless it is there, which nobody else changes meanwhile: nothing where it was.
    pub fn add_absent(&self, entry: &Entry, words: &[u64]) -> Result<Option<Lsn>> {
        self.log.admit()?;
        entry.check_words(words, 1)?;
        let mut filter = entry.change();
        let mut found = [0];
        filter.contains(words, &mut found);
        if found != [0] {
            return Ok(None);
        }
        let text = KeyDomains::TEXT;
        let done = recorded(filter.as_mut(), text, 1, |filter| entry.add_to(filter, words, None));
        let lsn = self.logged(entry, filter.as_ref(), &Record::Add { id: entry.id, hashes: words }, done)?;
        entry.traffic.adds.fetch_add(1, Ordering::Relaxed);
        entry.traffic.new.fetch_add(1, Ordering::Relaxed);
        Ok(Some(lsn))
    }
}
