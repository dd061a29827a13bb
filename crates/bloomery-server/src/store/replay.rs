//! The way back: the manifest's files, then the records of the log that they do not hold.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bloomery_core::parallel::workers;
use parking_lot::{Mutex, RwLock};

use super::entry::Place;
use super::folder::{filters, logs, numbered};
use super::manifest::{Manifest, Row};
use super::{Entry, Master, Options, Store};
use crate::fault::{Code, Fault, Result};
use crate::kind::{self, Flavour, Note, Settings};
use crate::log::Log;
use crate::log::record::{Read, op};
use crate::log::segment::{self, End};

/// Threads that read files.
const THREADS: usize = 4;

fn store(options: Options, master: Master, log: Log, manifest: &Manifest) -> Store {
    Store {
        options,
        names: RwLock::default(),
        alike: Mutex::default(),
        turn: RwLock::new(()),
        changing: Mutex::new(()),
        elsewhere: RwLock::new(HashMap::new()),
        epoch: AtomicU64::new(1),
        next_id: AtomicU64::new(manifest.next_id),
        next_file: AtomicU64::new(manifest.next_file),
        nbytes: AtomicU64::new(0),
        master,
        log,
        checkpointing: Mutex::new(()),
        checkpointed: AtomicU64::new(0),
        salvaged: Vec::new(),
    }
}

impl Store {
    /// The store in the folder of `options`, as it was; an empty one where there is none.
    pub fn open(options: Options) -> Result<Self> {
        let Some(folder) = options.folder.clone() else {
            return Ok(store(options, Master::drawn()?, Log::unkept(), &Manifest::default()));
        };
        for part in [filters(&folder), logs(&folder)] {
            fs::create_dir_all(&part).map_err(Fault::io(&part))?;
        }
        let master = Master::in_folder(&folder)?;
        let manifest = Manifest::read(&folder)?;
        let mut store = store(options, master, Log::unkept(), &manifest);
        // Files were written since the manifest was: merging names its own in the log.
        let beyond = numbered(&folder)?.iter().map(|(file, _)| file + 1).max().unwrap_or(0);
        store.next_file.fetch_max(beyond, Ordering::Relaxed);
        store.read_files(&folder, &manifest)?;
        let next = store.read_log(&folder, &manifest)?;
        store.log = Log::open(&logs(&folder), store.options.durability, next)?;
        if !store.salvaged.is_empty() {
            store.checkpoint()?;
        }
        Ok(store)
    }

    /// The secret of a filter, if it has one.
    fn secret_of(&self, settings: &Settings) -> Option<[u8; 16]> {
        settings.spec.keyed.then(|| self.master().secret_of(settings.spec.seed))
    }

    /// The filter in a file of the folder.
    fn read_file(&self, folder: &Path, id: u64, file: u64, settings: &Settings) -> Result<Box<dyn kind::Kind>> {
        let path = Place::own(file).path(folder, id);
        match settings.flavour {
            Flavour::Note => Note::open(&path),
            _ => kind::open(&path, self.secret_of(settings), self.options.limits.filter_bytes),
        }
    }

