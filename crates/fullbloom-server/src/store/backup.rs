//! A copy of the store on a running service.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use super::Store;
use super::checkpoint::Done;
use super::folder::{filters, logs, sync};
use super::manifest::Manifest;
use crate::fault::{Fault, Result};

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
        let manifest = Manifest::read(&folder)?.unwrap_or_default();
        // The copy has no log, and needs none.
        let manifest = Manifest { boundary: 0, ..manifest };
        let mut done = Done::default();
        for part in [filters(target), logs(target)] {
            fs::create_dir_all(&part).map_err(Fault::io(&part))?;
        }
        let files: HashSet<_> =
            manifest.rows.iter().map(|row| (row.place.path(&folder, row.id), row.place.path(target, row.id))).collect();
        for (from, to) in files {
            done.bytes += fs::copy(from, &to).map_err(Fault::io(&to))?;
            sync(&to)?;
            done.files += 1;
        }
        let key = target.join("secret.key");
        fs::copy(folder.join("secret.key"), &key).map_err(Fault::io(&key))?;
        // Last: a folder without a manifest is no backup.
        manifest.write(target)?;
        Ok(done)
    }
}
