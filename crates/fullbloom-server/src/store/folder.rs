//! The folder of a store: where its parts lie, and what a fault of one is called.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::fault::{Fault, Result};

/// The folder of filters.
pub(super) fn filters(folder: &Path) -> PathBuf {
    folder.join("filters")
}

/// The folder of the log.
pub(super) fn logs(folder: &Path) -> PathBuf {
    folder.join("log")
}

/// The number of a file of filters.
fn number(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let own = name.strip_suffix(".bloom").and_then(|name| name.split_once('-'));
    own.map_or_else(|| name.strip_suffix(".bundle"), |(_, file)| Some(file))?.parse().ok()
}

/// All files of filters with their numbers.
pub(super) fn numbered(folder: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let all = filters(folder);
    let paths = fs::read_dir(&all).map_err(Fault::io(&all))?.flatten().map(|found| found.path());
    Ok(paths.filter_map(|path| Some((number(&path)?, path))).collect())
}

/// Has a file, or the names in a folder, on disk.
pub(super) fn sync(path: &Path) -> Result<()> {
    File::open(path).and_then(|file| file.sync_all()).map_err(Fault::io(path))
}