    fn read_files(&mut self, folder: &Path, manifest: &Manifest) -> Result<()> {
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
                Ok(filter) => drop(self.put(self.restored(row, filter))),
                Err(fault) => {
                    // A bundle stays: others lie in it. What is left out of it is gone with the next checkpoint.
                    let file = row.place.path(folder, row.id);
                    let text = format!("{}: {}: {fault}", row.name, file.display());
                    if row.place.len == 0 {
                        self.leave_out(folder, &file, text)?;
                    } else {
                        self.leave_out_copy(folder, &file, text)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn restored(&self, row: &Row, filter: Box<dyn kind::Kind>) -> Arc<Entry> {
        let settings = self.alike.lock().shared(row.settings.clone());
        let entry = Entry::new(row.id, &row.name, settings, row.created, filter);
        entry.set_expires(Some(row.expires).filter(|&at| at != 0));
        entry.lsn.store(row.lsn, Ordering::Relaxed);
        entry.note_saved(row.lsn, row.place);
        Arc::new(entry)
    }

    /// The filter in a bundle.
    fn read_bundled(&self, bundles: &Bundles<'_>, row: &Row) -> Result<Box<dyn kind::Kind>> {
        let bytes = bundles.of(row)?;
        let end = row.place.at.saturating_add(row.place.len);
        let range = usize::try_from(row.place.at).unwrap_or(usize::MAX)..usize::try_from(end).unwrap_or(usize::MAX);
        let bytes = bytes.get(range).ok_or_else(|| Fault::new(Code::Format, "the bundle is cut short"))?;
        match row.settings.flavour {
            Flavour::Note => Note::load(bytes),
            _ => kind::load(bytes, self.secret_of(&row.settings), self.options.limits.filter_bytes),
        }
    }

    /// [`Store::leave_out`] of a part of a file.
    fn leave_out_copy(&mut self, folder: &Path, file: &Path, what: String) -> Result<()> {
        let aside = folder.join("damaged");
        if self.options.salvage {
            let name = file.file_name().unwrap_or_default();
            let _ = fs::create_dir_all(&aside).and_then(|()| fs::copy(file, aside.join(name)));
        }
        self.leave_out(folder, &aside.join("nothing"), what)
    }

    /// Notes what cannot be read and puts its file aside, or refuses to go on without it.
    fn leave_out(&mut self, folder: &Path, file: &Path, what: String) -> Result<()> {
        if !self.options.salvage {
            let text = format!("{what}; restore a backup, or start with --salvage to go on without it");
            return Err(Fault::new(Code::Format, text));
        }
        let aside = folder.join("damaged");
        let name = file.file_name().unwrap_or_default();
        let moved = fs::create_dir_all(&aside).and_then(|()| fs::rename(file, aside.join(name)));
        if let Err(error) = moved
            && error.kind() != std::io::ErrorKind::NotFound
        {
            return Err(Fault::io(&aside)(error));
        }
        self.salvaged.push(what);
        Ok(())
    }

    /// Does what the log says; the number of the next record.
    fn read_log(&mut self, folder: &Path, manifest: &Manifest) -> Result<u64> {
        let segments = segment::list(&logs(folder))?;
        let mut next = manifest.known + 1;
        let mut by_id: HashMap<u64, Arc<Entry>> = self.entries_by_id();
        let last = segments.last().map(|(first, _)| *first);
        let mut lost = Vec::new();
        for (first, path) in segments {
            if first < manifest.boundary {
                continue;
            }
            next = next.max(first);
            let end = segment::read(&path, first, Some(first) == last, |number, record| {
                next = next.max(number + 1);
                match self.redo(folder, manifest, &mut by_id, number, &record) {
                    Err(fault) if record.file().is_some() => {
                        // Nothing else tells what the filter held.
                        by_id.remove(&record.id).and_then(|entry| self.take(&entry.name()));
                        lost.push((record, fault));
                        Ok(())
                    }
                    done => done,
                }
            })?;
            // Numbers of what was lost may stand in files already: they are not given again.
            next += if end == End::Whole { 0 } else { 1 << 32 };
            match end {
                End::Whole => {}
                End::Cut(at) => cut(&path, at)?,
                End::Damaged(at) => {
                    self.leave_out(folder, &path, format!("{}: damaged at byte {at}", path.display()))?;
                }
            }
        }
        for (record, fault) in lost {
            let path = Place::own(record.file().unwrap_or(0)).path(folder, record.id);
            self.leave_out(folder, &path, format!("{}: {fault}", path.display()))?;
        }
        Ok(next)
    }

    fn entries_by_id(&self) -> HashMap<u64, Arc<Entry>> {
        self.names.read().entries().map(|entry| (entry.id, entry.clone())).collect()
    }

    /// Does one record again.
    fn redo(
        &self,
        folder: &Path,
        manifest: &Manifest,
        by_id: &mut HashMap<u64, Arc<Entry>>,
        number: u64,
        record: &Read,
    ) -> Result<()> {
        if matches!(record.op, op::CREATE | op::CREATE_WHOLE | op::DROP | op::RENAME | op::EXPIRE | op::NOTE) {
            return if number > manifest.known { self.redo_catalogue(folder, by_id, number, record) } else { Ok(()) };
        }
        let Some(entry) = by_id.get(&record.id).filter(|entry| entry.lsn.load(Ordering::Relaxed) < number) else {
            return Ok(());
        };
        let words = record.words();
        let mut filter = entry.change();
        // What was refused when it happened is refused again, at the same key.
        let _ = match record.op {
            op::ADD => entry.add_to(filter.as_mut(), &words, None),
            op::REMOVE => filter.remove(&words, None),
            op::PAIRS => filter.add_pairs(&words[..words.len() / 2], &words[words.len() / 2..]),
            op::ADVANCE => filter.advance(f64::from_bits(words.first().copied().unwrap_or(0))).map(drop),
            op::CLEAR => filter.clear(),
            op::PIECE => match (filter.exchange_mut(), record.body.split_first_chunk::<8>()) {
                (Some(filter), Some((number, bytes))) => filter.load(i64::from_le_bytes(*number), bytes),
                _ => Ok(()),
            },
            op::COMPACT => filter.exchange_mut().map_or(Ok(()), |filter| filter.compact()),
            op::REPLACED => {
                *filter = self.read_file(folder, entry.id, record.file().unwrap_or(0), &entry.settings)?;
                Ok(())
            }
            other => {
                return Err(Fault::new(Code::Format, format!("the log has operation {other}; use a newer release")));
            }
        };
        entry.lsn.store(number, Ordering::Relaxed);
        self.recount(entry, filter.nbytes());
        Ok(())
    }

    fn redo_catalogue(
        &self,
        folder: &Path,
        by_id: &mut HashMap<u64, Arc<Entry>>,
        number: u64,
        record: &Read,
    ) -> Result<()> {
        match (record.op, by_id.get(&record.id).cloned()) {
            (op::CREATE | op::CREATE_WHOLE, None) => {
                let (line, file) = (if record.op == op::CREATE { 0 } else { 8 }, record.file());
                let line = std::str::from_utf8(record.body.get(line..).unwrap_or_default())
                    .map_err(|_| Fault::new(Code::Format, "a record's text is not UTF-8"))?;
                let (name, created, settings) = kind::settings::parse(line)?;
                let mut filter = match file {
                    None => kind::create(&settings.spec, self.master().hasher(&settings.spec))?,
                    Some(file) => self.read_file(folder, record.id, file, &settings)?,
                };
                filter.bound(self.options.limits.filter_bytes);
                let settings = self.alike.lock().shared(settings);
                self.put_again(by_id, number, Entry::new(record.id, &name, settings, created, filter));
            }
            (op::NOTE, None) => {
                let (expires, line, text) = record.note()?;
                let (name, created, settings) = kind::settings::parse(line)?;
                let settings = self.alike.lock().shared(settings);
                let entry = Entry::new(record.id, &name, settings, created, Box::new(Note::new(text)?));
                entry.set_expires(Some(expires).filter(|&at| at != 0));
                self.put_again(by_id, number, entry);
            }
            (op::DROP, Some(entry)) => {
                by_id.remove(&record.id);
                self.take(&entry.name());
            }
            (op::RENAME, Some(entry)) => {
                if let Some(replaced) = self.move_to(&entry.key(), record.text()?) {
                    by_id.remove(&replaced.id);
                }
            }
            (op::EXPIRE, Some(entry)) => entry.set_expires(record.words().first().copied().filter(|&at| at != 0)),
            _ => {}
        }
        Ok(())
    }

    /// Takes up what a record made, in place of what had its name.
    fn put_again(&self, by_id: &mut HashMap<u64, Arc<Entry>>, number: u64, entry: Entry) {
        entry.lsn.store(number, Ordering::Relaxed);
        self.next_id.fetch_max(entry.id + 1, Ordering::Relaxed);
        let entry = Arc::new(entry);
        by_id.insert(entry.id, entry.clone());
        if let Some(replaced) = self.put(entry) {
            by_id.remove(&replaced.id);
        }
    }
}

/// Takes off a segment what a crash has left of a block, so that later it reads as whole.
fn cut(path: &Path, at: u64) -> Result<()> {
    let done = || {
        if at < segment::HEADER as u64 {
            return fs::remove_file(path);
        }
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
