//! Recovery: loads the files of the manifest, then replays the log records that they do not include.
//!
//! Each file holds the number of its last record, so each record is applied once, even to counters.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fullbloom_core::parallel::workers;
use parking_lot::{Mutex, RwLock};

use super::cells::Cells;
use super::entry::Place;
use super::files::{filters_dir, list_filter_files, log_dir, sync};
use super::manifest::{Manifest, Row};
use super::salvage::Salvage;
use super::secrets::FolderState;
use super::segment_chain::{Chain, LSN_GAP};
use super::{Entry, Master, Options, Store, owners};
use crate::budget::Budget;
use crate::fault::{Code, Fault, Result};
use crate::kind::{self, Flavour, Note, Settings, add_recorded};
use crate::log::record::{StoredRecord, op};
use crate::log::segment::{self, End, Head, ReadOptions, Segment};
use crate::log::synced::Synced;
use crate::log::{Log, Start};

/// The threads that read files.
const THREADS: usize = 4;

fn new_store(options: Options, master: Master, log: Log, manifest: &Manifest) -> Store {
    Store {
        budget: Budget::new(options.limits.memory()),
        options,
        names: RwLock::default(),
        interner: Mutex::default(),
        transaction_lock: RwLock::new(()),
        catalogue_lock: Mutex::new(()),
        remote_names: RwLock::new(HashMap::new()),
        epoch: AtomicU64::new(1),
        catalogue_lsn: AtomicU64::new(0),
        next_id: AtomicU64::new(manifest.next_id),
        next_file: AtomicU64::new(manifest.next_file),
        new_files: Mutex::default(),
        cells: Cells::default(),
        master,
        log,
        checkpoint_lock: Mutex::new(()),
        checkpoint_bytes_logged: AtomicU64::new(0),
        skipped: Vec::new(),
    }
}

impl Store {
    /// Opens the store in the folder of `options`, or an empty one.
    pub fn open(options: Options) -> Result<Self> {
        let Some(folder) = options.folder.clone() else {
            let store = new_store(options, Master::random()?, Log::in_memory(), &Manifest::default());
            store.cells.bound(store.options.limits.total_bytes);
            return Ok(store);
        };
        for part in [filters_dir(&folder), log_dir(&folder)] {
            fs::create_dir_all(&part).map_err(Fault::io(&part))?;
        }
        let mut salvage = Salvage::new(&folder, options.salvage);
        let (files, segments) = (list_filter_files(&folder)?, segment::list(&log_dir(&folder))?);
        let manifest = Manifest::open(&folder, &segments, &mut salvage)?;
        let is_doubtful = !salvage.skipped.is_empty();
        let headers = segments.iter().filter_map(|(first, path)| segment::header_of(path, *first));
        let fingerprints: Vec<u64> = headers.map(|header| header.fingerprint).chain(manifest.fingerprint).collect();
        let is_new = manifest.rows.is_empty() && fingerprints.is_empty() && files.is_empty() && segments.is_empty();
        let master = Master::open(&folder, &FolderState { is_new, fingerprints: &fingerprints }, &mut salvage)?;
        let mut store = new_store(options, master, Log::in_memory(), &manifest);
        // Files may be newer than the manifest: a merge names its file in the log.
        let beyond = files.iter().map(|(file, _)| file + 1).max().unwrap_or(0);
        store.next_file.fetch_max(beyond, Ordering::Relaxed);
        store.read_files(&folder, &manifest, &mut salvage)?;
        let read = store.replay_log(&folder, &manifest, &segments, &mut salvage)?;
        if !salvage.skipped.is_empty() {
            // The next checkpoint would remove files that nothing names. They may contain what was skipped.
            let unnamed = |path: &PathBuf| is_doubtful || !read.named.contains(path);
            for (_, path) in files.iter().filter(|(_, path)| unnamed(path)) {
                salvage.skip(Some(path), format!("{}: no record names the filter it contains", path.display()))?;
            }
        }
        store.skipped = salvage.skipped;
        let limit = store.options.limits.filter_bytes;
        store.names.get_mut().entries().for_each(|entry| entry.write().bound(limit));
        let start = Start {
            next: read.next,
            before: read.before,
            fingerprint: store.master.fingerprint(),
            filter_bytes: limit,
        };
        store.log = Log::open(&log_dir(&folder), store.options.durability, start, &store.budget)?;
        if !store.skipped.is_empty() {
            store.checkpoint()?;
        } else if manifest.fingerprint.is_none() || manifest.boundary == 0 {
            // From here on it is known which log exists.
            let boundary = read.boundary.unwrap_or(store.log.newest());
            let fingerprint = Some(store.master.fingerprint());
            Manifest { boundary, fingerprint, ..manifest }.write(&folder)?;
        }
        store.cells.bound(store.options.limits.total_bytes);
        Ok(store)
    }

