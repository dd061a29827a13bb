//! Files and bytes of other programs as sources, which are read once.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use fullbloom_core::container::header::MAGIC;
use fullbloom_core::error::{Error, Result};
use fullbloom_core::foreign::source::Source;

/// The file at `path` from its first byte on.
pub(super) fn of_file(path: &Path) -> Result<Source<'static>> {
    let (file, len) = open(path)?;
    Source::new(file, len).map_err(|error| Error::io(error, path))
}

/// A file that was opened.
pub(crate) enum AnyFile {
    /// It begins as ours do. It must be read from its first byte on.
    Ours(File),
    /// It does not.
    Theirs(Source<'static>),
}

/// Opens the file at `path`, and reads its first bytes.
pub(crate) fn open_any(path: &Path) -> Result<AnyFile> {
    let (mut file, len) = open(path)?;
    let failed = |error| Error::io(error, path);
    let mut first = Vec::new();
    (&mut file).take(MAGIC.len() as u64).read_to_end(&mut first).map_err(failed)?;
    if first == MAGIC {
        return Ok(AnyFile::Ours(file));
    }
    Source::new(std::io::Cursor::new(first).chain(file), len).map(AnyFile::Theirs).map_err(failed)
}

/// A regular file, and its length.
fn open(path: &Path) -> Result<(File, u64)> {
    let failed = |error| Error::io(error, path);
    // Opening a pipe would wait for its writer.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(Error::format("not a regular file, so not a filter"));
    }
    let file = File::open(path).map_err(failed)?;
    let len = file.metadata().map_err(failed)?.len();
    Ok((file, len))
}
