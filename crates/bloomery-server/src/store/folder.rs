//! The folder of a store: where its parts lie, and what a fault of one is called.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::fault::{Code, Fault, Result};

/// The folder of filters.
pub(super) fn filters(folder: &Path) -> PathBuf {
    folder.join("filters")
}

/// The folder of the log.
pub(super) fn logs(folder: &Path) -> PathBuf {
    folder.join("log")
}

/// What the system refused, with the path.
pub(super) fn io(path: &Path) -> impl Fn(std::io::Error) -> Fault {
    move |error| Fault::new(Code::Io, format!("{}: {error}", path.display()))
}

/// Has a file, or the names in a folder, on disk.
pub(super) fn sync(path: &Path) -> Result<()> {
    File::open(path).and_then(|file| file.sync_all()).map_err(io(path))
}
