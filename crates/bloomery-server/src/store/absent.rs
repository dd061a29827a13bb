//! Adding what is not there yet.

use std::sync::atomic::Ordering;

use super::{Entry, Lsn, Store};
use crate::fault::Result;
use crate::log::Record;

impl Store {
    /// Adds a key unless it is there, which nobody else changes meanwhile: nothing where it was.
    pub fn add_absent(&self, entry: &Entry, hash: u64) -> Result<Option<Lsn>> {
        self.log.admit()?;
        let mut filter = entry.change();
        let mut found = [0];
        filter.contains(&[hash], &mut found);
        if found != [0] {
            return Ok(None);
        }
        let done = filter.add(&[hash], None);
        let lsn = self.log.append(&Record::Add { id: entry.id, hashes: &[hash] })?;
        entry.lsn.store(lsn, Ordering::Relaxed);
        self.recount(entry, filter.nbytes());
        entry.traffic.adds.fetch_add(1, Ordering::Relaxed);
        done?;
        entry.traffic.new.fetch_add(1, Ordering::Relaxed);
        Ok(Some(Lsn(lsn)))
    }
}
