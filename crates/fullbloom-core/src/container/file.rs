//! Files on disk: reading, mapping, one writer at a time.

use memmap2::{Mmap, MmapMut};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::header::{ContainerIndex, Verify};
use crate::error::{Error, Result, display_name};

/// After so many attempts the path still names another file: give up.
const ATTEMPTS: u32 = 100;
/// Attempts to take a lock before its holder counts as a writer, and the time between them: on a busy machine a save
/// may pause between renaming the file and releasing it.
const LOCK_ATTEMPTS: u32 = 250;
const LOCK_PAUSE: Duration = Duration::from_millis(1);

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Mapped, shared with every reader, never written.
    Read,
    /// Mapped for writing in place, one writer at a time.
    ReadWrite,
}

fn regular(file: &File, path: &Path) -> Result<()> {
    let metadata = file.metadata().map_err(|e| Error::io(e, path))?;
    if metadata.is_file() {
        return Ok(());
    }
    Err(irregular(path))
}

fn irregular(path: &Path) -> Error {
    Error::format(format!("{}: not a regular file, so not a fullbloom file", display_name(path)))
}

/// True if `path` names the open `file`.
pub(super) fn is_same(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let id = |m: fs::Metadata| (m.dev(), m.ino());
        file.metadata().map(id).ok().is_some_and(|ours| fs::metadata(path).map(id).ok() == Some(ours))
    }
    // On other systems an open file keeps its name.
    #[cfg(not(unix))]
    {
        file.metadata().is_ok() && path.exists()
    }
}

/// A file that is open for reading. Its header and its cells are read through one descriptor, so that they belong
/// together whatever the path names by now.
pub struct OpenFile {
    file: File,
    /// Its header and tables.
    pub parsed: ContainerIndex,
}

impl OpenFile {
    /// Opens `path` and reads its header and tables.
    pub fn new(path: &Path) -> Result<Self> {
        // Opening a pipe would wait for its writer.
        if fs::metadata(path).map_err(|e| Error::io(e, path))?.is_file() {
            return Self::of(File::open(path).map_err(|e| Error::io(e, path))?, path);
        }
        Err(irregular(path))
    }

    /// Reads the header and tables of `file`, which was opened as `path`.
    pub fn of(file: File, path: &Path) -> Result<Self> {
        Ok(OpenFile { parsed: parse(&file, path)?, file })
    }

    /// Maps the file.
    pub fn map(&self, path: &Path) -> Result<Mmap> {
        map(&self.file, path)
    }

    /// Maps the file, which may have been truncated since its length was read, and checks its sections as far as `verify`
    /// says.
    pub fn map_sections(&self, path: &Path, verify: Verify) -> Result<Arc<Mmap>> {
        let map = self.map(path)?;
        if self.parsed.sections.iter().any(|span| span.offset + span.len > map.len()) {
            return Err(Error::format("the file was cut short while it was opened"));
        }
        if verify == Verify::Full {
            self.parsed.check_payload(&map)?;
        }
        Ok(Arc::new(map))
    }
}

/// Header and tables, read rather than mapped: a first fault on a cold mapping reads megabytes ahead (4 ms for an open
/// that takes 0.2 ms this way).
fn parse(file: &File, path: &Path) -> Result<ContainerIndex> {
    let (mut head, len) = head_of(file, path)?;
    let mut parsed = ContainerIndex::from_head(&head, len);
    for _ in 0..ATTEMPTS {
        if !matches!(parsed, Err(Error::Format(_))) {
            break;
        }
        // A writer may be changing the head while it is read: it is damaged if it stays like that.
        let (again, len) = head_of(file, path)?;
        if again == head {
            break;
        }
        parsed = ContainerIndex::from_head(&again, len);
        head = again;
    }
    parsed
}

/// The first bytes of `file` and its length.
fn head_of(mut file: &File, path: &Path) -> Result<(Vec<u8>, usize)> {
    regular(file, path)?;
    let read = || {
        let len = file.metadata()?.len();
        file.seek(SeekFrom::Start(0))?;
        let mut head = Vec::new();
        // Two reads at most: the fixed part with a page's worth of tables, then the rest of long ones.
        for wanted in [4096, usize::MAX] {
            let wanted = wanted.min(ContainerIndex::head_len(&head).max(4096)).saturating_sub(head.len());
            file.take(wanted as u64).read_to_end(&mut head)?;
        }
        Ok((head, len))
    };
    let (head, len) = { read }().map_err(|e| Error::io(e, path))?;
    let len = usize::try_from(len).map_err(|_| Error::format("the file is longer than this machine's memory"))?;
    Ok((head, len))
}

/// Maps an open `file`, for random access.
fn map(file: &File, path: &Path) -> Result<Mmap> {
    // SAFETY: a mapping is memory that other processes can change. Writers of this library hold a
    // lock and only ever set bits; files are replaced by rename, which leaves mappings alone. A
    // file truncated by someone else raises SIGBUS on access: documented at `open`.
    let map = unsafe { Mmap::map(file) }.map_err(|e| Error::io(e, path))?;
    // Advice only: lookups touch one page each, and read-ahead would fetch megabytes.
    #[cfg(unix)]
    let _ = map.advise(memmap2::Advice::Random);
    Ok(map)
}

