//! [`Log`]: changes are appended under a lock, one thread writes them, and all pending clients share one sync.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::watch;

use super::pending::{KEPT, Pending};
use super::record::{OPERATION, op};
use super::segment::{self, Header};
use super::start::{Start, begin};
use super::synced::{CurrentSegment, Progress, Synced, SyncedFile, stopping_fault};
use super::{Durability, Record};
use crate::budget::{Budget, Reservation};
use crate::fault::{Code, Fault, Result};
use crate::fault_points::reach;

/// Except in `always`, how long changes are collected before they are written.
const WRITE_DELAY: Duration = Duration::from_millis(10);
/// In `everysec`, the time from the start of a sync to the start of the next one.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// The time until the next attempt after the disk was full.
const RETRY: Duration = Duration::from_millis(500);

struct Shared {
    pending: Mutex<Pending>,
    work: Condvar,
    progress: watch::Sender<Progress>,
    /// `progress.trouble.is_some()` as one word, checked before each change.
    troubled: AtomicBool,
    /// True after a failed sync: the kernel may have dropped the data, so only a restart helps.
    broken: AtomicBool,
    written: AtomicU64,
    rotated: Condvar,
    /// The current segment; `None` without a folder.
    segment: Mutex<CurrentSegment>,
    /// The syncing thread of `everysec` waits here.
    to_sync: Condvar,
    /// Held during a sync, so that the next one sees a failure.
    syncing: Mutex<Option<SyncedFile>>,
}

/// The log of a store. Without a folder it only numbers changes.
pub struct Log {
    mode: Durability,
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Its folder, if it has one.
    folder: Option<PathBuf>,
}

impl Log {
    /// A log that stores nothing.
    pub fn in_memory() -> Self {
        Log { mode: Durability::Off, shared: new_shared(1), threads: Mutex::default(), folder: None }
    }

    /// Opens a log in `folder`, which continues in a new or empty segment. Records that wait for the disk are charged
    /// to `budget`.
    pub fn open(folder: &Path, mode: Durability, mut start: Start, budget: &Arc<Budget>) -> Result<Self> {
        let (file, header) = start.begin(folder)?;
        let shared = new_shared(start.next);
        let written = Synced { newest: header.first, record: start.next - 1 };
        *shared.syncing.lock() = Some(SyncedFile::open(folder, written));
        {
            let mut pending = shared.pending.lock();
            (pending.boundary, pending.held) = (header.first, Some(budget.empty()));
        }
        let file = Arc::new(file);
        shared.segment.lock().file = Some(file.clone());
        let mut writer = Writer {
            folder: folder.to_owned(),
            mode,
            shared: shared.clone(),
            file,
            header,
            length: segment::HEADER as u64,
            held: Some(budget.empty()),
            unsynced: false,
        };
        let log = Log { mode, shared: shared.clone(), threads: Mutex::default(), folder: Some(folder.to_owned()) };
        let begin = |name: &str, work: Box<dyn FnOnce() + Send>| -> Result<()> {
            let thread = std::thread::Builder::new().name(name.into()).spawn(work);
            let thread = thread.map_err(|error| Fault::new(Code::Io, format!("no thread for the log: {error}")))?;
            log.threads.lock().push(thread);
            Ok(())
        };
        begin("fullbloom-log", Box::new(move || writer.run()))?;
        if mode == Durability::EverySecond {
            let folder = folder.to_owned();
            begin("fullbloom-sync", Box::new(move || shared.sync_every_second(&folder)))?;
        }
        Ok(log)
    }

    /// The first record of the newest segment.
    pub fn newest(&self) -> u64 {
        self.shared.pending.lock().boundary
    }

    /// The durability mode.
    pub fn mode(&self) -> Durability {
        self.mode
    }

    /// Refuses a change while the disk accepts none, before anything is changed.
    #[inline]
    pub fn admit(&self) -> Result<()> {
        if self.shared.troubled.load(Ordering::Acquire) { Err(self.refusal()) } else { Ok(()) }
    }

    #[cold]
    fn refusal(&self) -> Fault {
        let why = self.shared.progress.borrow().trouble.clone();
        Fault::new(
            Code::ReadOnly,
            why.unwrap_or_else(|| {
                "the disk is slower than changes come; try again later, or raise limits.memory_bytes".into()
            }),
        )
    }

