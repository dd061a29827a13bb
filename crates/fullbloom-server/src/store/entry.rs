//! [`Entry`]: one named filter, and who waits for whom.
//!
//! Locks are taken in this order, each by try first and then aside, so that no worker of a runtime stops: the store's
//! `turn`; `merging` of one filter; [`Entry::read_upgradable`]; the store's `changing`; `whole` of one filter; the filter's lock; the log's. The filter's
//! lock is fair: a reader waits behind a change that waits, so nobody looks at one filter twice at once
//! ([`Entry::read`] while holding a look would wait for itself), and only the holder of `changing` looks at two filters.
//! Who holds `steady` excludes changes, never looks. Copies of most filters let changes in between slices (`slices`).
//! Other work over a whole filter holds `whole`, one at a time, and where there are changes leaves ten times as long between two as the last one took: of a hundred changes at most one waits,
//! whatever is fetched, and a connection that would have to wait for such work lets its thread go meanwhile
//! ([`Entry::wait_until_idle`]).

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard};
use tokio::sync::Notify;

use super::Snapshot;
use super::cells::Cells;
use super::journal::Journals;
use crate::blocking::aside;
use crate::fault::{Fault, Result};
use crate::kind::{Keying, Kind, Settings};

/// What requests have asked of a filter since the service began.
#[derive(Debug, Default)]
pub struct Counters {
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

impl Counters {
    /// The values, by name.
    pub fn values(&self) -> [(&'static str, u64); 5] {
        let counters = [&self.hits, &self.misses, &self.adds, &self.new, &self.removed];
        let names = ["hits", "misses", "adds", "new", "removed"];
        std::array::from_fn(|at| (names[at], counters[at].load(Ordering::Relaxed)))
    }
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
    pub counters: Counters,
    /// How texts become hashes, which may be several words; those of a filter that is replaced stay the same.
    pub keying: Keying,
    name: RwLock<Arc<str>>,
    filter: RwLock<Box<dyn Kind>>,
    /// When it is dropped, in milliseconds since 1970; 0 never.
    expires: AtomicU64,
    /// Bytes of cells that the store counts for it.
    pub(super) counted_bytes: Arc<AtomicU64>,
    /// Number of the last record of the log that changed it.
    pub(super) lsn: AtomicU64,
    /// Number of the last record that what lies on disk holds, and where that lies.
    saved: Mutex<(u64, Place)>,
    /// [`Entry::activity`] of when it was last sampled.
    pub sampled: AtomicU64,
    /// Work over the whole filter that looks at it, and such that changes it.
    pub(super) long_reads: AtomicUsize,
    changing: AtomicUsize,
    /// Connections that wait for such work.
    waiting: AtomicUsize,
    idle: Notify,
    pub(super) scan: Mutex<ScanState>,
    /// One merge into it at a time.
    pub(super) merge_lock: Mutex<()>,
    /// What is added while it is copied.
    pub(super) journals: Journals,
}

/// Filters of fewer bytes are gone over, and copied, at once.
pub(super) const SMALL: u64 = if cfg!(test) { 16 << 10 } else { 1 << 20 };
/// Time between two that go over a whole filter which changes: so many times as long as the first took, and the longest.
const PAUSES: u32 = 10;
const LONGEST: Duration = Duration::from_secs(1);

/// The last work over the whole filter.
#[derive(Default)]
pub(super) struct ScanState {
    /// When it ended, how long it took, and the number of the last change of then.
    pub(super) last: Option<(Instant, Duration, u64)>,
    /// The copy that it made, as long as somebody has it.
    pub(super) copy: Weak<Snapshot>,
}

/// Says that work over the whole filter is under way; those who wait are told of its end.
pub(super) struct TaskGuard<'a> {
    count: &'a AtomicUsize,
    idle: &'a Notify,
}

impl Drop for TaskGuard<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::AcqRel);
        self.idle.notify_waiters();
    }
}

