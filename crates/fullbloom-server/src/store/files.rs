//! Files of filters: paths, [`FileWriter`], [`NewFile`].
//!
//! Large filters have files of their own, small ones share a bundle: ten thousand small files take 40 seconds to sync, a
//! bundle of as many filters takes one sync. A file name is never reused, so what a crash leaves behind does no harm, and
//! nothing is recorded before it is synced.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use super::entry::{Entry, Place};
use super::{Snapshot, Store};
use crate::budget::Budget;
use crate::fault::{Fault, Result};
use crate::fault_points::reach;
use crate::kind::Kind;

/// The folder of filters.
pub(super) fn filters_dir(folder: &Path) -> PathBuf {
    folder.join("filters")
}

/// The folder of the log.
pub(super) fn log_dir(folder: &Path) -> PathBuf {
    folder.join("log")
}

fn number(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let own = name.strip_suffix(".bloom").and_then(|name| name.split_once('-'));
    own.map_or_else(|| name.strip_suffix(".bundle"), |(_, file)| Some(file))?.parse().ok()
}

/// All filter files with their numbers.
pub(super) fn list_filter_files(folder: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let all = filters_dir(folder);
    let paths = fs::read_dir(&all).map_err(Fault::io(&all))?.flatten().map(|found| found.path());
    Ok(paths.filter_map(|path| Some((number(&path)?, path))).collect())
}

/// Syncs a file, or the names in a folder.
pub(super) fn sync(path: &Path) -> Result<()> {
    File::open(path).and_then(|file| file.sync_all()).map_err(Fault::io(path))
}

pub(super) type Copy = Box<dyn FnOnce() + Send>;

/// Copies filters for a checkpoint, whose own thread runs at low priority.
pub(super) struct Copier(Option<Sender<Copy>>);

impl Copier {
    /// Passes copies to the thread that receives them.
    pub(super) fn new() -> (Self, Receiver<Copy>) {
        let (sender, copies) = channel();
        (Copier(Some(sender)), copies)
    }

    /// Makes copies on the thread that requests them.
    pub(super) fn on_this_thread() -> Self {
        Copier(None)
    }

    /// [`Entry::snapshot`].
    pub(super) fn snapshot(&self, entry: &Arc<Entry>, budget: &Arc<Budget>) -> Result<Arc<Snapshot>> {
        let asked = self.0.as_ref().and_then(|copies| {
            let (done, copied) = channel();
            let (entry, budget) = (entry.clone(), budget.clone());
            copies.send(Box::new(move || drop(done.send(entry.snapshot(&budget))))).ok()?;
            copied.recv().ok()
        });
        asked.unwrap_or_else(|| entry.snapshot(budget))
    }
}

/// Filters with at most this many bytes of cells go into the bundle.
pub(super) const SMALL: u64 = 16 << 10;

/// What a checkpoint wrote.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteSummary {
    /// The number of files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Writes filters to disk. Removes unfinished files when it is dropped.
pub(super) struct FileWriter<'a> {
    folder: &'a Path,
    next_file: &'a AtomicU64,
    budget: &'a Arc<Budget>,
    copier: &'a Copier,
    bundle: Option<Bundle>,
    paths: Vec<PathBuf>,
    written: Vec<(Arc<Entry>, u64, Place)>,
    pub(super) done: WriteSummary,
}

struct Bundle {
    file: u64,
    path: PathBuf,
    out: BufWriter<File>,
    len: u64,
}

/// A new file that only its owner can read.
fn create(path: &Path) -> Result<BufWriter<File>> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let opened = || {
        reach("file.create", path)?;
        let file = options.open(path)?;
        reach("file.created", path)?;
        Ok(file)
    };
    Ok(BufWriter::with_capacity(1 << 16, opened().map_err(Fault::io(path))?))
}

/// Passes a filter to the kernel; returns its length in bytes.
fn write(out: &mut BufWriter<File>, path: &Path, filter: &dyn Kind) -> Result<u64> {
    let container = filter.container();
    let head = container.head()?;
    let written =
        container.write_with(&head, out).and_then(|()| out.flush()).and_then(|()| reach("file.written", path));
    written.map_err(Fault::io(path))?;
    Ok(container.nbytes() as u64)
}

impl<'a> FileWriter<'a> {
    pub(super) fn new(folder: &'a Path, next_file: &'a AtomicU64, budget: &'a Arc<Budget>, copier: &'a Copier) -> Self {
        let (paths, written) = (Vec::new(), Vec::new());
        FileWriter { folder, next_file, budget, copier, bundle: None, paths, written, done: WriteSummary::default() }
    }

    fn number(&self) -> u64 {
        self.next_file.fetch_add(1, Ordering::Relaxed)
    }