    /// Why changes are refused at present.
    pub fn trouble(&self) -> Option<String> {
        self.shared.troubled.load(Ordering::Acquire).then(|| self.refusal().text)
    }

    /// Appends a record and returns its number. The caller locks what it changes, so that numbers have the order of the
    /// changes.
    pub fn append(&self, record: &Record<'_>) -> Result<u64> {
        self.append_as(std::slice::from_ref(record), 0)
    }

    /// Appends several records as one block, of which a crash leaves all or none; returns the number of the first.
    pub fn append_all(&self, records: &[Record<'_>]) -> Result<u64> {
        self.append_as(records, 0)
    }

    /// Appends a change that was refused at one of its keys; the keys before that one were changed.
    pub fn append_refused(&self, record: &Record<'_>) -> Result<u64> {
        self.append_as(std::slice::from_ref(record), op::REFUSED)
    }

    fn append_as(&self, records: &[Record<'_>], flag: u8) -> Result<u64> {
        if let Some(folder) = &self.folder {
            reach("log.append", folder).map_err(Fault::io(folder))?;
        }
        let mut pending = self.shared.pending.lock();
        pending.admit()?;
        let number = pending.next;
        pending.next += records.len() as u64;
        if self.folder.is_none() {
            return Ok(number);
        }
        if pending.block.is_empty() {
            pending.block.resize(segment::BLOCK, 0);
            self.shared.work.notify_one();
        }
        for record in records {
            pending.make_room();
            let at = pending.block.len();
            record.write(&mut pending.block);
            pending.block[at + OPERATION] |= flag;
        }
        pending.records += records.len() as u32;
        if !pending.charge() {
            self.shared.troubled.store(true, Ordering::Release);
        }
        Ok(number)
    }

    /// The number of the next record.
    pub fn next(&self) -> u64 {
        self.shared.pending.lock().next
    }

    /// The bytes written since it was opened.
    pub fn nbytes(&self) -> u64 {
        self.shared.written.load(Ordering::Relaxed)
    }

    /// Waits until a change is as durable as the mode promises, which takes no time except in `always`.
    pub async fn wait_until_durable(&self, number: u64) -> Result<()> {
        if self.mode != Durability::Always || self.folder.is_none() {
            return Ok(());
        }
        let mut progress = self.shared.progress.subscribe();
        let reached = progress.wait_for(|p| p.durable >= number || p.trouble.is_some()).await;
        reached.map_err(|_| stopping_fault()).and_then(|p| p.confirm(number))
    }

    /// [`Log::wait_until_durable`] for a thread that may block.
    pub fn wait_blocking(&self, number: u64) -> Result<()> {
        if self.mode != Durability::Always || self.folder.is_none() {
            return Ok(());
        }
        let progress = self.shared.progress.subscribe();
        loop {
            {
                let now = progress.borrow();
                if now.durable >= number || now.trouble.is_some() {
                    return now.confirm(number);
                }
            }
            let mut pending = self.shared.pending.lock();
            pending.admit()?;
            let _ = self.shared.rotated.wait_for(&mut pending, Duration::from_millis(5));
        }
    }

    /// Begins a new segment and returns the number of its first record. All records before it are in older segments, on
    /// disk.
    pub fn rotate(&self) -> Result<u64> {
        if self.folder.is_none() {
            return Ok(self.next());
        }
        if self.mode == Durability::EverySecond {
            // On this thread, so that the writing thread has little left to sync.
            let file = self.shared.segment.lock().file.clone();
            let synced = file.is_none_or(|file| self.shared.sync(self.folder.as_deref(), &file));
            if !synced {
                return Err(self.refusal());
            }
        }
        let mut pending = self.shared.pending.lock();
        pending.rotate = true;
        self.shared.work.notify_one();
        while pending.rotate && !pending.stop && !self.shared.troubled.load(Ordering::Acquire) {
            self.shared.rotated.wait(&mut pending);
        }
        let left = std::mem::take(&mut pending.rotate);
        let refused = left.then(|| pending.admit().err().unwrap_or_else(|| self.refusal()));
        refused.or(pending.refused.take()).map_or(Ok(pending.boundary), Err)
    }

    /// Writes and syncs what is pending, ends the threads, and refuses changes from then on.
    pub fn close(&self) {
        self.shared.pending.lock().stop = true;
        self.shared.work.notify_one();
        // The writing thread first: it syncs what is left.
        for thread in self.threads.lock().drain(..) {
            let _ = thread.join();
            self.shared.segment.lock().stop = true;
            self.shared.to_sync.notify_all();
        }
        self.shared.refuse("the service is stopping".into(), false);
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.close();
    }
}

fn new_shared(next: u64) -> Arc<Shared> {
    Arc::new(Shared {
        pending: Mutex::new(Pending { next, ..Pending::default() }),
        work: Condvar::new(),
        progress: watch::channel(Progress { durable: next.saturating_sub(1), trouble: None }).0,
        troubled: AtomicBool::new(false),
        broken: AtomicBool::new(false),
        written: AtomicU64::new(0),
        rotated: Condvar::new(),
        segment: Mutex::default(),
        to_sync: Condvar::new(),
        syncing: Mutex::new(None),
    })
}

impl Shared {
    /// Syncs a file; false after a failure, which only a restart repairs.
    fn sync(&self, folder: Option<&Path>, file: &File) -> bool {
        let _one = self.syncing.lock();
        if self.broken.load(Ordering::Acquire) {
            return false;
        }
        let folder = folder.unwrap_or(Path::new(""));
        let synced =
            reach("log.sync", folder).and_then(|()| file.sync_data()).and_then(|()| reach("log.synced", folder));
        let Err(error) = synced else { return true };
        let why = format!("the log could not be synced ({error}); changes are refused until the service is restarted");
        self.refuse(why, true);
        false
    }

    /// Refuses changes; `broken` is for good, so no later reason replaces that one.
    fn refuse(&self, why: String, broken: bool) {
        // All under the lock of `progress`: whoever sees the flag sees the reason, and `accept` cannot come in between.
        self.progress.send_modify(|p| {
            if !self.broken.fetch_or(broken, Ordering::AcqRel) {
                p.trouble = Some(why);
            }
            self.troubled.store(true, Ordering::Release);
        });
        // A thread between its look at `troubled` and its wait holds this lock, and would miss the notification.
        drop(self.pending.lock());
        self.rotated.notify_all();
    }

    /// Accepts changes again, unless a sync has failed in the meantime.
    fn accept(&self) {
        self.progress.send_modify(|p| {
            if !self.broken.load(Ordering::Acquire) {
                p.trouble = None;
                self.troubled.store(false, Ordering::Release);
            }
        });
    }

    /// Records that records up to this number are on disk: first in the folder, for recovery after a crash.
    fn mark_durable(&self, record: u64) {
        if record <= self.progress.borrow().durable {
            return;
        }
        if let Some(file) = self.syncing.lock().as_mut() {
            file.update(Synced { newest: 0, record });
        }
        self.progress.send_modify(|p| p.durable = p.durable.max(record));
        self.rotated.notify_all();
    }

    /// The syncing thread of `everysec`, so that the writing thread waits for a sync only when it begins a segment.
    fn sync_every_second(&self, folder: &Path) {
        let mut began: Option<Instant> = None;
        loop {
            let mut segment = self.segment.lock();
            while !segment.stop && (!segment.dirty || began.is_some_and(|began| began.elapsed() < SYNC_INTERVAL)) {
                match began.filter(|_| segment.dirty) {
                    Some(began) => drop(self.to_sync.wait_until(&mut segment, began + SYNC_INTERVAL)),
                    None => self.to_sync.wait(&mut segment),
                }
            }
            let Some(file) = segment.file.clone().filter(|_| !segment.stop) else { return };
            let record = segment.record;
            segment.dirty = false;
            drop(segment);
            began = Some(Instant::now());
            if !self.sync(Some(folder), &file) {
                return;
            }
            self.mark_durable(record);
        }
    }
}

struct Writer {
    folder: PathBuf,
    mode: Durability,
    shared: Arc<Shared>,
    file: Arc<File>,
    header: Header,
    /// The length of the segment, in complete blocks.
    length: u64,
    /// The memory charged for the block that is being written.
    held: Option<Reservation>,
    unsynced: bool,
}

impl Writer {
    fn run(&mut self) {
        let mut block = Vec::new();
        loop {
            let (first, records, rotate, stop) = self.take_pending(&mut block);
            let last = (first + u64::from(records)).saturating_sub(1);
            if !block.is_empty() {
                self.header.seal(&mut block, first, self.shared.progress.borrow().durable, records);
                if !self.write_until_space(&block) {
                    return;
                }
                block.clear();
                if block.capacity() > KEPT {
                    block = Vec::new();
                }
                self.held.iter_mut().for_each(Reservation::release);
                self.record_written(last);
            }
            if self.unsynced && (self.mode == Durability::Always || rotate || stop) {
                if !self.shared.sync(Some(&self.folder), &self.file) {
                    return;
                }
                self.unsynced = false;
            }
            if !self.unsynced {
                self.shared.mark_durable(last);
            }
            if rotate {
                self.begin_segment(last + 1);
            }
            if stop {
                self.shared.rotated.notify_all();
                return;
            }
        }
    }

    /// Waits for changes and takes them.
    fn take_pending(&mut self, block: &mut Vec<u8>) -> (u64, u32, bool, bool) {
        let mut pending = self.shared.pending.lock();
        while pending.block.is_empty() && !pending.rotate && !pending.stop {
            self.shared.work.wait(&mut pending);
        }
        if self.mode != Durability::Always && !pending.rotate && !pending.stop {
            // Collects changes: one write per change would cost more than the change.
            drop(pending);
            std::thread::sleep(WRITE_DELAY);
            pending = self.shared.pending.lock();
        }
        std::mem::swap(&mut pending.block, block);
        std::mem::swap(&mut pending.held, &mut self.held);
        let records = std::mem::take(&mut pending.records);
        let progress = self.shared.progress.borrow();
        // The disk was only slow. As long as `progress` is borrowed, `refuse` waits.
        if progress.trouble.is_none() {
            self.shared.troubled.store(false, Ordering::Release);
        }
        drop(progress);
        (pending.next - u64::from(records), records, pending.rotate, pending.stop)
    }

    /// Leaves the sync to the syncing thread, if there is one.
    fn record_written(&self, record: u64) {
        let mut segment = self.shared.segment.lock();
        (segment.record, segment.dirty) = (record, true);
        if self.mode == Durability::EverySecond {
            self.shared.to_sync.notify_all();
        }
    }

    /// Writes a block. While the disk is full, changes are refused and it tries again. False if the service stops.
    fn write_until_space(&mut self, block: &[u8]) -> bool {
        let mut refused = false;
        loop {
            let written = reach("log.write", &self.folder)
                .and_then(|()| self.file.write_all_at(block, self.length))
                .and_then(|()| reach("log.written", &self.folder));
            match written {
                Ok(()) => {
                    self.length += block.len() as u64;
                    self.shared.written.fetch_add(block.len() as u64, Ordering::Relaxed);
                    self.unsynced = true;
                    if refused {
                        self.shared.accept();
                    }
                    return true;
                }
                Err(error) => {
                    let _ = self.file.set_len(self.length);
                    if !refused {
                        refused = true;
                        let why = format!("the log cannot be written ({error}); changes are refused until it can");
                        self.shared.refuse(why, false);
                    }
                    let mut pending = self.shared.pending.lock();
                    if pending.stop {
                        return false;
                    }
                    let _ = self.shared.work.wait_for(&mut pending, RETRY);
                }
            }
        }
    }

    /// Begins the segment of record `first`, unless the current one is still empty.
    fn begin_segment(&mut self, first: u64) {
        let begun = if first == self.header.first {
            Ok(None)
        } else {
            let before = (self.header.first, first);
            let header = Header::new(first, before, self.header.fingerprint, self.header.filter_bytes);
            begin(&self.folder, header).map(Some)
        };
        match begun {
            Ok(begun) => {
                if let Some((file, header)) = begun {
                    (self.file, self.header) = (Arc::new(file), header);
                    (self.length, self.unsynced) = (segment::HEADER as u64, false);
                    let mut segment = self.shared.segment.lock();
                    (segment.file, segment.dirty) = (Some(self.file.clone()), false);
                    drop(segment);
                    if let Some(file) = self.shared.syncing.lock().as_mut() {
                        file.update(Synced { newest: first, record: first - 1 });
                    }
                }
                let mut pending = self.shared.pending.lock();
                (pending.boundary, pending.rotate) = (first, false);
            }
            // The current segment continues; the checkpoint that requested a new one fails.
            Err(fault) => self.shared.pending.lock().refuse_segment(fault),
        }
        self.shared.rotated.notify_all();
    }
}
