//! [`Salvage`]: what to do about damaged or missing parts. By default a start refuses to continue, and names the part;
//! with `--salvage` it reports what it skips, and keeps the file in `damaged/`.

use std::fs;
use std::path::{Path, PathBuf};

use super::files::sync;
use crate::fault::{Code, Fault, Result};

/// What a start skips.
pub(super) struct Salvage {
    folder: PathBuf,
    /// True continues without damaged parts.
    pub(super) enabled: bool,
    /// The parts that were skipped.
    pub(super) skipped: Vec<String>,
}

impl Salvage {
    pub(super) fn new(folder: &Path, enabled: bool) -> Self {
        Salvage { folder: folder.to_owned(), enabled, skipped: Vec::new() }
    }

    /// Refuses to continue without a part; or records that it is skipped, and keeps a copy of its file. The file stays
    /// in place until the checkpoint at the end of the start, so a crash before that changes nothing.
    pub(super) fn skip(&mut self, file: Option<&Path>, what: String) -> Result<()> {
        if !self.enabled {
            let text = format!("{what}; restore a backup, or start with --salvage to go on without it");
            return Err(Fault::new(Code::Format, text));
        }
        if let Some(file) = file.filter(|file| file.exists()) {
            self.keep_copy(file).map_err(Fault::io(&self.folder.join("damaged")))?;
        }
        self.skipped.push(what);
        Ok(())
    }

    fn keep_copy(&self, file: &Path) -> std::io::Result<()> {
        let aside = self.folder.join("damaged");
        fs::create_dir_all(&aside)?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let free = |number: &usize| !aside.join(add_number(&name, *number)).exists();
        let copy = aside.join(add_number(&name, (0..).find(free).unwrap_or(0)));
        // Files here are replaced, never changed, so a hard link is as good as a copy.
        fs::hard_link(file, &copy).or_else(|_| fs::copy(file, &copy).map(drop))?;
        sync(&copy).and_then(|()| sync(&aside)).map_err(std::io::Error::other)
    }
}

/// The name of the copy with this number.
fn add_number(name: &str, number: usize) -> String {
    if number == 0 { name.to_string() } else { format!("{name}.{number}") }
}
