//! A copy of the store on a running service.

use std::fs::{self, File};
use std::path::Path;

use super::Store;
use super::checkpoint::{Done, filters, logs, path};
use super::manifest::Manifest;
use crate::fault::{Code, Fault, Result};

fn io(path: &Path) -> impl Fn(std::io::Error) -> Fault {
    move |error| Fault::new(Code::Io, format!("{}: {error}", path.display()))
}

impl Store {
    /// Writes a checkpoint and copies it into `target`, from which a store opens. Clients go on meanwhile; what they
    /// change after the checkpoint is not in the copy.
    pub fn backup(&self, target: &Path) -> Result<Done> {
        let Some(folder) = self.options.folder.clone() else {
            return Err(Fault::invalid("the service keeps nothing, so there is nothing to back up"));
        };
        self.checkpoint()?;
        // No checkpoint removes files meanwhile.
        let _one = self.checkpointing.lock();
        let manifest = Manifest::read(&folder)?;
        let mut done = Done::default();
        for part in [filters(target), logs(target)] {
            fs::create_dir_all(&part).map_err(io(&part))?;
        }
        for row in &manifest.rows {
            let to = path(target, row.id, row.file);
            done.bytes += fs::copy(path(&folder, row.id, row.file), &to).map_err(io(&to))?;
            File::open(&to).and_then(|file| file.sync_all()).map_err(io(&to))?;
            done.files += 1;
        }
        let key = target.join("secret.key");
        fs::copy(folder.join("secret.key"), &key).map_err(io(&key))?;
        // Last: a folder without a manifest is no backup.
        manifest.write(target)?;
        Ok(done)
    }
}