/// Counts a connection that waits; one that ends meanwhile as well.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A filter that nobody changes; others look at it meanwhile.
pub(super) struct UpgradableFilter<'a> {
    pub(super) filter: RwLockUpgradableReadGuard<'a, Box<dyn Kind>>,
    long: TaskGuard<'a>,
}

impl<'a> UpgradableFilter<'a> {
    /// Goes on to change it.
    pub(super) fn upgrade(self) -> (RwLockWriteGuard<'a, Box<dyn Kind>>, TaskGuard<'a>) {
        let UpgradableFilter { filter, long } = self;
        (aside(|| RwLockUpgradableReadGuard::upgrade(filter)), long)
    }
}

impl Entry {
    pub(super) fn new(id: u64, name: &str, settings: Settings, created: u64, filter: Box<dyn Kind>) -> Self {
        Entry {
            id,
            settings,
            created,
            counters: Counters::default(),
            keying: filter.keying(),
            name: RwLock::new(name.into()),
            counted_bytes: Arc::new(AtomicU64::new(filter.nbytes())),
            filter: RwLock::new(filter),
            expires: AtomicU64::new(0),
            lsn: AtomicU64::new(0),
            sampled: AtomicU64::new(0),
            saved: Mutex::new((0, Place::default())),
            long_reads: AtomicUsize::new(0),
            changing: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            idle: Notify::new(),
            scan: Mutex::default(),
            merge_lock: Mutex::default(),
            journals: Journals::default(),
        }
    }

    /// Its name.
    pub fn name(&self) -> String {
        self.name.read().to_string()
    }

    /// Its name, as the catalogue has it.
    pub(super) fn shared_name(&self) -> Arc<str> {
        self.name.read().clone()
    }

    pub(super) fn rename(&self, name: &str) {
        *self.name.write() = name.into();
    }

    /// Refuses hashes that somebody else has computed, where they are not those of the key rule.
    pub fn check_hashes(&self) -> Result<()> {
        if self.keying.is_own() {
            return Ok(());
        }
        Err(Fault::unsupported(&self.settings.spec.kind, "take hashes: send its keys"))
    }

    /// Refuses words that are not those of so many keys: a filter that has several a key would pass over some.
    #[inline]
    pub(super) fn check_words(&self, words: &[u64], keys: usize) -> Result<()> {
        if words.len() == keys * self.keying.width() {
            return Ok(());
        }
        let (kind, width) = (&self.settings.spec.kind, self.keying.width());
        Err(Fault::invalid(format!("{keys} keys of a {kind} are {} words, got {}", keys * width, words.len())))
    }

    /// When it is dropped, in milliseconds since 1970.
    pub fn expires(&self) -> Option<u64> {
        Some(self.expires.load(Ordering::Relaxed)).filter(|&at| at != 0)
    }

    /// True until its time has come.
    pub(super) fn is_alive(&self, now: u64) -> bool {
        self.expires().is_none_or(|at| at > now)
    }

    pub(super) fn set_expires(&self, at: Option<u64>) {
        self.expires.store(at.unwrap_or(0), Ordering::Relaxed);
    }

