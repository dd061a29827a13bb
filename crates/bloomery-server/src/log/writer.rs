//! [`Log`]: changes are handed in under a lock, one thread writes them, and everybody who waits shares one sync.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::watch;

use super::{Durability, Record, segment};
use crate::fault::{Code, Fault, Result};

/// Bytes that may wait to be written. Beyond it changes are refused: the disk is slower than they come.
const WAITING: usize = 256 << 20;
/// Room for changes that is kept when there are none.
const KEPT: usize = 4 << 20;
/// Without `always`, how long changes are gathered before they are written.
const GATHERED: Duration = Duration::from_millis(10);
/// How long after a full disk the next attempt is made.
const RETRY: Duration = Duration::from_millis(500);

/// What waits to be written.
#[derive(Default)]
struct Waiting {
    /// A block: its head, still empty, then records.
    block: Vec<u8>,
    records: u32,
    /// Number of the next record.
    next: u64,
    /// True: a new segment is to be begun, from the next record on.
    rotate: bool,
    /// Number of the first record of the newest segment.
    boundary: u64,
    /// True: it could not be.
    refused: bool,
    stop: bool,
}

/// How far the disk has come.
#[derive(Clone, Debug, Default)]
struct Progress {
    /// Records up to this number are as safe as the mode promises.
    durable: u64,
    /// Why nothing is taken at present.
    trouble: Option<String>,
}

struct Shared {
    waiting: Mutex<Waiting>,
    work: Condvar,
    progress: watch::Sender<Progress>,
    /// What is in `progress` as one word, to be asked before each change.
    troubled: AtomicBool,
    /// True after a sync failed: the kernel may have dropped what it was to write, so nothing mends it but a restart.
    broken: AtomicBool,
    written: AtomicU64,
    rotated: Condvar,
}

/// The log of a store; one without a folder only numbers changes.
pub struct Log {
    mode: Durability,
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    kept: bool,
}

impl Log {
    /// A log that keeps nothing.
    pub fn unkept() -> Self {
        Log { mode: Durability::Off, shared: shared(1), thread: Mutex::new(None), kept: false }
    }

    /// A log in `folder` whose next record has the number `next`: a new segment.
    pub fn open(folder: &Path, mode: Durability, next: u64) -> Result<Self> {
        let shared = shared(next);
        let file = begin(folder, next)?;
        let mut writer = Writer {
            folder: folder.to_owned(),
            mode,
            shared: shared.clone(),
            file,
            length: segment::HEADER as u64,
            synced: Instant::now(),
            unsynced: false,
        };
        let thread = std::thread::Builder::new().name("bloomery-log".into()).spawn(move || writer.run());
        let thread = thread.map_err(|error| Fault::new(Code::Io, format!("no thread for the log: {error}")))?;
        Ok(Log { mode, shared, thread: Mutex::new(Some(thread)), kept: true })
    }

    /// How safe an acknowledged change is.
    pub fn mode(&self) -> Durability {
        self.mode
    }

    /// Refuses a change while the disk takes none, before anything is changed.
    #[inline]
    pub fn admit(&self) -> Result<()> {
        if self.shared.troubled.load(Ordering::Acquire) { Err(self.refusal()) } else { Ok(()) }
    }

    #[cold]
    fn refusal(&self) -> Fault {
        let why = self.shared.progress.borrow().trouble.clone();
        Fault::new(Code::ReadOnly, why.unwrap_or_else(|| "the disk is slower than changes come; try again".into()))
    }

    /// Why nothing is taken at present.
    pub fn trouble(&self) -> Option<String> {
        self.shared.troubled.load(Ordering::Acquire).then(|| self.refusal().text)
    }

    /// Appends a record: its number. Called under the lock of what it is about, so that numbers have the order of changes.
    pub fn append(&self, record: &Record<'_>) -> Result<u64> {
        let mut waiting = self.shared.waiting.lock();
        let number = waiting.next;
        waiting.next += 1;
        if !self.kept {
            return Ok(number);
        }
        if waiting.block.is_empty() {
            waiting.block.resize(segment::BLOCK, 0);
            self.shared.work.notify_one();
        }
        record.write(&mut waiting.block);
        waiting.records += 1;
        if waiting.block.len() > WAITING {
            self.shared.troubled.store(true, Ordering::Release);
        }
        Ok(number)
    }

