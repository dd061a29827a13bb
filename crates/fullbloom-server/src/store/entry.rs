//! [`Entry`]: one named filter, and its locks.
//!
//! Locks are taken in this order, each first by trying and then aside, so that no worker of a runtime blocks: the
//! store's `transaction_lock`; `merge_lock` of one filter; [`Entry::read_upgradable`]; the store's `catalogue_lock`;
//! `last_count` or `last_fpr` of one filter; `scan` of one filter; the filter's lock; the log's. The filter's lock is
//! fair: a reader waits behind a waiting change. So no thread reads one filter twice at once (a nested [`Entry::read`]
//! would wait for itself), and only the holder of `catalogue_lock` reads two filters. The holder of an upgradable lock
//! excludes changes, never lookups.
//!
//! Copies of most filters let changes through between slices (`slices`), and so do counts of their cells (`counts`).
//! Other tasks over a whole filter hold `scan`, one at a time. If the filter is changing, each waits ten times as long
//! as the one before it took: of a hundred changes at most one waits, no matter how many tasks are requested. A
//! connection that would have to wait for such a task releases its thread in the meantime
//! ([`Entry::wait_until_idle`]).

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard};
use tokio::sync::Notify;

use super::Snapshot;
use super::cells::{Account, Cells};
use super::journal::Journals;
use super::stats::{Cached, FilterStats};
use crate::blocking::run_blocking;
use crate::fault::{Fault, Result};
use crate::kind::{Keying, Kind, Settings};

/// Operations on a filter since the service started.
#[derive(Debug, Default)]
pub struct Counters {
    /// Keys looked up and found.
    pub hits: AtomicU64,
    /// Keys looked up and not found.
    pub misses: AtomicU64,
    /// Keys added.
    pub adds: AtomicU64,
    /// Keys added that were new.
    pub new: AtomicU64,
    /// Keys removed.
    pub removed: AtomicU64,
}

impl Counters {
    /// The counters, by name.
    pub fn values(&self) -> [(&'static str, u64); 5] {
        let counters = [&self.hits, &self.misses, &self.adds, &self.new, &self.removed];
        let names = ["hits", "misses", "adds", "new", "removed"];
        std::array::from_fn(|at| (names[at], counters[at].load(Ordering::Relaxed)))
    }
}

/// Where a filter is on disk: in its own file, or, if it is small, in a bundle of many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Place {
    /// The number of the file; 0 until the first file is written.
    pub(super) file: u64,
    /// Its offset in a bundle.
    pub(super) at: u64,
    /// Its length in a bundle; 0 for its own file.
    pub(super) len: u64,
}

impl Place {
    /// The path of the file.
    pub(super) fn path(&self, folder: &Path, id: u64) -> PathBuf {
        let name = if self.len == 0 { format!("{id}-{}.bloom", self.file) } else { format!("{}.bundle", self.file) };
        folder.join("filters").join(name)
    }

    /// Its own file.
    pub(super) fn own(file: u64) -> Self {
        Place { file, at: 0, len: 0 }
    }
}

/// One named filter. Its number never changes and is never reused; its name may change.
pub struct Entry {
    /// Its number, which identifies it in the log and in files.
    pub id: u64,
    /// Its parameters.
    pub settings: Settings,
    /// When it was created, in milliseconds since 1970.
    pub created: u64,
    /// Operations on it.
    pub counters: Counters,
    /// True once keys were looked up over RESP, where every key is a text.
    texts_looked_up: AtomicBool,
    /// How texts become words. A replacement of its contents does not change this.
    pub keying: Keying,
    name: RwLock<Arc<str>>,
    filter: RwLock<Box<dyn Kind>>,
    /// When it expires, in milliseconds since 1970; 0 means never.
    expires: AtomicU64,
    /// The bytes of its cells.
    pub(super) account: Arc<Account>,
    /// The number of the last log record that changed it.
    pub(super) lsn: AtomicU64,
    /// The number of the last record that its copy on disk includes, and the place of that copy.
    saved: Mutex<(u64, Place)>,
    /// [`Entry::activity`] at its last sample.
    pub sampled_activity: AtomicU64,
    /// The number of running tasks that read the whole filter, and of those that change it.
    pub(super) long_reads: AtomicUsize,
    changing: AtomicUsize,
    /// The number of connections that wait for such a task.
    waiting: AtomicUsize,
    idle: Notify,
    /// Held during a merge into it.
    pub(super) merge_lock: Mutex<()>,
    /// The keys added while it is copied.
    pub(super) journals: Journals,
    /// Made once it is large: a service may have a million small filters.
    large: OnceLock<Box<LargeState>>,
}