    /// The filter, to be asked for a moment. Nobody looks twice at once: see the head of this file.
    #[inline]
    pub fn read(&self) -> RwLockReadGuard<'_, Box<dyn Kind>> {
        self.filter.try_read().unwrap_or_else(|| aside(|| self.filter.read()))
    }

    /// [`Entry::read`], unless somebody changes it.
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, Box<dyn Kind>>> {
        self.filter.try_read()
    }

    /// The filter, to be changed; the store's own, since changes are logged.
    #[inline]
    pub(super) fn write(&self) -> RwLockWriteGuard<'_, Box<dyn Kind>> {
        self.filter.try_write().unwrap_or_else(|| aside(|| self.filter.write()))
    }

    /// The filter, which nobody changes while others go on looking at it.
    pub(super) fn read_upgradable(&self) -> UpgradableFilter<'_> {
        let long = self.begin_task(&self.long_reads);
        let filter = self.filter.try_upgradable_read().unwrap_or_else(|| aside(|| self.filter.upgradable_read()));
        UpgradableFilter { filter, long }
    }

    /// Has what it grows by taken from the bytes of all filters.
    pub(super) fn share(&self, cells: &Cells) {
        self.write().share(cells.share_of(&self.counted_bytes));
    }

    pub(super) fn begin_task<'a>(&'a self, count: &'a AtomicUsize) -> TaskGuard<'a> {
        count.fetch_add(1, Ordering::AcqRel);
        TaskGuard { count, idle: &self.idle }
    }

    /// Says that a change of the whole filter is under way, if it is a large one.
    pub(super) fn begin_long_change(&self) -> Option<TaskGuard<'_>> {
        (self.nbytes() >= SMALL).then(|| self.begin_task(&self.changing))
    }

    /// Does `work` with the whole filter, which nobody changes meanwhile.
    pub fn with_whole<T>(&self, work: impl FnOnce(&dyn Kind) -> T) -> T {
        if self.nbytes() < SMALL {
            return work(self.read().as_ref());
        }
        let mut whole = self.lock_scan();
        let (begun, long) = (Instant::now(), self.begin_task(&self.long_reads));
        let done = work(self.read().as_ref());
        drop(long);
        whole.last = Some((Instant::now(), begun.elapsed(), self.lsn.load(Ordering::Acquire)));
        done
    }

    fn lock_scan(&self) -> parking_lot::MutexGuard<'_, ScanState> {
        let whole = self.scan.try_lock().unwrap_or_else(|| aside(|| self.scan.lock()));
        self.pause(&whole);
        whole
    }

    /// Lets changes through for as long as the last work over the whole filter kept them waiting.
    pub(super) fn pause(&self, whole: &ScanState) {
        let Some((ended, took, lsn)) = whole.last else { return };
        let left = (took * PAUSES).min(LONGEST).saturating_sub(ended.elapsed());
        let changes = self.waiting.load(Ordering::Acquire) > 0 || self.lsn.load(Ordering::Acquire) != lsn;
        if changes && self.nbytes() >= SMALL && !left.is_zero() {
            aside(|| std::thread::sleep(left));
        }
    }

    /// True while work over the whole filter is under way, for which a change would wait.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.long_reads.load(Ordering::Acquire) + self.changing.load(Ordering::Acquire) > 0
    }

    /// True while a change of the whole filter is under way, for which a look would wait.
    #[inline]
    pub fn is_changing(&self) -> bool {
        self.changing.load(Ordering::Acquire) > 0
    }

    /// Waits until work over the whole filter that is under way ends, for the first time.
    pub async fn wait_until_idle(&self) {
        let notified = self.idle.notified();
        tokio::pin!(notified);
        notified.as_mut().enable();
        if self.is_busy() {
            self.waiting.fetch_add(1, Ordering::AcqRel);
            let _waiting = Waiting(&self.waiting);
            notified.await;
        }
    }

    /// Number of the last record that changed it, read under the filter's lock: no change is between its record in the
    /// log and this number.
    pub(super) fn read_lsn(&self) -> u64 {
        let _still = self.read();
        self.lsn.load(Ordering::Relaxed)
    }

    /// Number of the last record that what lies on disk holds, and where that lies.
    pub(super) fn saved_state(&self) -> (u64, Place) {
        *self.saved.lock()
    }

    /// Notes where what all records up to `lsn` have made of it lies on disk, unless more is there already: a merge may
    /// have written it while a checkpoint was on its way.
    pub(super) fn record_saved(&self, lsn: u64, place: Place) {
        let mut saved = self.saved.lock();
        if lsn >= saved.0 {
            *saved = (lsn, place);
        }
    }

    /// Changes with every change of the filter.
    pub fn version(&self) -> u64 {
        self.lsn.load(Ordering::Relaxed)
    }

    /// Grows with every change of the filter, and with every question.
    pub fn activity(&self) -> u64 {
        self.counters.values().iter().fold(self.version(), |sum, (_, count)| sum.wrapping_add(*count))
    }

    /// Bytes of its cells.
    pub fn nbytes(&self) -> u64 {
        self.counted_bytes.load(Ordering::Relaxed)
    }
}
