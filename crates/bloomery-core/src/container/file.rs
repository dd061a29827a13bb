//! Files on disk: atomic save, mapping, one writer at a time.

use memmap2::{Mmap, MmapMut};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::header::{Container, Parsed};
use crate::error::{Error, Result};

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Mapped, shared with every reader, never written.
    Read,
    /// Mapped for writing in place, one writer at a time.
    ReadWrite,
}

/// Writes `container` to `path` so that the path always names the old file or the new one, whole:
/// temporary file in the same directory, fsync, rename, fsync of the directory.
pub fn save(container: &Container<'_>, path: &Path) -> Result<()> {
    let temporary = temporary_beside(path);
    let written = write_new(container, &temporary, path).and_then(|()| fs::rename(&temporary, path));
    if let Err(e) = written {
        let _ = fs::remove_file(&temporary);
        return Err(Error::io(e, path));
    }
    sync_directory(path).map_err(|e| Error::io(e, path))
}

fn temporary_beside(path: &Path) -> PathBuf {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.{serial}.tmp", std::process::id()))
}

fn write_new(container: &Container<'_>, temporary: &Path, path: &Path) -> std::io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).open(temporary)?;
    // A replaced file keeps its permissions.
    if let Ok(old) = fs::metadata(path) {
        file.set_permissions(old.permissions())?;
    }
    let mut out = BufWriter::with_capacity(1 << 16, &file);
    container.write_to(&mut out)?;
    out.flush()?;
    drop(out);
    file.sync_all()
}

fn sync_directory(path: &Path) -> std::io::Result<()> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

fn regular(file: &File, path: &Path) -> Result<()> {
    let metadata = file.metadata().map_err(|e| Error::io(e, path))?;
    if metadata.is_file() {
        return Ok(());
    }
    Err(Error::format(format!("{}: not a regular file, so not a bloomery file", path.display())))
}

/// Header and tables of `path`, read rather than mapped: a first fault on a cold mapping drags in
/// megabytes of read-ahead (4 ms for an open that takes 0.2 ms this way).
pub fn parse(path: &Path) -> Result<(File, Parsed)> {
    let mut file = File::open(path).map_err(|e| Error::io(e, path))?;
    regular(&file, path)?;
    let len = file.metadata().map_err(|e| Error::io(e, path))?.len();
    let len = usize::try_from(len).map_err(|_| Error::format("the file is longer than this machine's memory"))?;
    let mut head = Vec::new();
    // Two reads at most: the fixed part with a page's worth of tables, then the rest of long ones.
    for wanted in [4096, usize::MAX] {
        let wanted = wanted.min(Parsed::head_len(&head).max(4096)) - head.len();
        (&mut file).take(wanted as u64).read_to_end(&mut head).map_err(|e| Error::io(e, path))?;
    }
    let parsed = Parsed::from_head(&head, len)?;
    Ok((file, parsed))
}

/// Maps an open `file`, for random access.
pub fn map(file: &File, path: &Path) -> Result<Mmap> {
    // SAFETY: a mapping is memory that other processes can change. Writers of this library hold a
    // lock and only ever set bits; files are replaced by rename, which leaves mappings alone. A
    // file truncated by someone else raises SIGBUS on access: documented at `open`.
    let map = unsafe { Mmap::map(file) }.map_err(|e| Error::io(e, path))?;
    // Advice only: lookups touch one page each, and read-ahead would fetch megabytes.
    #[cfg(unix)]
    let _ = map.advise(memmap2::Advice::Random);
    Ok(map)
}

/// A file held open for writing in place; the lock lives as long as the value.
///
/// A forked child inherits the value but not the right: [`Writer::is_ours`] is false there.
pub struct Writer {
    file: File,
    process: u32,
    path: PathBuf,
}

impl Writer {
    /// Opens and locks `path`; a second writer is refused.
    pub fn open(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(|e| Error::io(e, path))?;
        regular(&file, path)?;
        match file.try_lock() {
            Ok(()) => Ok(Writer { file, process: std::process::id(), path: path.to_owned() }),
            Err(TryLockError::WouldBlock) => Err(Error::io(
                std::io::Error::new(
                    std::io::ErrorKind::WouldBlock,
                    "another writer has the filter open; only one may write in place",
                ),
                path,
            )),
            Err(TryLockError::Error(e)) => Err(Error::io(e, path)),
        }
    }

    /// True in the process that opened the file.
    pub fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }

    /// True when `path` names the file this writer holds.
    pub fn holds(&self, path: &Path) -> bool {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let id = |m: fs::Metadata| (m.dev(), m.ino());
            self.file.metadata().ok().map(id) == fs::metadata(path).ok().map(id)
        }
        #[cfg(not(unix))]
        {
            fs::canonicalize(&self.path).ok() == fs::canonicalize(path).ok()
        }
    }

    /// Gives up the lock, which a mapping of the file would otherwise keep.
    pub fn release(self) {
        if self.is_ours() {
            // Nothing can be done about a failure, and the lock ends with the process at latest.
            let _ = self.file.unlock();
        }
    }

    /// Maps the file, shared and writable.
    pub fn map(&self) -> Result<MmapMut> {
        // SAFETY: as for `map`; the lock keeps other writers of this library out.
        unsafe { MmapMut::map_mut(&self.file) }.map_err(|e| Error::io(e, &self.path))
    }

    /// Overwrites the first bytes of the file and waits for the disk.
    pub fn write_head(&self, head: &[u8]) -> Result<()> {
        #[cfg(unix)]
        let written = std::os::unix::fs::FileExt::write_all_at(&self.file, head, 0);
        #[cfg(not(unix))]
        let written = {
            use std::io::{Seek, SeekFrom};
            (&self.file).seek(SeekFrom::Start(0)).and_then(|_| (&self.file).write_all(head))
        };
        written.and_then(|()| self.file.sync_all()).map_err(|e| Error::io(e, &self.path))
    }
}
