//! [`NewFile`]: a file of a filter that no record of the log names yet.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use super::Store;
use super::copier::Copier;
use super::entry::Place;
use super::writing::Writing;
use crate::fault::Result;
use crate::kind::Kind;

/// Checkpoints keep it; it is removed when this is dropped, unless a record was written that names it.
pub(super) struct NewFile<'a> {
    store: &'a Store,
    /// Its number.
    pub(super) number: u64,
    path: PathBuf,
    recorded: bool,
}

impl Store {
    /// Writes a filter to a file of its own, synced when this returns; none without a folder. No lock is needed.
    pub(super) fn write_new(&self, id: u64, filter: &dyn Kind) -> Result<Option<NewFile<'_>>> {
        let Some(folder) = &self.options.folder else { return Ok(None) };
        let number = {
            let mut new_files = self.new_files.lock();
            let number = self.next_file.fetch_add(1, Ordering::Relaxed);
            new_files.insert(number);
            number
        };
        let file = NewFile { store: self, number, path: Place::own(number).path(folder, id), recorded: false };
        let here = Copier::here();
        let mut writing = Writing::new(folder, &self.next_file, &self.budget, &here);
        writing.own_as(number, id, filter)?;
        writing.finish()?;
        Ok(Some(file))
    }

    /// Numbers of the files that no record names yet, and the number of the next file, at one moment.
    pub(super) fn unrecorded(&self) -> (BTreeSet<u64>, u64) {
        let new_files = self.new_files.lock();
        (new_files.clone(), self.next_file.load(Ordering::Relaxed))
    }
}

impl NewFile<'_> {
    /// Keeps the file: a record names it.
    pub(super) fn keep(&mut self) {
        self.recorded = true;
    }
}

impl Drop for NewFile<'_> {
    fn drop(&mut self) {
        if !self.recorded {
            let _ = fs::remove_file(&self.path);
        }
        self.store.new_files.lock().remove(&self.number);
    }
}