    /// Number of the next record.
    pub fn next(&self) -> u64 {
        self.shared.waiting.lock().next
    }

    /// Bytes written since it was opened.
    pub fn nbytes(&self) -> u64 {
        self.shared.written.load(Ordering::Relaxed)
    }

    /// Waits until a change is as safe as the mode promises; at once but for `always`.
    pub async fn durable(&self, number: u64) -> Result<()> {
        if self.mode != Durability::Always || !self.kept {
            return Ok(());
        }
        let mut progress = self.shared.progress.subscribe();
        let reached = progress.wait_for(|p| p.durable >= number || p.trouble.is_some()).await;
        reached.map_err(|_| stopped()).and_then(|p| confirmed(&p, number))
    }

    /// [`Log::durable`] for a thread of its own.
    pub fn wait(&self, number: u64) -> Result<()> {
        if self.mode != Durability::Always || !self.kept {
            return Ok(());
        }
        let progress = self.shared.progress.subscribe();
        loop {
            {
                let now = progress.borrow();
                if now.durable >= number || now.trouble.is_some() {
                    return confirmed(&now, number);
                }
            }
            let mut waiting = self.shared.waiting.lock();
            if waiting.stop {
                return Err(stopped());
            }
            let _ = self.shared.rotated.wait_for(&mut waiting, Duration::from_millis(5));
        }
    }

    /// Begins a new segment and tells the number of its first record: all before it lie in older ones, on disk.
    pub fn rotate(&self) -> Result<u64> {
        if !self.kept {
            return Ok(self.next());
        }
        let mut waiting = self.shared.waiting.lock();
        waiting.rotate = true;
        self.shared.work.notify_one();
        while waiting.rotate && !waiting.refused && !waiting.stop && !self.shared.troubled.load(Ordering::Acquire) {
            self.shared.rotated.wait(&mut waiting);
        }
        waiting.refused = false;
        if std::mem::take(&mut waiting.rotate) { Err(self.refusal()) } else { Ok(waiting.boundary) }
    }

    /// Writes and syncs what waits, and ends the thread.
    pub fn close(&self) {
        self.shared.waiting.lock().stop = true;
        self.shared.work.notify_one();
        if let Some(thread) = self.thread.lock().take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.close();
    }
}

fn shared(next: u64) -> Arc<Shared> {
    Arc::new(Shared {
        waiting: Mutex::new(Waiting { next, ..Waiting::default() }),
        work: Condvar::new(),
        progress: watch::channel(Progress { durable: next.saturating_sub(1), trouble: None }).0,
        troubled: AtomicBool::new(false),
        broken: AtomicBool::new(false),
        written: AtomicU64::new(0),
        rotated: Condvar::new(),
    })
}

fn confirmed(progress: &Progress, number: u64) -> Result<()> {
    match &progress.trouble {
        _ if progress.durable >= number => Ok(()),
        Some(why) => Err(Fault::new(Code::ReadOnly, format!("not acknowledged: {why}"))),
        None => Err(stopped()),
    }
}

fn stopped() -> Fault {
    Fault::new(Code::ReadOnly, "not acknowledged: the service stops")
}

/// A new segment, and its name, on disk.
fn begin(folder: &Path, first: u64) -> Result<File> {
    let path = segment::path(folder, first);
    let made = || {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&path)?;
        file.write_all(&segment::header(first))?;
        file.sync_all()?;
        File::open(folder)?.sync_all()?;
        Ok(file)
    };
    made().map_err(Fault::io(&path))
}

/// The thread.
struct Writer {
    folder: PathBuf,
    mode: Durability,
    shared: Arc<Shared>,
    file: File,
    /// Bytes of the segment that are whole blocks.
    length: u64,
    synced: Instant,
    unsynced: bool,
}

