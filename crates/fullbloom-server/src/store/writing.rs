//! [`Writing`]: filters on their way to disk, large ones to files of their own, small ones to a bundle of many: ten
//! thousand small files take 40 seconds to be synced, a bundle of as many filters one sync.
//!
//! A name is never used twice, so what a crash leaves harms nothing, and nothing is noted before it is synced.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::copier::Copier;
use super::entry::{Entry, Place};
use super::folder::{filters, sync};
use crate::budget::Budget;
use crate::fault::{Fault, Result};
use crate::fault_points::reach;
use crate::kind::Kind;

/// Bytes of cells up to which a filter goes to the bundle.
pub(super) const SMALL: u64 = 16 << 10;

/// What a checkpoint did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    /// Files written.
    pub files: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// See the head of this file. What is not finished is removed.
pub(super) struct Writing<'a> {
    folder: &'a Path,
    next_file: &'a AtomicU64,
    budget: &'a Arc<Budget>,
    copier: &'a Copier,
    bundle: Option<Bundle>,
    paths: Vec<PathBuf>,
    written: Vec<(Arc<Entry>, u64, Place)>,
    pub(super) done: Done,
}

struct Bundle {
    file: u64,
    path: PathBuf,
    out: BufWriter<File>,
    len: u64,
}

/// A new file that only its owner reads.
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

/// Hands a filter to the kernel: its bytes.
fn write(out: &mut BufWriter<File>, path: &Path, filter: &dyn Kind) -> Result<u64> {
    let container = filter.container();
    let head = container.head()?;
    let written =
        container.write_with(&head, out).and_then(|()| out.flush()).and_then(|()| reach("file.written", path));
    written.map_err(Fault::io(path))?;
    Ok(container.nbytes() as u64)
}

impl<'a> Writing<'a> {
    pub(super) fn new(folder: &'a Path, next_file: &'a AtomicU64, budget: &'a Arc<Budget>, copier: &'a Copier) -> Self {
        let (paths, written) = (Vec::new(), Vec::new());
        Writing { folder, next_file, budget, copier, bundle: None, paths, written, done: Done::default() }
    }

    fn number(&self) -> u64 {
        self.next_file.fetch_add(1, Ordering::Relaxed)
    }

    /// Writes `filter` to a file of its own: its number.
    pub(super) fn own(&mut self, id: u64, filter: &dyn Kind) -> Result<u64> {
        let file = self.number();
        self.own_as(file, id, filter)?;
        Ok(file)
    }

    /// Writes `filter` to the file of a number that no other has.
    pub(super) fn own_as(&mut self, file: u64, id: u64, filter: &dyn Kind) -> Result<()> {
        let path = Place::own(file).path(self.folder, id);
        let mut out = create(&path)?;
        self.paths.push(path.clone());
        self.done.bytes += write(&mut out, &path, filter)?;
        self.done.files += 1;
        Ok(())
    }

    /// Writes a filter as it is now, from a copy where there is memory for one, so that changes do not wait for the disk.
    pub(super) fn add(&mut self, entry: &Arc<Entry>) -> Result<()> {
        let small = entry.counted.load(Ordering::Relaxed) <= SMALL;
        let lsn = || entry.lsn.load(Ordering::Relaxed);
        let (lsn, place) = if small {
            entry.over(|filter| (lsn(), self.bundled(filter)))
        } else {
            match self.copier.snapshot(entry, self.budget) {
                Ok(copy) => (copy.lsn, self.own(entry.id, copy.filter()).map(Place::own)),
                Err(_) => entry.over(|filter| (lsn(), self.own(entry.id, filter).map(Place::own))),
            }
        };
        self.written.push((entry.clone(), lsn, place?));
        Ok(())
    }

    fn bundled(&mut self, filter: &dyn Kind) -> Result<Place> {
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

    /// Has everything on disk, and notes it.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.bundle = None;
        let wrong = Fault::io(self.folder);
        reach("files.sync", self.folder).map_err(&wrong)?;
        self.paths.iter().try_for_each(|path| sync(path))?;
        sync(&filters(self.folder))?;
        reach("files.synced", self.folder).map_err(&wrong)?;
        self.paths.clear();
        for (entry, lsn, place) in self.written.drain(..) {
            entry.note_saved(lsn, place);
        }
        Ok(())
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        for path in &self.paths {
            let _ = fs::remove_file(path);
        }
    }
}
