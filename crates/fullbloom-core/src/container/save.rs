//! Saving is atomic: the path names the old file or the new one, and no other file remains.
//!
//! A file is written under a random name beside its target, locked, and renamed once it is on the disk. The lock shows
//! that its writer is alive. A file that a killed writer left is not locked, and the next save in the directory removes
//! it.

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::file::is_same;
use super::header::Container;
use crate::error::{Error, Result};

const PREFIX: &str = ".fullbloom-";
const SUFFIX: &str = ".tmp";
/// Hexadecimal digits between them.
const DIGITS: usize = 32;
/// Entries of a directory that are searched for leftovers: a millisecond at most.
const LOOKED_THROUGH: usize = 4096;
/// Names are random, so a second collision does not happen.
const ATTEMPTS: u32 = 100;

/// Writes `container` to `path`, or to the file that the link `path` leads to, so that the path always names the
/// old file or the new one, whole: temporary file in the same directory, fsync, rename, fsync of the directory.
pub fn save(container: &Container<'_>, path: &Path) -> Result<()> {
    let head = container.head()?;
    let saved = target(path).and_then(|(target, old)| {
        remove_leftovers(directory(&target));
        let temporary = Temporary::create_beside(&target, old.is_some())?;
        let written = temporary.write(container, &head, old).and_then(|()| fs::rename(&temporary.path, &target));
        if let Err(error) = written {
            let _ = fs::remove_file(&temporary.path);
            return Err(error);
        }
        // Immediately, because the next process that opens the file for writing needs this lock.
        drop(temporary);
        sync_directory(directory(&target))
    });
    saved.map_err(|error| Error::io(error, path))
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Waits until the names in a directory are on the disk, if the system opens it: the file has its name in any case.
fn sync_directory(path: &Path) -> io::Result<()> {
    match File::open(path) {
        // Windows opens no directory as a file, and Unix none that may be written but not read.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
        opened => opened?.sync_all(),
    }
}

/// The file to write, with links followed, and the metadata of the existing one.
fn target(path: &Path) -> io::Result<(PathBuf, Option<Metadata>)> {
    // The kernel follows first: it refuses links that other users have placed in a shared directory.
    match fs::metadata(path) {
        Ok(old) if old.is_file() => Ok((fs::canonicalize(path)?, Some(old))),
        #[cfg(unix)]
        Ok(other) if other.is_dir() => Err(io::Error::from_raw_os_error(21)), // EISDIR: IsADirectoryError in Python
        Ok(_) => Err(io::Error::new(
            ErrorKind::InvalidInput,
            "is a device, a pipe or a directory, which saving would replace; save to a file, or write to_bytes() to it",
        )),
        Err(error) if error.kind() == ErrorKind::NotFound => match fs::symlink_metadata(path) {
            Ok(_) => Err(io::Error::new(
                ErrorKind::NotFound,
                "is a link to a file that does not exist; remove the link, or save to that file",
            )),
            Err(_) if path.as_os_str().is_empty() => Err(error),
            Err(_) => Ok((path.to_owned(), None)),
        },
        Err(error) => Err(error),
    }
}

/// A file that is being written, and locked.
struct Temporary {
    file: File,
    path: PathBuf,
}

impl Temporary {
    /// A new file in the directory of `target`: private to its writer if it replaces one, whose mode it gets later;
    /// otherwise with the default mode.
    fn create_beside(target: &Path, replaces: bool) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, if replaces { 0o600 } else { 0o666 });
        #[cfg(not(unix))]
        let _ = replaces; // there are no modes
        for _ in 0..ATTEMPTS {
            let path = target.with_file_name(name());
            let file = match options.open(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                opened => opened?,
            };
            // Another save may have removed it between the two calls.
            if !matches!(file.try_lock(), Err(TryLockError::WouldBlock)) && is_same(&file, &path) {
                return Ok(Temporary { file, path });
            }
        }
        Err(io::Error::new(ErrorKind::AlreadyExists, "no temporary file can be made in the directory"))
    }

    /// Everything, on the disk, with owner and mode of the file it replaces.
    fn write(&self, container: &Container<'_>, head: &[u8], old: Option<Metadata>) -> io::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 16, &self.file);
        container.write_with(head, &mut out)?;
        out.flush()?;
        drop(out);
        if let Some(old) = old {
            #[cfg(unix)]
            {
                use std::os::unix::fs::{MetadataExt, fchown};
                // Only root may, and only root needs it.
                let _ = fchown(&self.file, Some(old.uid()), Some(old.gid()));
            }
            self.file.set_permissions(old.permissions())?;
        }
        self.file.sync_all()
    }
}

impl Drop for Temporary {
    /// Closing alone would leave the lock to a process that was forked in the meantime, for as long as it lives.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// A unique name that nobody can predict.
fn name() -> String {
    // The system's random generator supplies the keys of this hasher; a forked process has those of its parent.
    let word = || {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u32(std::process::id());
        hasher.finish()
    };
    format!("{PREFIX}{:016x}{:016x}{SUFFIX}", word(), word())
}

fn is_ours(name: &str) -> bool {
    let digits = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX));
    digits
        .is_some_and(|digits| digits.len() == DIGITS && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
}

/// Removes the files of killed writers. Errors are ignored: they are not worth a failed save.
fn remove_leftovers(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.take(LOOKED_THROUGH).flatten() {
        if entry.file_name().to_str().is_some_and(is_ours) {
            let _ = remove_leftover(&entry.path());
        }
    }
}

fn remove_leftover(path: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Ok(());
    }
    // Open for writing too, so that this does not block on a pipe that appeared in the meantime.
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    if file.try_lock().is_ok() && is_same(&file, path) { fs::remove_file(path) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_ours_and_of_no_one_else() {
        let (one, two) = (name(), name());
        assert!(one != two && is_ours(&one) && is_ours(&two));
        for other in ["", ".fullbloom-.tmp", "fullbloom-0.tmp", &one[1..], &one[..one.len() - 1], &one.to_uppercase()] {
            assert!(!is_ours(other), "{other}");
        }
    }
}
