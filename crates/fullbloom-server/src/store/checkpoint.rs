//! Checkpoints: write each changed filter to a file, then a manifest that names the files, then remove the log before
//! it; and backups.
//!
//! A file name is never reused, so a crash leaves the files of the old manifest intact.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub use super::files::WriteSummary;
use super::files::{Copier, FileWriter};
use super::files::{filters_dir, list_filter_files, log_dir, sync};
use super::manifest::{Manifest, Row};
use super::{Entry, Store};
use crate::fault::{Code, Fault, Result};
use crate::log::segment;

/// When small filters are spread over more bundles than this, they are collected in one again.
const BUNDLES: usize = 16;

/// Lowers the priority of this thread, which reads gigabytes, below that of threads that serve clients.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), 15);
}

impl Store {
    /// True if enough was logged since the last checkpoint.
    pub fn is_due(&self) -> bool {
        // A checkpoint that ends between the two reads has counted more bytes than the first one.
        let since = self.log.nbytes().saturating_sub(self.checkpoint_bytes_logged.load(Ordering::Relaxed));
        self.options.folder.is_some() && since >= self.options.checkpoint_bytes
    }

    /// Writes what changed since the last checkpoint. Lookups continue. Changes of a filter wait while it is copied,
    /// or, if there is no memory for a copy, while its bytes are passed to the kernel.
    pub fn checkpoint(&self) -> Result<WriteSummary> {
        let gone = |_| Err(Fault::new(Code::Io, "the checkpoint's thread has ended"));
        let (copier, copies) = Copier::new();
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().spawn_scoped(scope, move || {
                lower_priority();
                self.checkpoint_by(&copier)
            });
            // If the system has no thread left, this thread does the work, at normal priority.
            let Ok(thread) = thread else { return self.checkpoint_by(&Copier::on_this_thread()) };
            // On this thread: one of low priority would make all others wait while it holds a filter's lock.
            copies.into_iter().for_each(|copy| copy());
            thread.join().unwrap_or_else(gone)
        })
    }

    fn checkpoint_by(&self, copier: &Copier) -> Result<WriteSummary> {
        let Some(folder) = &self.options.folder else { return Ok(WriteSummary::default()) };
        let _one = self.checkpoint_lock.lock();
        let logged = self.log.nbytes();
        let boundary = self.log.rotate()?;
        self.reach("checkpoint.rotated")?;
        let mut writing = FileWriter::new(folder, &self.next_file, &self.budget, copier);
        let entries: Vec<Arc<Entry>> = self.names.read().entries().cloned().collect();
        let places = entries.iter().map(|entry| entry.saved_state().1).filter(|place| place.len > 0);
        let scattered = places.map(|place| place.file).collect::<HashSet<_>>().len() > BUNDLES;
        for entry in entries {
            let (lsn, place) = entry.saved_state();
            if place.file == 0 || lsn != entry.read_lsn() || (scattered && place.len > 0) {
                writing.add(&entry)?;
            }
        }
        writing.finish()?;
        self.reach("checkpoint.written")?;
        let (manifest, unrecorded) = self.manifest(boundary, &mut writing)?;
        manifest.write(folder)?;
        self.checkpoint_bytes_logged.store(logged, Ordering::Relaxed);
        self.remove_old(folder, &manifest, &unrecorded)?;
        self.reach("checkpoint.done")?;
        Ok(writing.done)
    }

    /// The catalogue at one moment, with each filter on disk; and the files of filters that later records may name.
    fn manifest(&self, boundary: u64, writing: &mut FileWriter<'_>) -> Result<(Manifest, BTreeSet<u64>)> {
        let _one = self.lock_catalogue();
        let entries: Vec<Arc<Entry>> = self.names.read().entries().cloned().collect();
        entries.iter().filter(|entry| entry.saved_state().1.file == 0).try_for_each(|entry| writing.add(entry))?;
        writing.finish()?;
        // Before the rows: a merge that records its file after its row was read may end before the files are listed.
        let (unrecorded, next_file) = self.unrecorded_files();
        let rows = entries.iter().map(|entry| {
            let (lsn, place) = entry.saved_state();
            let (expires, settings) = (entry.expires().unwrap_or(0), entry.settings.clone());
            Row { id: entry.id, lsn, place, expires, name: entry.name(), created: entry.created, settings }
        });
        let rows = rows.collect();
        let fingerprint = Some(self.master.fingerprint());
        let (next_id, known) = (self.next_id.load(Ordering::Relaxed), self.log.next() - 1);
        Ok((Manifest { next_id, next_file, boundary, known, fingerprint, rows }, unrecorded))
    }

    /// Removes files and segments that neither the manifest nor a later record needs. The next checkpoint removes what
    /// a fault leaves behind.
    fn remove_old(&self, folder: &Path, manifest: &Manifest, unrecorded: &BTreeSet<u64>) -> Result<()> {
        let needed: HashSet<PathBuf> = manifest.rows.iter().map(|row| row.place.path(folder, row.id)).collect();
        for (file, path) in list_filter_files(folder)? {
            if file < manifest.next_file && !needed.contains(&path) && !unrecorded.contains(&file) {
                let _ = fs::remove_file(path);
                self.reach("checkpoint.removed")?;
            }
        }
        for (first, path) in segment::list(&log_dir(folder))? {
            if first < manifest.boundary {
                let _ = fs::remove_file(path);
                self.reach("checkpoint.removed")?;
            }
        }
        Ok(())
    }

    /// Writes a checkpoint and copies it into `target`, from which a store can open. Clients continue; changes after
    /// the checkpoint are not in the copy.
    pub fn backup(&self, target: &Path) -> Result<WriteSummary> {
        let Some(folder) = self.options.folder.clone() else {
            return Err(Fault::invalid("the service has no data folder, so there is nothing to back up"));
        };
        self.checkpoint()?;
        // No checkpoint may remove files in the meantime.
        let _one = self.checkpoint_lock.lock();
        let manifest = Manifest::read(&folder)?.unwrap_or_default();
        // The copy needs no log.
        let manifest = Manifest { boundary: 0, ..manifest };
        let mut done = WriteSummary::default();
        for part in [filters_dir(target), log_dir(target)] {
            fs::create_dir_all(&part).map_err(Fault::io(&part))?;
        }
        let files: HashSet<_> =
            manifest.rows.iter().map(|row| (row.place.path(&folder, row.id), row.place.path(target, row.id))).collect();
        for (from, to) in files {
            done.bytes += fs::copy(from, &to).map_err(Fault::io(&to))?;
            sync(&to)?;
            done.files += 1;
        }
        let key = target.join("secret.key");
        fs::copy(folder.join("secret.key"), &key).map_err(Fault::io(&key))?;
        sync(&key)?;
        sync(&filters_dir(target))?;
        // Last: a folder without a manifest is not a backup.
        manifest.write(target)?;
        Ok(done)
    }
}