/// What only a large filter needs.
#[derive(Default)]
pub(super) struct LargeState {
    /// Held by tasks over the whole filter that keep changes waiting.
    pub(super) scan: Mutex<ScanState>,
    /// The last count of its cells.
    pub(super) last_count: Mutex<Option<Cached<Arc<FilterStats>>>>,
    /// The last rate without a count.
    pub(super) last_fpr: Mutex<Option<Cached<f64>>>,
}

/// Smaller filters are scanned and copied at once.
pub(super) const SMALL: u64 = if cfg!(test) { 16 << 10 } else { 1 << 20 };
/// The pause between two tasks over a whole filter that changes: this many times as long as the first took, and the
/// longest pause.
const PAUSES: u32 = 10;
const LONGEST: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct ScanState {
    /// When it ended, how long it took, and the number of the last change at that time.
    pub(super) last: Option<(Instant, Duration, u64)>,
    /// The copy that it made, as long as somebody holds it.
    pub(super) copy: Weak<Snapshot>,
}

/// Marks a running task over the whole filter; its end is reported to those who wait.
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

/// A client that waits for the tasks that read a whole filter, without a thread; tasks let it through from time to time.
pub struct Waiting(Arc<Entry>);

impl Waiting {
    /// Counts a client that waits for a filter.
    pub fn new(entry: Arc<Entry>) -> Self {
        entry.waiting.fetch_add(1, Ordering::AcqRel);
        Waiting(entry)
    }

    /// True as long as a change would wait.
    pub fn goes_on(&self) -> bool {
        self.0.is_being_read()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Counts a waiting connection, even if the connection ends in the meantime.
struct WaiterGuard<'a>(&'a AtomicUsize);

impl Drop for WaiterGuard<'_> {
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
        (run_blocking(|| RwLockUpgradableReadGuard::upgrade(filter)), long)
    }
}

impl Entry {
    pub(super) fn new(id: u64, name: &str, settings: Settings, created: u64, filter: Box<dyn Kind>) -> Self {
        Entry {
            id,
            settings,
            created,
            counters: Counters::default(),
            texts_looked_up: AtomicBool::new(false),
            keying: filter.keying(),
            name: RwLock::new(name.into()),
            account: Account::new(filter.nbytes()),
            filter: RwLock::new(filter),
            expires: AtomicU64::new(0),
            lsn: AtomicU64::new(0),
            sampled_activity: AtomicU64::new(0),
            saved: Mutex::new((0, Place::default())),
            long_reads: AtomicUsize::new(0),
            changing: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            idle: Notify::new(),
            merge_lock: Mutex::default(),
            journals: Journals::default(),
            large: OnceLock::new(),
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

    /// Refuses hashes from clients if the filter does not use the key rule.
    pub fn check_hashes(&self) -> Result<()> {
        if self.keying.is_own() {
            return Ok(());
        }
        Err(Fault::unsupported(&self.settings.spec.kind, "take hashes: send its keys"))
    }

    /// Refuses words that do not fit the number of keys: a filter with several words per key would skip some.
    #[inline]
    pub(super) fn check_words(&self, words: &[u64], keys: usize) -> Result<()> {
        if words.len() == keys * self.keying.width() {
            return Ok(());
        }
        let (kind, width) = (&self.settings.spec.kind, self.keying.width());
        Err(Fault::invalid(format!("{keys} keys of a {kind} are {} words, got {}", keys * width, words.len())))
    }

    /// When it expires, in milliseconds since 1970.
    pub fn expires(&self) -> Option<u64> {
        Some(self.expires.load(Ordering::Relaxed)).filter(|&at| at != 0)
    }

    /// True until it expires.
    pub(super) fn is_alive(&self, now: u64) -> bool {
        self.expires().is_none_or(|at| at > now)
    }

    pub(super) fn set_expires(&self, at: Option<u64>) {
        self.expires.store(at.unwrap_or(0), Ordering::Relaxed);
    }

    /// The filter, for a short read. A thread must not hold two such guards: see the head of this file.
    #[inline]
    pub fn read(&self) -> RwLockReadGuard<'_, Box<dyn Kind>> {
        self.filter.try_read().unwrap_or_else(|| run_blocking(|| self.filter.read()))
    }

    /// [`Entry::read`] that does not wait behind a waiting change if others read the filter: a copy of a large filter
    /// may keep that change waiting. For rare reads only, because many of them would keep it waiting forever.
    pub fn peek(&self) -> RwLockReadGuard<'_, Box<dyn Kind>> {
        self.filter.try_read_recursive().unwrap_or_else(|| self.read())
    }

    /// [`Entry::read`], unless the filter is being changed.
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, Box<dyn Kind>>> {
        self.filter.try_read()
    }

