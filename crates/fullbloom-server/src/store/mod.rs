//! [`Store`]: named filters, and every operation on them; what changes them is logged first come, first written.
//!
//! * [`entry`]: one named filter;
//! * `catalogue`: making, replacing, dropping, renaming; `conflict`: what is done about a name that is taken; `names`:
//!   where filters are found; `alike`: what many have in common;
//! * `cells`: bytes of all filters;
//! * `notes`: small texts beside the filters;
//! * `operations`: keys in, answers out; `target`: what a change is about, and when it is made;
//! * `secrets`: what keyed filters are keyed with;
//! * `options`: what an entry says without waiting; [`snapshot`]: a filter as it was at one moment; `slices`: how it is
//!   copied; `journal`: what is added meanwhile; `merging`: one filter into another;
//! * `backup`: a copy of it all, while it runs;
//! * `folder`, `manifest`, `writing`, `new_file`, `checkpoint`, `copier`, `replay`: the files, and the way back from them;
//!   `segments`, `salvage`: what is missing there.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, MutexGuard, RwLock};

use crate::blocking::aside;
use crate::budget::Budget;
use crate::fault::{Fault, Result};
use crate::fault_points;
use crate::kind;
use crate::limits::Limits;
use crate::log::{Durability, Log};

mod catalogue;
mod cells;
pub mod checkpoint;
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
mod target;
#[cfg(test)]
mod tests;

use cells::Cells;

pub use crate::kind::{Flavour, Settings};
pub use catalogue::RenameOptions;
pub use entry::{Counters, Entry};
pub use notes::{NoteExpiry, NoteUpdate};
pub use operations::Lsn;
pub use secrets::{Master, random};
pub use snapshot::Snapshot;
pub use target::{Conflict, Target, Versions, note_has_name};

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folder of its files; without one nothing is kept.
    pub folder: Option<PathBuf>,
    /// When an acknowledged change is on disk.
    pub durability: Durability,
    /// What clients may ask for.
    pub limits: Limits,
    /// True: what is damaged is left out, and said, instead of refused.
    pub salvage: bool,
    /// True: filters made without a word about it are not keyed.
    pub plain: bool,
    /// Bytes of log after which a checkpoint is due.
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

/// Named filters. Every call takes a moment, but for a checkpoint and those that go over a whole filter.
pub struct Store {
    /// How it was opened.
    pub options: Options,
    names: RwLock<names::Names>,
    interner: Mutex<kind::settings::Interner>,
    /// Shared by whoever makes changes, taken whole by those who make several as one.
    pub transaction_lock: RwLock<()>,
    /// One change of the catalogue at a time, so that names and log tell the same story.
    changing: Mutex<()>,
    /// Names that live on other nodes, with the address of the node.
    remote_names: RwLock<HashMap<String, String>>,
    /// Counts changes of the catalogue: who holds on to an entry asks it.
    epoch: AtomicU64,
    /// Number of the last record about names and expiries.
    catalogue_lsn: AtomicU64,
    next_id: AtomicU64,
    next_file: AtomicU64,
    /// Files of filters that no record names yet.
    new_files: Mutex<BTreeSet<u64>>,
    cells: Cells,
    budget: Arc<Budget>,
    master: Master,
    log: Log,
    /// One checkpoint at a time.
    checkpoint_lock: Mutex<()>,
    checkpoint_bytes_logged: AtomicU64,
    /// What was left out on the way back, for `--salvage`.
    pub skipped: Vec<String>,
}

impl Store {
    /// Counts changes of the catalogue.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Keeps others from changing the catalogue; see the head of [`entry`].
    fn lock_catalogue(&self) -> MutexGuard<'_, ()> {
        self.changing.try_lock().unwrap_or_else(|| aside(|| self.changing.lock()))
    }

    /// Bytes of cells of all filters.
    pub fn nbytes(&self) -> u64 {
        self.cells.nbytes()
    }

    /// The bytes that are held for clients beside the filters.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// How safe an acknowledged change is.
    pub fn durability(&self) -> Durability {
        self.log.mode()
    }

    /// The log.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// A place where a test may have a fault happen.
    #[inline(always)]
    pub(crate) fn reach(&self, point: &'static str) -> Result<()> {
        match &self.options.folder {
            Some(folder) => fault_points::reach(point, folder).map_err(Fault::io(folder)),
            None => Ok(()),
        }
    }

    /// True of a kind whose filters are keyed where nobody says whether they are.
    pub fn is_keyed_by_default(&self, kind: &str) -> bool {
        !self.options.plain && kind::takes_secret(kind)
    }

    /// What keyed filters are keyed with.
    pub fn master(&self) -> &Master {
        &self.master
    }
}

/// Milliseconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