    /// The secret of a filter, if it is keyed.
    fn secret_of(&self, settings: &Settings) -> Option<[u8; 16]> {
        settings.spec.keyed.then(|| self.master().secret_of(settings.spec.seed))
    }

    /// Loads the filter in a file of the folder.
    fn read_file(&self, folder: &Path, id: u64, file: u64, settings: &Settings) -> Result<Box<dyn kind::Kind>> {
        let path = Place::own(file).path(folder, id);
        match settings.flavour {
            Flavour::Note => Note::open(&path),
            _ => kind::open(&path, self.secret_of(settings), u64::MAX),
        }
    }

    fn read_files(&self, folder: &Path, manifest: &Manifest, salvage: &mut Salvage) -> Result<()> {
        let bundles = Bundles { folder, read: Mutex::new(HashMap::new()) };
        let results = Mutex::new(Vec::with_capacity(manifest.rows.len()));
        workers::queue(manifest.rows.iter(), THREADS, |row| {
            let filter = match row.place.len {
                0 => self.read_file(folder, row.id, row.place.file, &row.settings),
                _ => self.read_bundled(&bundles, row),
            };
            results.lock().push((row, filter));
        });
        for (row, filter) in results.into_inner() {
            match filter {
                Ok(filter) => drop(self.insert_entry(self.restore_entry(row, filter))),
                Err(fault) => {
                    let file = row.place.path(folder, row.id);
                    salvage.skip(Some(&file), format!("{}: {}: {fault}", row.name, file.display()))?;
                }
            }
        }
        Ok(())
    }

    fn restore_entry(&self, row: &Row, filter: Box<dyn kind::Kind>) -> Arc<Entry> {
        let settings = self.interner.lock().intern(row.settings.clone());
        let entry = Entry::new(row.id, &row.name, settings, row.created, filter);
        entry.set_expires(Some(row.expires).filter(|&at| at != 0));
        entry.lsn.store(row.lsn, Ordering::Relaxed);
        entry.record_saved(row.lsn, row.place);
        Arc::new(entry)
    }

    fn read_bundled(&self, bundles: &Bundles<'_>, row: &Row) -> Result<Box<dyn kind::Kind>> {
        let bytes = bundles.of(row)?;
        let end = row.place.at.saturating_add(row.place.len);
        let range = usize::try_from(row.place.at).unwrap_or(usize::MAX)..usize::try_from(end).unwrap_or(usize::MAX);
        let bytes = bytes.get(range).ok_or_else(|| Fault::new(Code::Format, "the bundle is cut short"))?;
        match row.settings.flavour {
            Flavour::Note => Note::load(bytes),
            _ => kind::load(bytes, self.secret_of(&row.settings), u64::MAX),
        }
    }

    /// Replays the log; returns the next LSN.
    fn replay_log(
        &self,
        folder: &Path,
        manifest: &Manifest,
        segments: &[(u64, PathBuf)],
        salvage: &mut Salvage,
    ) -> Result<LogEnd> {
        let synced = Synced::read(&log_dir(folder));
        let mut by_id: HashMap<u64, Arc<Entry>> = self.entries_by_id();
        let mut named: HashSet<PathBuf> = manifest.rows.iter().map(|row| row.place.path(folder, row.id)).collect();
        let in_logs = log_dir(folder);
        let mut chain = Chain::new(manifest, &in_logs);
        let segments: Vec<_> = segments.iter().filter(|(first, _)| *first >= manifest.boundary).collect();
        for missing in chain.find_missing(&segments, synced) {
            salvage.skip(None, missing)?;
        }
        let mut next = manifest.known + 1;
        for (at, (first, path)) in segments.iter().enumerate() {
            let segment = Segment::open(path, *first)?;
            let last = at + 1 == segments.len();
            let used = synced.newest == *first || (manifest.fingerprint.is_some() && manifest.boundary == *first);
            if last && !used && matches!(segment.head, Head::Bad(_)) && segment.is_empty() {
                // A process began this segment and ended before it used it.
                fs::remove_file(path).map_err(Fault::io(path))?;
                continue;
            }
            if let Some(missing) = chain.find_gap(&segment, next) {
                salvage.skip(None, missing)?;
            }
            next = next.max(*first);
            let bound = if let Head::Sound(header) = segment.head { header.filter_bytes } else { u64::MAX };
            let context = ReplayContext { folder, manifest, bound, says_refused: segment.head != Head::First };
            // For each filter, the first record that could not be replayed.
            let mut lost: BTreeMap<u64, (String, Option<PathBuf>)> = BTreeMap::new();
            let options = ReadOptions { last, synced: synced.record, beyond_damage: salvage.enabled };
            let read = segment.read(options, |number, record| {
                let file = record.file().map(|file| Place::own(file).path(folder, record.id));
                named.extend(file.clone());
                let Err(fault) = self.replay_record(&context, &mut by_id, number, &record) else { return Ok(()) };
                let whose = by_id.get(&record.id).map_or(format!("filter {}", record.id), |entry| entry.name());
                let at = file.as_deref().unwrap_or(path);
                let what = format!("{whose}: {}: record {number}: {fault}", at.display());
                if file.is_some() {
                    // Nothing else contains the filter's keys.
                    by_id.remove(&record.id).and_then(|entry| self.remove_entry(&entry.name()));
                }
                lost.entry(record.id).or_insert((what, file));
                // Without --salvage, the first such record ends recovery.
                if salvage.enabled { Ok(()) } else { Err(fault) }
            });
            for (what, file) in lost.into_values() {
                salvage.skip(file.as_deref(), what)?;
            }
            let (end, after) = read?;
            next = next.max(after);
            chain.previous = Some((*first, after));
            // Files may contain the numbers of lost records, so these are not reused.
            next += if end == End::Whole { 0 } else { LSN_GAP };
            match end {
                End::Whole => {
                    // The process that wrote it may have ended before its sync. The next segment says that it is whole.
                    self.reach("log.replayed")?;
                    sync(path)?;
                }
                End::Cut(at) => truncate(path, at)?,
                End::Damaged(at) => {
                    chain.is_whole = false;
                    salvage.skip(Some(path), format!("{}: damaged at byte {at}", path.display()))?;
                }
            }
        }
        if !salvage.skipped.is_empty() {
            // The same holds for missing records, whose number is unknown.
            next = next.max(synced.record + 1) + LSN_GAP;
        }
        let boundary =
            segments.first().map(|(first, _)| *first).filter(|first| segment::path(&in_logs, *first).exists());
        Ok(LogEnd { next, before: chain.previous.unwrap_or_default(), boundary, named })
    }