    /// The filter, for a change. Private to the store, because changes must be logged.
    #[inline]
    pub(super) fn write(&self) -> RwLockWriteGuard<'_, Box<dyn Kind>> {
        self.filter.try_write().unwrap_or_else(|| run_blocking(|| self.filter.write()))
    }

    /// The filter without changes; other threads continue to read it.
    pub(super) fn read_upgradable(&self) -> UpgradableFilter<'_> {
        let long = self.begin_task(&self.long_reads);
        let filter =
            self.filter.try_upgradable_read().unwrap_or_else(|| run_blocking(|| self.filter.upgradable_read()));
        UpgradableFilter { filter, long }
    }

    /// Records a lookup of texts over RESP, whose replies have no room for a warning.
    #[inline]
    pub fn record_texts_looked_up(&self) {
        if !self.texts_looked_up.load(Ordering::Relaxed) {
            self.texts_looked_up.store(true, Ordering::Relaxed);
        }
    }

    /// True once keys were looked up over RESP.
    pub fn has_texts_looked_up(&self) -> bool {
        self.texts_looked_up.load(Ordering::Relaxed)
    }

    /// Counts its bytes, and its growth, with those of all filters.
    pub(super) fn share(&self, cells: &Cells) {
        let mut filter = self.write();
        filter.share(self.account.clone());
        self.account.join(cells);
    }

    pub(super) fn begin_task<'a>(&'a self, count: &'a AtomicUsize) -> TaskGuard<'a> {
        count.fetch_add(1, Ordering::AcqRel);
        TaskGuard { count, idle: &self.idle }
    }

    /// Marks a change of the whole filter, if the filter is large.
    pub(super) fn begin_long_change(&self) -> Option<TaskGuard<'_>> {
        (self.nbytes() >= SMALL).then(|| self.begin_task(&self.changing))
    }

    /// Runs `work` with the whole filter, without changes in the meantime.
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

    /// What a large filter has beside its cells.
    pub(super) fn large(&self) -> &LargeState {
        self.large.get_or_init(Box::default)
    }

    pub(super) fn lock_scan(&self) -> parking_lot::MutexGuard<'_, ScanState> {
        let scan = &self.large().scan;
        let whole = scan.try_lock().unwrap_or_else(|| run_blocking(|| scan.lock()));
        self.pause(&whole);
        whole
    }

    /// Lets changes through after the last task over the whole filter kept them waiting.
    pub(super) fn pause(&self, whole: &ScanState) {
        let Some((ended, took, lsn)) = whole.last else { return };
        let left = (took * PAUSES).min(LONGEST).saturating_sub(ended.elapsed());
        let changes = self.waiting.load(Ordering::Acquire) > 0 || self.lsn.load(Ordering::Acquire) != lsn;
        if changes && self.nbytes() >= SMALL && !left.is_zero() {
            run_blocking(|| std::thread::sleep(left));
        }
    }

    /// True while a task over the whole filter runs, for which a change would wait.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.long_reads.load(Ordering::Acquire) + self.changing.load(Ordering::Acquire) > 0
    }

    /// True while a task reads the whole filter, for which a change would wait: a copy, a merge, a count of cells.
    #[inline]
    pub fn is_being_read(&self) -> bool {
        self.long_reads.load(Ordering::Acquire) > 0
    }

    /// True while a change of the whole filter runs, for which a lookup would wait.
    #[inline]
    pub fn is_changing(&self) -> bool {
        self.changing.load(Ordering::Acquire) > 0
    }

    /// Waits until a running task over the whole filter ends.
    pub async fn wait_until_idle(&self) {
        let notified = self.idle.notified();
        tokio::pin!(notified);
        notified.as_mut().enable();
        if self.is_busy() {
            self.waiting.fetch_add(1, Ordering::AcqRel);
            let _waiting = WaiterGuard(&self.waiting);
            notified.await;
        }
    }

    /// The number of the last record that changed it, read under the filter's lock, so that no change is between its
    /// record in the log and this number.
    pub(super) fn read_lsn(&self) -> u64 {
        let _still = self.read();
        self.lsn.load(Ordering::Relaxed)
    }

    /// The number of the last record that its copy on disk includes, and the place of that copy.
    pub(super) fn saved_state(&self) -> (u64, Place) {
        *self.saved.lock()
    }

    /// Records the place on disk that includes all records up to `lsn`, unless a newer one is known: a merge may have
    /// written it during a checkpoint.
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

    /// Grows with every change of the filter, and with every lookup.
    pub fn activity(&self) -> u64 {
        self.counters.values().iter().fold(self.version(), |sum, (_, count)| sum.wrapping_add(*count))
    }

    /// The bytes of its cells.
    pub fn nbytes(&self) -> u64 {
        self.account.nbytes()
    }
}
