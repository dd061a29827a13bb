//! Names: making, finding, dropping, renaming, and those that live elsewhere.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Entry, Lsn, Settings, Store, Target, now};
use crate::fault::{Code, Fault, Result};
use crate::kind::{self, Kind};
use crate::log::Record;

/// Longest name.
const NAME: usize = 128;

/// A name, if it is one: 1 to 128 of A-Z a-z 0-9 . _ : - { }. Braces, since clients of clusters have tags in them.
pub(super) fn check_name(name: &[u8]) -> Result<&str> {
    let plain = |&b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-' | b'{' | b'}');
    if name.is_empty() || name.len() > NAME || !name.iter().all(plain) {
        return Err(Fault::invalid("a name is 1 to 128 of A-Z a-z 0-9 . _ : - { }"));
    }
    std::str::from_utf8(name).map_err(|_| Fault::invalid("a name is ASCII"))
}

impl Store {
    /// The filter of this name, unless its time has come; a note is none.
    pub fn filter(&self, name: &[u8]) -> Result<Arc<Entry>> {
        self.get(name).and_then(|entry| if entry.is_note() { Err(Fault::missing()) } else { Ok(entry) })
    }

    /// The filter or note of this name, unless its time has come.
    pub fn get(&self, name: &[u8]) -> Result<Arc<Entry>> {
        let name = std::str::from_utf8(name).map_err(|_| Fault::missing())?;
        if let Some(entry) = self.names.read().get(name) {
            if entry.expires().is_none() || entry.lives(now()) {
                return Ok(entry.clone());
            }
        } else {
            self.check_here(name)?;
            return Err(Fault::missing());
        }
        self.drop_filter(name.as_bytes()).and(Err(Fault::missing()))
    }

    /// What has a name here, whether its time has come or not.
    pub(super) fn standing(&self, name: &str) -> Option<Arc<Entry>> {
        self.names.read().get(name).cloned()
    }

    /// Refuses a name that lives on another node, and says on which.
    pub(super) fn check_here(&self, name: &str) -> Result<()> {
        match self.elsewhere.read().get(name) {
            None => Ok(()),
            Some(node) => Err(Fault::new(Code::Elsewhere, format!("{name} lives on {node}"))),
        }
    }

    /// Says which names live on other nodes, and where.
    pub fn set_elsewhere(&self, names: impl IntoIterator<Item = (String, String)>) {
        *self.elsewhere.write() = names.into_iter().collect();
    }

    /// All filters whose time has not come, in order of their numbers; notes are none.
    pub fn filters(&self) -> Vec<Arc<Entry>> {
        let mut entries = self.entries();
        entries.retain(|entry| !entry.is_note());
        entries
    }

    /// All filters and notes whose time has not come, in order of their numbers.
    pub fn entries(&self) -> Vec<Arc<Entry>> {
        let now = now();
        self.names.read().entries().filter(|entry| entry.lives(now)).cloned().collect()
    }

    /// Those of some numbers that there are.
    pub fn numbered(&self, numbers: &[u64]) -> Vec<Arc<Entry>> {
        let names = self.names.read();
        numbers.iter().filter_map(|&number| names.numbered(number).cloned()).collect()
    }

    /// Those among the `most` filters with the next numbers above `number`, in order, and the number to go on from; 0 at
    /// the end. Numbers only grow, so that one means the same whatever comes and goes.
    pub fn page(&self, number: u64, most: usize) -> (Vec<Arc<Entry>>, u64) {
        let now = now();
        let names = self.names.read();
        let mut rest = names.after(number);
        let mut page: Vec<Arc<Entry>> = rest.by_ref().take(most).cloned().collect();
        let next = if rest.next().is_some() { page.last().map_or(0, |entry| entry.id) } else { 0 };
        page.retain(|entry| entry.lives(now));
        (page, next)
    }

    /// How many filters there are.
    pub fn num_filters(&self) -> usize {
        let names = self.names.read();
        names.len() - names.notes()
    }