    fn entries_by_id(&self) -> HashMap<u64, Arc<Entry>> {
        self.names.read().entries().map(|entry| (entry.id, entry.clone())).collect()
    }

    fn replay_record(
        &self,
        context: &ReplayContext<'_>,
        by_id: &mut HashMap<u64, Arc<Entry>>,
        number: u64,
        record: &StoredRecord,
    ) -> Result<()> {
        let ReplayContext { folder, manifest, .. } = *context;
        if op::is_catalogue_op(record.op) {
            return if number > manifest.known { self.replay_catalogue(folder, by_id, number, record) } else { Ok(()) };
        }
        let Some(entry) = by_id.get(&record.id) else { return self.check_known(record) };
        if entry.lsn.load(Ordering::Relaxed) >= number {
            return Ok(());
        }
        let mut filter = entry.write();
        // With the limit in force when the change was made, whatever the limit is now.
        filter.bound(context.bound);
        let done = match record.op {
            op::ADD | op::ADD_HASHED | op::ADD_TYPED => {
                let (domains, hashes) = record.keys()?;
                add_recorded(filter.as_mut(), domains, hashes.len(), |filter| entry.add_checked(filter, &hashes, None))
            }
            op::REMOVE => filter.remove(&record.words(), None),
            op::PAIRS | op::PAIRS_HASHED | op::PAIRS_TYPED => {
                let (domains, words) = record.keys()?;
                let (hashes, values) = words.split_at(words.len() / 2);
                add_recorded(filter.as_mut(), domains, hashes.len(), |filter| filter.add_pairs(hashes, values))
            }
            op::ADVANCE => filter.advance(f64::from_bits(record.words().first().copied().unwrap_or(0))).map(drop),
            op::CLEAR => filter.clear(),
            op::CLEAR_OWNERS => owners::clear(filter.as_mut(), &record.words(), &mut []),
            op::REMOVE_OWNERS => owners::remove(filter.as_mut(), &record.words(), &mut []),
            op::PIECE => match (filter.dump_format_mut(), record.body.split_first_chunk::<8>()) {
                (Some(filter), Some((number, bytes))) => filter.load(i64::from_le_bytes(*number), bytes),
                _ => Err(Fault::new(Code::Format, "a chunk for a filter that is not loaded in chunks")),
            },
            op::COMPACT => filter.dump_format_mut().map_or(Ok(()), |filter| filter.compact()),
            op::REPLACED => {
                *filter = self.read_file(folder, entry.id, record.file().unwrap_or(0), &entry.settings)?;
                filter.share(entry.account.clone());
                Ok(())
            }
            other => {
                return Err(Fault::new(Code::Format, format!("the log has operation {other}; use a newer release")));
            }
        };
        match done {
            // What was refused then is refused again, at the same key.
            Err(_) if record.refused => {}
            Err(fault) if !context.says_refused && matches!(fault.code, Code::Full | Code::Limit) => {}
            done => done?,
        }
        entry.lsn.store(number, Ordering::Relaxed);
        entry.account.set(filter.nbytes());
        Ok(())
    }