    /// Writes `filter` to its own file; returns the number of the file.
    pub(super) fn write_own(&mut self, id: u64, filter: &dyn Kind) -> Result<u64> {
        let file = self.number();
        self.write_own_as(file, id, filter)?;
        Ok(file)
    }

    /// Writes `filter` to the file with an unused number.
    pub(super) fn write_own_as(&mut self, file: u64, id: u64, filter: &dyn Kind) -> Result<()> {
        let path = Place::own(file).path(self.folder, id);
        let mut out = create(&path)?;
        self.paths.push(path.clone());
        self.done.bytes += write(&mut out, &path, filter)?;
        self.done.files += 1;
        Ok(())
    }

    /// Writes a filter in its current state: from a copy if there is memory for one, so that changes do not wait for
    /// the disk.
    pub(super) fn add(&mut self, entry: &Arc<Entry>) -> Result<()> {
        let small = entry.nbytes() <= SMALL;
        let lsn = || entry.lsn.load(Ordering::Relaxed);
        let (lsn, place) = if small {
            entry.with_whole(|filter| (lsn(), self.write_bundled(filter)))
        } else {
            match self.copier.snapshot(entry, self.budget) {
                Ok(copy) => (copy.lsn, self.write_own(entry.id, copy.filter()).map(Place::own)),
                Err(_) => entry.with_whole(|filter| (lsn(), self.write_own(entry.id, filter).map(Place::own))),
            }
        };
        self.written.push((entry.clone(), lsn, place?));
        Ok(())
    }

    fn write_bundled(&mut self, filter: &dyn Kind) -> Result<Place> {
        let bundle = match &mut self.bundle {
            Some(bundle) => bundle,
            none => {
                let file = self.next_file.fetch_add(1, Ordering::Relaxed);
                let path = Place { file, at: 0, len: 1 }.path(self.folder, 0);
                let out = create(&path)?;
                self.paths.push(path.clone());
                self.done.files += 1;
                none.insert(Bundle { file, out, path, len: 0 })
            }
        };
        let len = write(&mut bundle.out, &bundle.path, filter)?;
        let place = Place { file: bundle.file, at: bundle.len, len };
        bundle.len += len;
        self.done.bytes += len;
        Ok(place)
    }

    /// Syncs everything, and records it.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.bundle = None;
        let wrong = Fault::io(self.folder);
        reach("files.sync", self.folder).map_err(&wrong)?;
        self.paths.iter().try_for_each(|path| sync(path))?;
        sync(&filters_dir(self.folder))?;
        reach("files.synced", self.folder).map_err(&wrong)?;
        self.paths.clear();
        for (entry, lsn, place) in self.written.drain(..) {
            entry.record_saved(lsn, place);
        }
        Ok(())
    }
}

impl Drop for FileWriter<'_> {
    fn drop(&mut self) {
        for path in &self.paths {
            let _ = fs::remove_file(path);
        }
    }
}

/// A file that no log record names yet. Checkpoints keep it. It is removed when this is dropped, unless a record names
/// it.
pub(super) struct NewFile<'a> {
    store: &'a Store,
    pub(super) number: u64,
    path: PathBuf,
    is_recorded: bool,
}

impl Store {
    /// Writes a filter to its own file, synced when this returns; `None` without a folder. Needs no lock.
    pub(super) fn write_new(&self, id: u64, filter: &dyn Kind) -> Result<Option<NewFile<'_>>> {
        let Some(folder) = &self.options.folder else { return Ok(None) };
        let number = {
            let mut new_files = self.new_files.lock();
            let number = self.next_file.fetch_add(1, Ordering::Relaxed);
            new_files.insert(number);
            number
        };
        let file = NewFile { store: self, number, path: Place::own(number).path(folder, id), is_recorded: false };
        let here = Copier::on_this_thread();
        let mut writing = FileWriter::new(folder, &self.next_file, &self.budget, &here);
        writing.write_own_as(number, id, filter)?;
        writing.finish()?;
        Ok(Some(file))
    }

    /// The numbers of the files that no record names yet, and the next number, at one moment.
    pub(super) fn unrecorded_files(&self) -> (BTreeSet<u64>, u64) {
        let new_files = self.new_files.lock();
        (new_files.clone(), self.next_file.load(Ordering::Relaxed))
    }
}

impl NewFile<'_> {
    /// Keeps the file, because a record names it.
    pub(super) fn keep(&mut self) {
        self.is_recorded = true;
    }
}

impl Drop for NewFile<'_> {
    fn drop(&mut self) {
        if !self.is_recorded {
            let _ = fs::remove_file(&self.path);
        }
        self.store.new_files.lock().remove(&self.number);
    }
}