impl Writer {
    fn run(&mut self) {
        let mut block = Vec::new();
        loop {
            let (first, records, rotate, stop) = self.take(&mut block);
            if !block.is_empty() {
                segment::seal(&mut block, first, self.shared.progress.borrow().durable, records);
                if !self.write_until_there_is_room(&block) {
                    return;
                }
                block.clear();
                if block.capacity() > KEPT {
                    block = Vec::new();
                }
            }
            let due =
                self.mode == Durability::Always || self.synced.elapsed() >= Duration::from_secs(1) || rotate || stop;
            if self.unsynced && due && !(self.mode == Durability::Off && !rotate && !stop) && !self.sync() {
                return;
            }
            if self.mode == Durability::Always || !self.unsynced {
                self.reached(first + u64::from(records) - 1);
            }
            if rotate {
                self.turn(first + u64::from(records));
            }
            if stop {
                self.shared.rotated.notify_all();
                return;
            }
        }
    }

    /// Waits for work and takes it.
    fn take(&mut self, block: &mut Vec<u8>) -> (u64, u32, bool, bool) {
        let mut waiting = self.shared.waiting.lock();
        while waiting.block.is_empty() && !waiting.rotate && !waiting.stop {
            if self.unsynced && self.mode == Durability::EverySecond {
                if self.shared.work.wait_for(&mut waiting, Duration::from_secs(1)).timed_out() {
                    break;
                }
            } else {
                self.shared.work.wait(&mut waiting);
            }
        }
        if self.mode != Durability::Always && !waiting.rotate && !waiting.stop {
            // Gathers: a write for each change would cost more than the change.
            drop(waiting);
            std::thread::sleep(GATHERED);
            waiting = self.shared.waiting.lock();
        }
        std::mem::swap(&mut waiting.block, block);
        let records = std::mem::take(&mut waiting.records);
        let slow = !self.shared.broken.load(Ordering::Relaxed) && self.shared.progress.borrow().trouble.is_none();
        if slow {
            self.shared.troubled.store(false, Ordering::Release);
        }
        (waiting.next - u64::from(records), records, waiting.rotate, waiting.stop)
    }

    /// Writes a block; while the disk is full, changes are refused and it is tried again. False when the service stops.
    fn write_until_there_is_room(&mut self, block: &[u8]) -> bool {
        let mut told = false;
        loop {
            match self.file.write_all_at(block, self.length) {
                Ok(()) => {
                    self.length += block.len() as u64;
                    self.shared.written.fetch_add(block.len() as u64, Ordering::Relaxed);
                    self.unsynced = true;
                    if told {
                        self.shared.progress.send_modify(|p| p.trouble = None);
                        self.shared.troubled.store(false, Ordering::Release);
                    }
                    return true;
                }
                Err(error) => {
                    let _ = self.file.set_len(self.length);
                    if !told {
                        told = true;
                        self.refuse(format!("the log cannot be written ({error}); changes are refused until it can"));
                    }
                    let mut waiting = self.shared.waiting.lock();
                    if waiting.stop {
                        return false;
                    }
                    let _ = self.shared.work.wait_for(&mut waiting, RETRY);
                }
            }
        }
    }

    /// Syncs; false after a failure, which nothing mends.
    fn sync(&mut self) -> bool {
        match self.file.sync_data() {
            Ok(()) => {
                self.unsynced = false;
                self.synced = Instant::now();
                true
            }
            Err(error) => {
                self.shared.broken.store(true, Ordering::Relaxed);
                self.refuse(format!(
                    "the log could not be synced ({error}); changes are refused until the service is restarted"
                ));
                false
            }
        }
    }

    fn refuse(&self, why: String) {
        self.shared.troubled.store(true, Ordering::Release);
        self.shared.progress.send_modify(|p| p.trouble = Some(why));
        self.shared.rotated.notify_all();
    }

    fn reached(&self, number: u64) {
        self.shared.progress.send_if_modified(|p| {
            let further = number > p.durable;
            p.durable = p.durable.max(number);
            further
        });
        self.shared.rotated.notify_all();
    }

    /// Begins the segment of record `first`.
    fn turn(&mut self, first: u64) {
        match begin(&self.folder, first) {
            Ok(file) => {
                (self.file, self.length, self.unsynced) = (file, segment::HEADER as u64, false);
                let mut waiting = self.shared.waiting.lock();
                (waiting.boundary, waiting.rotate) = (first, false);
            }
            // The old one goes on; the checkpoint that asked is told.
            Err(_) => self.shared.waiting.lock().refused = true,
        }
        self.shared.rotated.notify_all();
    }
}