/// Takes the writer's lock.
fn lock(file: &File, path: &Path) -> Result<()> {
    for attempt in 1.. {
        match file.try_lock() {
            Ok(()) => break,
            // A save that has just put the file there holds it for some microseconds, if nothing holds it up.
            Err(TryLockError::WouldBlock) if attempt < LOCK_ATTEMPTS => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::WouldBlock) => {
                let why = "another writer has the filter open; only one may write in place";
                return Err(Error::io(std::io::Error::new(ErrorKind::WouldBlock, why), path));
            }
            Err(TryLockError::Error(e)) => return Err(Error::io(e, path)),
        }
    }
    Ok(())
}

/// A file open for writing in place; the lock lives as long as the value, however that ends.
///
/// A forked child inherits the value but not the right: [`Writer::is_ours`] is false there.
pub struct Writer {
    file: File,
    process: u32,
    path: PathBuf,
}

impl Writer {
    /// Opens and locks the file that `path` names; a second writer is refused.
    pub fn open(path: &Path) -> Result<Self> {
        // Flushing checks later which file the path names, from any directory.
        let path = std::path::absolute(path).map_err(|e| Error::io(e, path))?;
        for _ in 0..ATTEMPTS {
            if fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
                return Err(irregular(&path));
            }
            let file = OpenOptions::new().read(true).write(true).open(&path).map_err(|e| Error::io(e, &path))?;
            regular(&file, &path)?;
            lock(&file, &path)?;
            // If the file was replaced between the two calls, the lock is on a deleted file.
            if is_same(&file, &path) {
                let writer = Writer { file, process: std::process::id(), path };
                #[cfg(unix)]
                writer.fill_holes().map_err(|e| Error::io(e, &writer.path))?;
                return Ok(writer);
            }
        }
        Err(Error::io(
            std::io::Error::new(ErrorKind::ResourceBusy, "is being replaced over and over; try later"),
            &path,
        ))
    }

    /// Length of the file in bytes.
    pub fn file_len(&self) -> Result<u64> {
        self.file.metadata().map(|found| found.len()).map_err(|e| Error::io(e, &self.path))
    }

    /// Header and tables of the file.
    pub fn parse(&self) -> Result<ContainerIndex> {
        parse(&self.file, &self.path)
    }

    /// Refuses to vouch for a file that its path does not name any more.
    pub fn check_named(&self) -> Result<()> {
        if is_same(&self.file, &self.path) {
            return Ok(());
        }
        let why = "was replaced or removed while the filter was open for writing in place, so that no file of that \
                   name has the keys added since; save() the filter to keep them";
        Err(Error::io(std::io::Error::new(ErrorKind::NotFound, why), &self.path))
    }

    /// True in the process that opened the file.
    pub fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }

    /// True if `path` names the file of this writer.
    pub fn holds(&self, path: &Path) -> bool {
        #[cfg(unix)]
        {
            is_same(&self.file, path)
        }
        #[cfg(not(unix))]
        {
            fs::canonicalize(&self.path).is_ok_and(|ours| fs::canonicalize(path).is_ok_and(|theirs| ours == theirs))
        }
    }

    /// Releases the lock, which a mapping of the file would otherwise hold.
    pub fn release(self) {
        drop(self);
    }

    /// Maps the file, for reading.
    pub fn map(&self) -> Result<Mmap> {
        map(&self.file, &self.path)
    }

    /// Has the disk allocate the holes of the file: on a full disk, touching one through a mapping would end in a
    /// signal (on a file system in memory, reading one as well).
    #[cfg(unix)]
    fn fill_holes(&self) -> std::io::Result<()> {
        use std::os::unix::fs::{FileExt, MetadataExt};
        let (found, mut page) = (self.file.metadata()?, [0; 4096]);
        if found.blocks() * 512 >= found.len() {
            return Ok(());
        }
        for at in (0..found.len()).step_by(page.len()) {
            let part = &mut page[..4096.min(found.len() - at) as usize];
            self.file.read_exact_at(part, at)?;
            if part.iter().all(|&byte| byte == 0) {
                self.file.write_all_at(part, at)?;
            }
        }
        Ok(())
    }

    /// Maps the file, shared and writable.
    pub fn map_mut(&self) -> Result<MmapMut> {
        // SAFETY: as for `map`; the lock keeps other writers of this library out.
        unsafe { MmapMut::map_mut(&self.file) }.map_err(|e| Error::io(e, &self.path))
    }

    /// Overwrites the first bytes of the file and waits for the disk.
    pub fn write_head(&self, head: &[u8]) -> Result<()> {
        #[cfg(unix)]
        let written = std::os::unix::fs::FileExt::write_all_at(&self.file, head, 0);
        #[cfg(not(unix))]
        let written = {
            use std::io::Write;
            (&self.file).seek(SeekFrom::Start(0)).and_then(|_| (&self.file).write_all(head))
        };
        written.and_then(|()| self.file.sync_all()).map_err(|e| Error::io(e, &self.path))
    }
}

impl Drop for Writer {
    /// Closing alone would leave the lock to a process that was forked in the meantime, for as long as it lives.
    fn drop(&mut self) {
        if self.is_ours() {
            // Nothing can be done about a failure, and the lock ends with the process at latest.
            let _ = self.file.unlock();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_writer_leaves_no_lock_to_a_process_that_shares_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, [1_u8; 64]).unwrap();
        let writer = Writer::open(&path).unwrap();
        // As a forked child has it.
        let inherited = writer.file.try_clone().unwrap();
        drop(writer);
        assert!(Writer::open(&path).is_ok());
        drop(inherited);
    }
}
