//! Checkpoints: every filter that changed as a file, then a manifest that names them, then no more log before it.
//!
//! A file's name is never used again, so a crash leaves the files of the old manifest whole.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::manifest::{Manifest, Row};
use super::{Entry, Store};
use crate::fault::{Code, Fault, Result};
use crate::kind::Kind;
use crate::log::segment;

/// What a checkpoint did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    /// Files written.
    pub files: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// The folder of filters.
pub(super) fn filters(folder: &Path) -> PathBuf {
    folder.join("filters")
}

/// The folder of the log.
pub(super) fn logs(folder: &Path) -> PathBuf {
    folder.join("log")
}

/// The file of a filter.
pub(super) fn path(folder: &Path, id: u64, file: u64) -> PathBuf {
    filters(folder).join(format!("{id}-{file}.bloom"))
}

/// The number of a filter's file.
fn number(path: &Path) -> Option<(u64, u64)> {
    let (id, file) = path.file_name()?.to_str()?.strip_suffix(".bloom")?.split_once('-')?;
    Some((id.parse().ok()?, file.parse().ok()?))
}

fn io(path: &Path) -> impl Fn(std::io::Error) -> Fault {
    move |error| Fault::new(Code::Io, format!("{}: {error}", path.display()))
}

/// Writes a filter to a new file; what is still in the kernel's hands is left there.
fn write(path: &Path, filter: &dyn Kind) -> Result<u64> {
    let container = filter.container();
    let head = container.head()?;
    let written = || {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut out = BufWriter::with_capacity(1 << 16, options.open(path)?);
        container.write_with(&head, &mut out)?;
        out.flush()
    };
    written().map_err(io(path))?;
    Ok(container.nbytes() as u64)
}

fn sync(path: &Path) -> Result<()> {
    File::open(path).and_then(|file| file.sync_all()).map_err(io(path))
}

impl Store {
    /// Writes a filter whole, on disk when it returns: the number of its file; none without a folder.
    pub(super) fn write_file(&self, entry: &Entry, filter: &dyn Kind) -> Result<Option<u64>> {
        let Some(folder) = &self.options.folder else { return Ok(None) };
        let file = self.next_file.fetch_add(1, Ordering::Relaxed);
        let path = path(folder, entry.id, file);
        write(&path, filter)?;
        sync(&path)?;
        sync(&filters(folder))?;
        Ok(Some(file))
    }

    /// True when enough was logged since the last checkpoint.
    pub fn is_due(&self) -> bool {
        let since = self.log.nbytes() - self.checkpointed.load(Ordering::Relaxed);
        self.options.folder.is_some() && since >= self.options.checkpoint_bytes
    }

    /// Writes what changed since the last checkpoint. Look-ups go on; changes of a filter wait while its bytes are
    /// handed to the kernel.
    pub fn checkpoint(&self) -> Result<Done> {
        let Some(folder) = &self.options.folder else { return Ok(Done::default()) };
        let _one = self.checkpointing.lock();
        let logged = self.log.nbytes();
        let boundary = self.log.rotate()?;
        let mut done = Done::default();
        let mut written = Vec::new();
        let entries: Vec<Arc<Entry>> = self.names.read().values().cloned().collect();
        for entry in entries {
            self.save(folder, &entry, &mut done, &mut written)?;
        }
        written.drain(..).try_for_each(|path: PathBuf| sync(&path))?;
        let manifest = self.manifest(folder, boundary, &mut done, &mut written)?;
        written.drain(..).try_for_each(|path| sync(&path))?;
        sync(&filters(folder))?;
        manifest.write(folder)?;
        self.checkpointed.store(logged, Ordering::Relaxed);
        self.remove_old(folder, &manifest)?;
        Ok(done)
    }

    /// Writes one filter, if it changed since it was written.
    fn save(&self, folder: &Path, entry: &Entry, done: &mut Done, written: &mut Vec<PathBuf>) -> Result<()> {
        let (lsn, file) = entry.saved();
        if file != 0 && lsn == entry.lsn.load(Ordering::Relaxed) {
            return Ok(());
        }
        let file = self.next_file.fetch_add(1, Ordering::Relaxed);
        let path = path(folder, entry.id, file);
        let (lsn, bytes) = entry.saving(|filter| (entry.lsn.load(Ordering::Relaxed), write(&path, filter)));
        done.bytes += bytes?;
        done.files += 1;
        entry.note_saved(lsn, file);
        written.push(path);
        Ok(())
    }

    /// The catalogue as it is at one moment, each filter with a file.
    fn manifest(&self, folder: &Path, boundary: u64, done: &mut Done, written: &mut Vec<PathBuf>) -> Result<Manifest> {
        let _one = self.changing.lock();
        let entries: Vec<Arc<Entry>> = self.names.read().values().cloned().collect();
        let mut rows = Vec::with_capacity(entries.len());
        for entry in &entries {
            if entry.saved().1 == 0 {
                self.save(folder, entry, done, written)?;
            }
            let (lsn, file) = entry.saved();
            rows.push(Row {
                id: entry.id,
                lsn,
                file,
                expires: entry.expires().unwrap_or(0),
                name: entry.name(),
                created: entry.created,
                settings: entry.settings.clone(),
            });
        }
        Ok(Manifest {
            next_id: self.next_id.load(Ordering::Relaxed),
            next_file: self.next_file.load(Ordering::Relaxed),
            boundary,
            known: self.log.next() - 1,
            rows,
        })
    }

    /// Removes files and segments that neither the manifest nor a later record needs. What stays by a fault is removed next time.
    fn remove_old(&self, folder: &Path, manifest: &Manifest) -> Result<()> {
        let needed: std::collections::HashSet<(u64, u64)> =
            manifest.rows.iter().map(|row| (row.id, row.file)).collect();
        let folder_of_filters = filters(folder);
        for found in fs::read_dir(&folder_of_filters).map_err(io(&folder_of_filters))?.flatten() {
            let old = |(id, file)| file < manifest.next_file && !needed.contains(&(id, file));
            if number(&found.path()).is_some_and(old) {
                let _ = fs::remove_file(found.path());
            }
        }
        for (first, path) in segment::list(&logs(folder))? {
            if first < manifest.boundary {
                let _ = fs::remove_file(path);
            }
        }
        Ok(())
    }
}