    /// How many filters and notes there are.
    pub fn len(&self) -> usize {
        self.names.read().len()
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes an empty filter. Faults: `Exists`, `Invalid`, `Limit`, `Elsewhere`, `Unsupported`.
    pub fn create(&self, name: &[u8], settings: Settings) -> Result<(Arc<Entry>, Lsn)> {
        let name = check_name(name)?;
        self.check_free(name)?;
        self.check_room(kind::nbytes_for(&settings.spec)?)?;
        settings.spec.check()?;
        let mut filter = kind::create(&settings.spec, self.master.hasher(&settings.spec))?;
        filter.bound(self.options.limits.filter_bytes);
        self.insert(name, settings, filter, true)
    }

    /// Puts a filter that is there already under a name, in place of one that has it if `replace`.
    pub fn restore(
        &self,
        name: &[u8],
        settings: Settings,
        filter: Box<dyn Kind>,
        replace: bool,
    ) -> Result<(Arc<Entry>, Lsn)> {
        self.restore_at(name, settings, filter, replace, None)
    }

    /// [`Store::restore`] in place of one of these versions, if any are given.
    pub fn restore_at(
        &self,
        name: &[u8],
        settings: Settings,
        filter: Box<dyn Kind>,
        replace: bool,
        versions: Option<&[(u64, u64)]>,
    ) -> Result<(Arc<Entry>, Lsn)> {
        let name = check_name(name)?;
        self.check_room(filter.nbytes())?;
        settings.spec.check()?;
        if replace && self.names.read().has(name) {
            self.drop_at(name.as_bytes(), versions)?;
        }
        self.insert(name, settings, filter, false)
    }

    /// Refuses a name that a filter has, here or elsewhere.
    fn check_free(&self, name: &str) -> Result<()> {
        self.check_here(name)?;
        let taken = self.names.read().has(name);
        if taken { Err(Fault::new(Code::Exists, "item exists")) } else { Ok(()) }
    }

    /// Refuses one with so many bytes more.
    pub(super) fn check_room(&self, nbytes: u64) -> Result<()> {
        self.check_bytes(nbytes)?;
        let most = self.options.limits.filters;
        if self.len() < most {
            return Ok(());
        }
        Err(Fault::new(Code::Limit, format!("the service holds {} filters, its most", most)))
    }

    /// Refuses so many bytes more.
    pub(super) fn check_bytes(&self, nbytes: u64) -> Result<()> {
        let limits = &self.options.limits;
        let (cap, whose) = if nbytes > limits.filter_bytes {
            (limits.filter_bytes, "one filter")
        } else if self.nbytes().saturating_add(nbytes) > limits.total_bytes {
            (limits.total_bytes, "all filters")
        } else {
            return Ok(());
        };
        let text =
            format!("the filter needs {nbytes} bytes, {whose} may have {cap}; lower the capacity or raise the cap");
        Err(Fault::new(Code::Limit, text))
    }

    fn insert(&self, name: &str, settings: Settings, filter: Box<dyn Kind>, empty: bool) -> Result<(Arc<Entry>, Lsn)> {
        let _one = self.changing.lock();
        self.check_free(name)?;
        self.log.admit()?;
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let entry = Arc::new(Entry::new(id, name, self.alike.lock().shared(settings), now(), filter));
        let whole = if empty { None } else { self.write_file(&entry, entry.look().as_ref())? };
        let line = kind::settings::line(name, entry.created, &entry.settings);
        let lsn = self.log.append(&Record::Create { id, line, whole })?;
        entry.lsn.store(lsn, Ordering::Relaxed);
        self.put(entry.clone());
        Ok((entry, Lsn(lsn)))
    }

    /// Takes one up under its name: what lost the name to it.
    pub(super) fn put(&self, entry: Arc<Entry>) -> Option<Arc<Entry>> {
        self.nbytes.fetch_add(entry.counted.load(Ordering::Relaxed), Ordering::Relaxed);
        let before = self.names.write().insert(entry);
        if let Some(before) = &before {
            self.nbytes.fetch_sub(before.counted.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.epoch.fetch_add(1, Ordering::Release);
        before
    }

    pub(super) fn take(&self, name: &str) -> Option<Arc<Entry>> {
        let entry = self.names.write().remove(name)?;
        self.nbytes.fetch_sub(entry.counted.load(Ordering::Relaxed), Ordering::Relaxed);
        self.epoch.fetch_add(1, Ordering::Release);
        Some(entry)
    }

    /// Drops the filter of this name; none where there was none.
    pub fn drop_filter(&self, name: &[u8]) -> Result<Option<Lsn>> {
        self.drop_at(name, None)
    }

    /// [`Store::drop_filter`] of one of these versions, if any are given.
    pub fn drop_at(&self, name: &[u8], versions: Option<&[(u64, u64)]>) -> Result<Option<Lsn>> {
        let _one = self.changing.lock();
        let Ok(name) = std::str::from_utf8(name) else { return Ok(None) };
        self.check_here(name)?;
        let Some(entry) = self.names.read().get(name).cloned() else { return Ok(None) };
        self.log.admit()?;
        let _still = entry.look();
        entry.at(versions).check()?;
        let lsn = self.log.append(&Record::Drop { id: entry.id })?;
        self.take(name);
        Ok(Some(Lsn(lsn)))
    }

    /// Gives a filter another name, in place of the filter that has it.
    pub fn rename(&self, from: &[u8], to: &[u8]) -> Result<Lsn> {
        self.rename_at(from, to, None)
    }

    /// [`Store::rename`] of one of these versions, if any are given.
    pub fn rename_at(&self, from: &[u8], to: &[u8], versions: Option<&[(u64, u64)]>) -> Result<Lsn> {
        let to = check_name(to)?;
        self.check_here(to)?;
        let entry = self.get(from)?;
        let _one = self.changing.lock();
        // Another client may have dropped it, or set another in its place.
        let from = entry.key();
        if self.standing(&from).is_none_or(|standing| standing.id != entry.id) {
            return Err(Fault::missing());
        }
        self.log.admit()?;
        let replaced = self.standing(to).filter(|standing| standing.id != entry.id);
        let (_still, _replaced) = (entry.look(), replaced.as_ref().map(|replaced| replaced.look()));
        entry.at(versions).check()?;
        let lsn = self.log.append(&Record::Rename { id: entry.id, name: to.to_string() })?;
        // In one step for whoever looks: there is never nothing under a name that had something.
        self.move_to(&from, to);
        Ok(Lsn(lsn))
    }

    /// Moves what is under one name to another: what lost the name to it.
    pub(super) fn move_to(&self, from: &str, to: &str) -> Option<Arc<Entry>> {
        let mut names = self.names.write();
        let entry = names.remove(from)?;
        entry.rename(to);
        let before = names.insert(entry);
        if let Some(before) = &before {
            self.nbytes.fetch_sub(before.counted.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.epoch.fetch_add(1, Ordering::Release);
        before
    }

    /// Says when a filter is dropped, in milliseconds since 1970, or that it is not.
    pub fn expire<'a>(&self, target: impl Into<Target<'a>>, at: Option<u64>) -> Result<Lsn> {
        let _one = self.changing.lock();
        self.log.admit()?;
        let target = target.into();
        let entry = target.entry;
        let _still = entry.look();
        target.check()?;
        let lsn = self.log.append(&Record::Expire { id: entry.id, at: at.unwrap_or(0) })?;
        entry.set_expires(at);
        Ok(Lsn(lsn))
    }

    /// Drops the filters whose time has come: how many.
    pub fn drop_expired(&self) -> Result<usize> {
        let now = now();
        let due: Vec<String> = {
            let names = self.names.read();
            names.entries().filter(|entry| !entry.lives(now)).map(|entry| entry.name()).collect()
        };
        due.iter().try_for_each(|name| self.drop_filter(name.as_bytes()).map(drop))?;
        Ok(due.len())
    }
}
