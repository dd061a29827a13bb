//! [`Store`]: named filters and their operations; changes are logged in the order in which they happen.
//!
//! * [`entry`]: one named filter and its locks; `names`: the index by name and number; `cells`: the bytes of all
//!   filters;
//! * `catalogue`: create, replace, drop, rename; `target`: conditions on a change; `notes`: small texts beside the
//!   filters;
//! * `operations`: batches of keys; `owners`: what is done to owners of a bank; `merge`: one filter into another; `secrets`: the secrets of keyed filters;
//! * [`stats`]: what a filter says about itself; `counts`: its cells, counted in slices;
//! * [`snapshot`]: a filter at one moment; `slices`: how it is copied; `journal`: keys added in the meantime;
//! * `files`, `manifest`, [`checkpoint`]: files, checkpoints and backups;
//! * `replay`: recovery; `segment_chain`, `salvage`: missing and damaged parts.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, MutexGuard, RwLock};

use crate::blocking::run_blocking;
use crate::budget::Budget;
use crate::fault::{Fault, Result};
use crate::fault_points;
use crate::kind;
use crate::limits::Limits;
use crate::log::{Durability, Log};

#[cfg(test)]
mod bank_tests;
mod catalogue;
mod cells;
pub mod checkpoint;
mod counts;
#[cfg(test)]
mod damage_tests;
pub mod entry;
mod files;
mod journal;
#[cfg(test)]
mod kill_tests;
mod manifest;
mod merge;
mod names;
mod notes;
#[cfg(test)]
mod notes_tests;
mod operations;
mod owners;
#[cfg(test)]
mod replace_tests;
mod replay;
mod salvage;
mod secrets;
mod segment_chain;
mod slices;
#[cfg(test)]
mod slices_tests;
pub mod snapshot;
pub mod stats;
#[cfg(test)]
mod stats_tests;
mod target;
#[cfg(test)]
mod tests;

use cells::Cells;

pub use crate::kind::{Flavour, Settings};
pub use catalogue::RenameOptions;
pub(crate) use catalogue::check_name;
pub use entry::{Counters, Entry, Waiting};
pub use notes::{NoteExpiry, NoteUpdate};
pub use operations::Lsn;
pub use owners::{OwnerInfo, OwnerPage};
pub use secrets::{Master, random};
pub use snapshot::Snapshot;
pub use stats::FilterStats;
pub use target::{Conflict, Target, Versions, note_has_name};

/// How to open a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder of its files; without a folder nothing is stored.
    pub folder: Option<PathBuf>,
    /// When an acknowledged change is on disk.
    pub durability: Durability,
    /// Caps on what clients may request.
    pub limits: Limits,
    /// True skips damaged parts and reports them; otherwise they are refused.
    pub salvage: bool,
    /// True creates filters without a secret by default.
    pub plain: bool,
    /// The bytes of log after which a checkpoint is due.
    pub checkpoint_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            folder: None,
            durability: Durability::EverySecond,
            limits: Limits::default(),
            salvage: false,
            plain: false,
            checkpoint_bytes: 256 << 20,
        }
    }
}

/// Named filters. Every call is short, except checkpoints and tasks over a whole filter.
pub struct Store {
    /// How it was opened.
    pub options: Options,
    names: RwLock<names::Names>,
    interner: Mutex<kind::settings::Interner>,
    /// Shared by changes; exclusive for a transaction, which makes several changes as one.
    pub transaction_lock: RwLock<()>,
    /// One change of the catalogue at a time, so that names and log agree.
    catalogue_lock: Mutex<()>,
    /// The names of other nodes, with their addresses.
    remote_names: RwLock<HashMap<String, String>>,
    /// Changes with every change of the catalogue. Caches of entries compare it.
    epoch: AtomicU64,
    /// The number of the last record about names and expiries.
    catalogue_lsn: AtomicU64,
    next_id: AtomicU64,
    next_file: AtomicU64,
    /// Filter files that no record names yet.
    new_files: Mutex<BTreeSet<u64>>,
    cells: Cells,
    budget: Arc<Budget>,
    master: Master,
    log: Log,
    /// One checkpoint at a time.
    checkpoint_lock: Mutex<()>,
    checkpoint_bytes_logged: AtomicU64,
    /// What recovery skipped, for `--salvage`.
    pub skipped: Vec<String>,
}

impl Store {
    /// Changes with every change of the catalogue.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Excludes other changes of the catalogue; see the head of [`entry`].
    fn lock_catalogue(&self) -> MutexGuard<'_, ()> {
        self.catalogue_lock.try_lock().unwrap_or_else(|| run_blocking(|| self.catalogue_lock.lock()))
    }

    /// The bytes of cells of all filters.
    pub fn nbytes(&self) -> u64 {
        self.cells.nbytes()
    }

    /// The memory held for clients besides the filters.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// The durability mode.
    pub fn durability(&self) -> Durability {
        self.log.mode()
    }

    /// The log.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// A place where a test may inject a fault.
    #[inline(always)]
    pub(crate) fn reach(&self, point: &'static str) -> Result<()> {
        match &self.options.folder {
            Some(folder) => fault_points::reach(point, folder).map_err(Fault::io(folder)),
            None => Ok(()),
        }
    }

    /// True if filters of this kind are keyed by default.
    pub fn is_keyed_by_default(&self, kind: &str) -> bool {
        !self.options.plain && kind::takes_secret(kind)
    }

    /// The secret from which those of keyed filters are derived.
    pub fn master(&self) -> &Master {
        &self.master
    }
}

/// Milliseconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