    /// Refuses a record of a filter that was never created. One that was dropped may have been changed until then.
    fn check_known(&self, record: &StoredRecord) -> Result<()> {
        if record.id < self.next_id.load(Ordering::Relaxed) {
            return Ok(());
        }
        Err(Fault::new(Code::Format, "the log does not contain the creation of the filter"))
    }

    fn replay_catalogue(
        &self,
        folder: &Path,
        by_id: &mut HashMap<u64, Arc<Entry>>,
        number: u64,
        record: &StoredRecord,
    ) -> Result<()> {
        match (record.op, by_id.get(&record.id).cloned()) {
            (op::CREATE | op::CREATE_WHOLE | op::CREATE_EXPIRING, None) => {
                let (name, created, settings) = kind::settings::parse(record.text()?)?;
                if settings.spec.keyed && self.master().is_foreign() {
                    return Err(Fault::new(Code::Format, format!("{name} is keyed, and its secret is missing")));
                }
                let filter = match record.file() {
                    None => kind::create(&settings.spec, self.master().hasher(&settings.spec))?,
                    Some(file) => self.read_file(folder, record.id, file, &settings)?,
                };
                let settings = self.interner.lock().intern(settings);
                let entry = Entry::new(record.id, &name, settings, created, filter);
                entry.set_expires(record.expires().flatten());
                self.insert_replayed(by_id, number, entry);
            }
            (op::NOTE, None) => {
                let (expires, line, text) = record.note()?;
                let (name, created, settings) = kind::settings::parse(line)?;
                let settings = self.interner.lock().intern(settings);
                let entry = Entry::new(record.id, &name, settings, created, Box::new(Note::new(text)?));
                entry.set_expires(Some(expires).filter(|&at| at != 0));
                self.insert_replayed(by_id, number, entry);
            }
            (op::DROP, Some(entry)) => {
                by_id.remove(&record.id);
                self.remove_entry(&entry.name());
            }
            (op::RENAME | op::RENAME_EXPIRING, Some(entry)) => {
                if let Some(expires) = record.expires() {
                    entry.set_expires(expires);
                }
                if let Some(replaced) = self.rename_entry(&entry.shared_name(), record.text()?) {
                    by_id.remove(&replaced.id);
                }
            }
            (op::EXPIRE, Some(entry)) => entry.set_expires(record.expires().flatten()),
            (_, None) => return self.check_known(record),
            _ => {}
        }
        Ok(())
    }

    /// Inserts a replayed entry, replacing the owner of its name.
    fn insert_replayed(&self, by_id: &mut HashMap<u64, Arc<Entry>>, number: u64, entry: Entry) {
        entry.lsn.store(number, Ordering::Relaxed);
        self.next_id.fetch_max(entry.id + 1, Ordering::Relaxed);
        let entry = Arc::new(entry);
        by_id.insert(entry.id, entry.clone());
        if let Some(replaced) = self.insert_entry(entry) {
            by_id.remove(&replaced.id);
        }
    }
}

/// How to replay the records of a segment.
struct ReplayContext<'a> {
    folder: &'a Path,
    manifest: &'a Manifest,
    /// The limit on the bytes of one filter when the records were written.
    bound: u64,
    /// True if the records of refused changes are marked as such.
    says_refused: bool,
}

/// The result of replaying a log.
struct LogEnd {
    next: u64,
    /// The newest segment, and the number after its last record.
    before: (u64, u64),
    boundary: Option<u64>,
    /// The files that the manifest or the log names. Skipped filters are dropped at the next checkpoint.
    named: HashSet<PathBuf>,
}

/// Removes an incomplete block, left by a crash, from the end of a segment, so that it parses later.
fn truncate(path: &Path, at: u64) -> Result<()> {
    let done = || {
        let file = fs::OpenOptions::new().write(true).open(path)?;
        file.set_len(at)?;
        file.sync_all()
    };
    done().map_err(Fault::io(path))
}

/// Bundles, each read once.
struct Bundles<'a> {
    folder: &'a Path,
    read: Mutex<HashMap<u64, Arc<Vec<u8>>>>,
}

impl Bundles<'_> {
    fn of(&self, row: &Row) -> Result<Arc<Vec<u8>>> {
        let mut read = self.read.lock();
        if let Some(bytes) = read.get(&row.place.file) {
            return Ok(bytes.clone());
        }
        let path = row.place.path(self.folder, row.id);
        let bytes = fs::read(&path).map_err(Fault::io(&path))?;
        let bytes = Arc::new(bytes);
        read.insert(row.place.file, bytes.clone());
        Ok(bytes)
    }
}
