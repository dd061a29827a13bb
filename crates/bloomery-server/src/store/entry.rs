//! [`Entry`]: one named filter.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::sync::Notify;

use crate::fault::{Fault, Result};
use crate::kind::{Keying, Kind, Settings};

/// What requests have asked of a filter since the service began.
#[derive(Debug, Default)]
pub struct Traffic {
    /// Keys looked for and found.
    pub hits: AtomicU64,
    /// Keys looked for and not found.
    pub misses: AtomicU64,
    /// Keys handed in.
    pub adds: AtomicU64,
    /// Keys handed in that were new.
    pub new: AtomicU64,
    /// Keys taken out.
    pub removed: AtomicU64,
}

/// Where a filter lies on disk: in a file of its own, or, if it is small, in a bundle of many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Place {
    /// Number of the file; 0 where there is none yet.
    pub(super) file: u64,
    /// Its first byte in a bundle.
    pub(super) at: u64,
    /// Its bytes in a bundle; 0 in a file of its own.
    pub(super) len: u64,
}

impl Place {
    /// The path of the file.
    pub(super) fn path(&self, folder: &Path, id: u64) -> PathBuf {
        let name = if self.len == 0 { format!("{id}-{}.bloom", self.file) } else { format!("{}.bundle", self.file) };
        folder.join("filters").join(name)
    }

    /// A file of its own.
    pub(super) fn own(file: u64) -> Self {
        Place { file, at: 0, len: 0 }
    }
}

/// One named filter. Its number never changes and is never used again; its name may change.
pub struct Entry {
    /// Its number, by which logs and files know it.
    pub id: u64,
    /// What it was made of.
    pub settings: Settings,
    /// When it was made, in milliseconds since 1970.
    pub created: u64,
    /// What was asked of it.
    pub traffic: Traffic,
    /// How texts become hashes, which may be several words; those of a filter that is replaced stay the same.
    pub text: Keying,
    name: RwLock<Arc<str>>,
    filter: RwLock<Box<dyn Kind>>,
    /// When it is dropped, in milliseconds since 1970; 0 never.
    expires: AtomicU64,
    /// Bytes of cells that the store counts for it.
    pub(super) counted: AtomicU64,
    /// Number of the last record of the log that changed it.
    pub(super) lsn: AtomicU64,
    /// Number of the last record that what lies on disk holds, and where that lies.
    saved: Mutex<(u64, Place)>,
    /// [`Entry::moves`] of when it was last sampled.
    pub sampled: AtomicU64,
    /// True while its file is written; changes wait.
    saving: AtomicBool,
    idle: Notify,
}

impl Entry {
    pub(super) fn new(id: u64, name: &str, settings: Settings, created: u64, filter: Box<dyn Kind>) -> Self {
        Entry {
            id,
            settings,
            created,
            traffic: Traffic::default(),
            text: filter.keying(),
            name: RwLock::new(name.into()),
            counted: AtomicU64::new(filter.nbytes()),
            filter: RwLock::new(filter),
            expires: AtomicU64::new(0),
            lsn: AtomicU64::new(0),
            sampled: AtomicU64::new(0),
            saved: Mutex::new((0, Place::default())),
            saving: AtomicBool::new(false),
            idle: Notify::new(),
        }
    }

    /// Its name.
    pub fn name(&self) -> String {
        self.name.read().to_string()
    }

    /// Its name, as the catalogue has it.
    pub(super) fn key(&self) -> Arc<str> {
        self.name.read().clone()
    }

    pub(super) fn rename(&self, name: &str) {
        *self.name.write() = name.into();
    }

    /// Refuses hashes that somebody else has computed, where they are not those of the key rule.
    pub fn check_hashes(&self) -> Result<()> {
        if self.text.is_own() {
            return Ok(());
        }
        Err(Fault::unsupported(&self.settings.spec.kind, "take hashes: send its keys"))
    }

    /// When it is dropped, in milliseconds since 1970.
    pub fn expires(&self) -> Option<u64> {
        Some(self.expires.load(Ordering::Relaxed)).filter(|&at| at != 0)
    }

    /// True until its time has come.
    pub(super) fn lives(&self, now: u64) -> bool {
        self.expires().is_none_or(|at| at > now)
    }

    pub(super) fn set_expires(&self, at: Option<u64>) {
        self.expires.store(at.unwrap_or(0), Ordering::Relaxed);
    }

    /// The filter, to be asked. Readers pass writers that wait, so that a look-up never waits for a file to be written.
    pub fn look(&self) -> RwLockReadGuard<'_, Box<dyn Kind>> {
        self.filter.read_recursive()
    }

    /// [`Entry::look`], unless somebody changes it.
    pub fn try_look(&self) -> Option<RwLockReadGuard<'_, Box<dyn Kind>>> {
        self.filter.try_read_recursive()
    }

    /// The filter, to be changed; the store's own, since changes are logged.
    pub(super) fn change(&self) -> RwLockWriteGuard<'_, Box<dyn Kind>> {
        self.filter.write()
    }

    /// True while its file is written: a change would wait as long.
    pub fn is_saving(&self) -> bool {
        self.saving.load(Ordering::Acquire)
    }

    /// Waits until its file is written.
    pub async fn idle(&self) {
        let notified = self.idle.notified();
        tokio::pin!(notified);
        notified.as_mut().enable();
        if self.is_saving() {
            notified.await;
        }
    }

    /// Number of the last record that what lies on disk holds, and where that lies.
    pub(super) fn saved(&self) -> (u64, Place) {
        *self.saved.lock()
    }

    /// Notes where what all records up to `lsn` have made of it lies on disk, unless more is there already: a merge may
    /// have written it while a checkpoint was on its way.
    pub(super) fn note_saved(&self, lsn: u64, place: Place) {
        let mut saved = self.saved.lock();
        if lsn >= saved.0 {
            *saved = (lsn, place);
        }
    }

    /// Does `work` with the filter, which nobody changes meanwhile.
    pub(super) fn saving<T>(&self, work: impl FnOnce(&dyn Kind) -> T) -> T {
        self.saving.store(true, Ordering::Release);
        let done = work(self.look().as_ref());
        self.saving.store(false, Ordering::Release);
        self.idle.notify_waiters();
        done
    }
}
