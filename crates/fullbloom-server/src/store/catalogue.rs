//! Names: create, find, drop, rename, expire; and the names of other nodes.
//!
//! A change of names is one record and one step in memory. Who owns a name, and in which version, is checked under the
//! lock of names. A filter that arrives complete is written to its file before the names change, without a lock
//! (`files`); checkpoints keep the file, and it is removed unless a record names it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use fullbloom_core::container::{ContainerIndex, Verify};

use super::cells::Reservation;
use super::entry::{self, Place};
use super::files::SMALL;
use super::target::{Conflict, Versions};
use super::{Entry, Lsn, Settings, Store, Target, now};
use crate::blocking::run_blocking;
use crate::fault::{Code, Fault, Result};
use crate::kind::{self, Kind, Spec};
use crate::log::Record;

/// The longest name, in bytes.
const NAME: usize = 128;

/// Validates a name: 1 to 128 of A-Z a-z 0-9 . _ : - { }. Clients of clusters put tags in braces.
pub(crate) fn check_name(name: &[u8]) -> Result<&str> {
    let plain = |&b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-' | b'{' | b'}');
    if name.is_empty() || name.len() > NAME || !name.iter().all(plain) {
        return Err(Fault::invalid("a name is 1 to 128 of A-Z a-z 0-9 . _ : - { }"));
    }
    std::str::from_utf8(name).map_err(|_| Fault::invalid("a name is ASCII"))
}

/// Where the contents of a new filter are.
#[derive(Clone, Copy)]
enum Contents {
    /// It is empty.
    Empty,
    /// In a file that the record names.
    InFile,
}

/// The options of a rename.
#[derive(Clone, Copy, Debug)]
pub struct RenameOptions<'a> {
    /// The new name.
    pub to: &'a [u8],
    /// What to do if the name is taken.
    pub conflict: Conflict<'a>,
    /// The numbers and versions that the filter may have; `None` allows any.
    pub versions: Option<Versions<'a>>,
    /// The new expiry: `Some(None)` means never, `None` leaves it unchanged.
    pub expires: Option<Option<u64>>,
}

impl Store {
    /// The filter of this name, unless it has expired. Does not find notes.
    pub fn filter(&self, name: &[u8]) -> Result<Arc<Entry>> {
        self.get(name).and_then(|entry| if entry.is_note() { Err(Fault::missing()) } else { Ok(entry) })
    }

    /// The filter or note of this name, unless it has expired.
    pub fn get(&self, name: &[u8]) -> Result<Arc<Entry>> {
        let name = std::str::from_utf8(name).map_err(|_| Fault::missing())?;
        let Some(entry) = self.find_by_name(name) else {
            self.check_local(name)?;
            return Err(Fault::missing());
        };
        if entry.expires().is_none() || entry.is_alive(now()) {
            return Ok(entry);
        }
        // It counts as expired even if the disk accepts no change.
        let _ = self.drop_if_expired(&entry);
        // In the meantime its expiry may have changed, or another filter may have taken its name.
        self.find_by_name(name).filter(|entry| entry.is_alive(now())).ok_or_else(Fault::missing)
    }

    /// The filter or note of this name, even if it has expired.
    pub(super) fn find_by_name(&self, name: &str) -> Option<Arc<Entry>> {
        self.names.read().get(name).cloned()
    }

    /// Refuses a name that belongs to another node; the fault names the node.
    pub(super) fn check_local(&self, name: &str) -> Result<()> {
        match self.remote_names.read().get(name) {
            None => Ok(()),
            Some(node) => Err(Fault::new(Code::Elsewhere, format!("{name} is stored on {node}"))),
        }
    }

    /// Sets which names belong to other nodes, with their addresses.
    pub fn set_remote_names(&self, names: impl IntoIterator<Item = (String, String)>) {
        *self.remote_names.write() = names.into_iter().collect();
    }

    /// All filters that have not expired, ordered by number, without notes.
    pub fn filters(&self) -> Vec<Arc<Entry>> {
        let mut entries = self.entries();
        entries.retain(|entry| !entry.is_note());
        entries
    }

    /// All filters and notes that have not expired, ordered by number.
    pub fn entries(&self) -> Vec<Arc<Entry>> {
        let now = now();
        self.names.read().entries().filter(|entry| entry.is_alive(now)).cloned().collect()
    }

    /// The entries with these numbers.
    pub fn entries_with_ids(&self, ids: &[u64]) -> Vec<Arc<Entry>> {
        let names = self.names.read();
        ids.iter().filter_map(|&id| names.by_id(id).cloned()).collect()
    }

    /// The next `most` filters with numbers above `number`, in order, without expired ones; and the number to continue
    /// from, or 0 at the end. Numbers only grow, so filters that come and go do not disturb the order.
    pub fn page(&self, number: u64, most: usize) -> (Vec<Arc<Entry>>, u64) {
        let now = now();
        let names = self.names.read();
        let mut rest = names.after(number);
        let mut page: Vec<Arc<Entry>> = rest.by_ref().take(most).cloned().collect();
        let next = if rest.next().is_some() { page.last().map_or(0, |entry| entry.id) } else { 0 };
        page.retain(|entry| entry.is_alive(now));
        (page, next)
    }

    /// The number of filters.
    pub fn num_filters(&self) -> usize {
        let names = self.names.read();
        names.len() - names.notes()
    }

    /// The number of filters and notes.
    pub fn len(&self) -> usize {
        self.names.read().len()
    }

    /// True if there are neither.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Creates an empty filter. Faults: `Exists`, `Invalid`, `Limit`, `Elsewhere`, `Unsupported`.
    pub fn create(&self, name: &[u8], settings: Settings) -> Result<(Arc<Entry>, Lsn)> {
        self.create_with_expiry(name, settings, None)
    }

    /// [`Store::create`] of a filter that expires, in milliseconds since 1970.
    pub fn create_with_expiry(
        &self,
        name: &[u8],
        settings: Settings,
        expires: Option<u64>,
    ) -> Result<(Arc<Entry>, Lsn)> {
        let name = check_name(name)?;
        self.check_conflict(name, Conflict::Refuse)?;
        let nbytes = kind::nbytes_for(&settings.spec)?;
        let room = self.reserve(nbytes, None)?;
        settings.spec.check()?;
        let create = || kind::create(&settings.spec, self.master.hasher(&settings.spec));
        // The kernel takes a second to supply a gigabyte of zeros.
        let mut filter = if nbytes < entry::SMALL { create() } else { run_blocking(create) }?;
        filter.bound(self.options.limits.filter_bytes);
        self.create_entry(name, settings, filter, expires, Contents::Empty, Conflict::Refuse, room)
    }

    /// Inserts an existing filter under a name; `replace` replaces one that has the name.
    pub fn restore(
        &self,
        name: &[u8],
        settings: Settings,
        filter: Box<dyn Kind>,
        replace: bool,
    ) -> Result<(Arc<Entry>, Lsn)> {
        self.restore_with(name, settings, filter, if replace { Conflict::Replace } else { Conflict::Refuse })
    }

    /// [`Store::restore`] with a choice of what may be replaced. Until this returns, lookups find the old filter, and
    /// afterwards the new one. A fault changes nothing.
    pub fn restore_with(
        &self,
        name: &[u8],
        settings: Settings,
        mut filter: Box<dyn Kind>,
        conflict: Conflict<'_>,
    ) -> Result<(Arc<Entry>, Lsn)> {
        let name = check_name(name)?;
        settings.spec.check()?;
        filter.bound(self.options.limits.filter_bytes);
        let room = self.reserve(filter.nbytes(), self.find_by_name(name).as_deref())?;
        self.create_entry(name, settings, filter, None, Contents::InFile, conflict, room)
    }

    /// The spec of the filter in the bytes of a file, and the filter, or why it cannot be loaded.
    pub fn read_filter(&self, bytes: &[u8]) -> Result<(Spec, Result<Box<dyn Kind>>)> {
        let header = ContainerIndex::new(bytes, Verify::Header)?.header;
        let (seed, keyed) = (header.seed, header.secret_fingerprint != 0);
        let secret = keyed.then(|| self.master.secret_of(seed));
        let filter = kind::load(bytes, secret, self.options.limits.filter_bytes);
        let kind = filter.as_ref().map_or("", |filter| filter.variant().name).into();
        Ok((Spec { kind, seed, keyed, ..Spec::default() }, filter))
    }

    /// The filter or note that loses its name to a change, unless it has expired.
    fn find_holder(&self, name: &str) -> Result<Option<Arc<Entry>>> {
        self.check_local(name)?;
        Ok(self.find_by_name(name).filter(|entry| entry.is_alive(now())))
    }

    /// Refuses early what [`Conflict::check`] will refuse, before memory is allocated or a file written.
    fn check_conflict(&self, name: &str, conflict: Conflict<'_>) -> Result<()> {
        conflict.check(self.find_holder(name)?.as_deref())
    }

    /// Rejects a filter that exceeds the limits. It may replace `replaced`, but both are in memory for a moment.
    pub(super) fn check_limits(&self, nbytes: u64, replaced: Option<&Entry>) -> Result<()> {
        self.check_bytes(nbytes)?;
        self.check_count(replaced)
    }

    /// Rejects a filter beyond the limit on their number, unless it replaces one.
    fn check_count(&self, replaced: Option<&Entry>) -> Result<()> {
        let most = self.options.limits.filters;
        // The replaced filter may have been dropped in the meantime.
        if self.len().saturating_sub(usize::from(replaced.is_some())) < most {
            return Ok(());
        }
        Err(Fault::new(Code::Limit, format!("the service holds {} filters, the maximum", most)))
    }

    /// Reserves bytes of cells for a filter that is being created, until it is counted with all others.
    fn reserve(&self, nbytes: u64, replaced: Option<&Entry>) -> Result<Reservation> {
        self.check_limits(nbytes, replaced)?;
        // Other clients may have taken them in the meantime.
        self.cells.reserve(nbytes).ok_or_else(|| self.too_large(nbytes, self.options.limits.total_bytes, "all filters"))
    }

    /// Rejects a filter that exceeds the limits on bytes.
    pub(super) fn check_bytes(&self, nbytes: u64) -> Result<()> {
        let limits = &self.options.limits;
        let (cap, whose) = if nbytes > limits.filter_bytes {
            (limits.filter_bytes, "one filter")
        } else if self.nbytes().saturating_add(nbytes) > limits.total_bytes {
            (limits.total_bytes, "all filters")
        } else {
            return Ok(());
        };
        Err(self.too_large(nbytes, cap, whose))
    }

    fn too_large(&self, nbytes: u64, cap: u64, whose: &str) -> Fault {
        let text =
            format!("the filter needs {nbytes} bytes, {whose} may have {cap}; lower the capacity or raise the cap");
        Fault::new(Code::Limit, text)
    }

    #[allow(clippy::too_many_arguments)] // the parts of an entry, and what its name must be
    /// Creates an entry, in one record of the log. Its file is written first, and removed after a fault.
    fn create_entry(
        &self,
        name: &str,
        settings: Settings,
        filter: Box<dyn Kind>,
        expires: Option<u64>,
        contents: Contents,
        conflict: Conflict<'_>,
        room: Reservation,
    ) -> Result<(Arc<Entry>, Lsn)> {
        self.log.admit()?;
        self.check_conflict(name, conflict)?;
        if settings.strict && filter.keying().is_pairs() {
            let text =
                "a bank cannot be strict: its capacity is that of each owner; give max_fpr=fpr, so that none grows";
            return Err(Fault::invalid(text));
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let entry = Arc::new(Entry::new(id, name, self.interner.lock().intern(settings), now(), filter));
        entry.set_expires(expires);
        let mut file = match contents {
            Contents::Empty => None,
            Contents::InFile => self.write_new(id, entry.read().as_ref())?,
        };
        let _one = self.lock_catalogue();
        let holder = self.find_holder(name)?;
        // Its version must not change between the check and the record.
        let _still = holder.as_ref().map(|holder| holder.read());
        conflict.check(holder.as_deref())?;
        self.check_count(self.find_by_name(name).as_deref())?;
        let whole = file.as_ref().map(|file| file.number);
        let line = kind::settings::line(name, entry.created, &entry.settings);
        let lsn = self.append_to_catalogue(&Record::Create { id, line, whole, expires })?;
        entry.lsn.store(lsn, Ordering::Relaxed);
        if let Some(file) = &mut file {
            file.keep();
            // The next checkpoint moves a small filter into a bundle.
            if entry.nbytes() > SMALL {
                entry.record_saved(lsn, Place::own(file.number));
            }
        }
        room.pass_to(&entry.account);
        self.insert_entry(entry.clone());
        Ok((entry, Lsn(lsn)))
    }

    /// Logs a change of names or expiries. The caller holds `catalogue_lock`.
    pub(super) fn append_to_catalogue(&self, record: &Record<'_>) -> Result<u64> {
        let lsn = self.log.append(record)?;
        self.catalogue_lsn.store(lsn, Ordering::Release);
        self.reach("catalogue.logged")?;
        Ok(lsn)
    }

    /// The number of the last change of names or expiries, on which replies about names depend.
    pub fn catalogue_lsn(&self) -> Lsn {
        Lsn(self.catalogue_lsn.load(Ordering::Acquire))
    }

    /// Inserts an entry, returning the one it replaced.
    pub(super) fn insert_entry(&self, entry: Arc<Entry>) -> Option<Arc<Entry>> {
        entry.share(&self.cells);
        let before = self.names.write().insert(entry);
        if let Some(before) = &before {
            before.account.leave();
        }
        self.epoch.fetch_add(1, Ordering::Release);
        before
    }

    pub(super) fn remove_entry(&self, name: &str) -> Option<Arc<Entry>> {
        let entry = self.names.write().remove(name)?;
        entry.account.leave();
        self.epoch.fetch_add(1, Ordering::Release);
        Some(entry)
    }

    /// Drops the filter or note of this name; `None` if it does not exist.
    pub fn drop_filter(&self, name: &[u8]) -> Result<Option<Lsn>> {
        Ok(self.drop_by_name(name, |_| Ok(true))?.map(|(_, lsn)| lsn))
    }

    /// Drops the filter of this name, in one of these versions if any are given; returns its number. Does not drop
    /// notes.
    pub fn drop_at(&self, name: &[u8], versions: Option<Versions<'_>>) -> Result<Option<(u64, Lsn)>> {
        self.drop_by_name(
            name,
            |entry| if entry.is_note() { Ok(false) } else { entry.at(versions).check().map(|()| true) },
        )
    }

    /// Drops a filter or note, even if it was renamed, unless it is already dropped.
    pub fn drop_entry(&self, entry: &Entry) -> Result<Option<Lsn>> {
        self.drop_if(entry, |_| true)
    }

    /// Drops a filter or note if it has expired. Checks again, because its expiry may have changed.
    pub(super) fn drop_if_expired(&self, entry: &Entry) -> Result<Option<Lsn>> {
        self.drop_if(entry, |entry| !entry.is_alive(now()))
    }

    fn drop_if(&self, entry: &Entry, is_due: impl FnOnce(&Entry) -> bool) -> Result<Option<Lsn>> {
        let _one = self.lock_catalogue();
        if !self.is_current(entry) || !is_due(entry) {
            return Ok(None);
        }
        self.log.admit()?;
        self.log_and_drop(entry).map(Some)
    }

    fn drop_by_name(&self, name: &[u8], check: impl FnOnce(&Entry) -> Result<bool>) -> Result<Option<(u64, Lsn)>> {
        let _one = self.lock_catalogue();
        let Ok(name) = std::str::from_utf8(name) else { return Ok(None) };
        self.check_local(name)?;
        let Some(entry) = self.find_by_name(name) else { return Ok(None) };
        self.log.admit()?;
        let _still = entry.read();
        if !check(&entry)? {
            return Ok(None);
        }
        self.log_and_drop(&entry).map(|lsn| Some((entry.id, lsn)))
    }

    /// Logs the drop of an entry and removes it. The caller holds `catalogue_lock`.
    fn log_and_drop(&self, entry: &Entry) -> Result<Lsn> {
        let lsn = self.append_to_catalogue(&Record::Drop { id: entry.id })?;
        self.remove_entry(&entry.shared_name());
        Ok(Lsn(lsn))
    }

    /// True if the entry still has its name: it was neither dropped nor replaced.
    fn is_current(&self, entry: &Entry) -> bool {
        self.find_by_name(&entry.shared_name()).is_some_and(|find_by_name| find_by_name.id == entry.id)
    }

    /// Renames a filter, replacing one that has the new name.
    pub fn rename(&self, from: &[u8], to: &[u8]) -> Result<Lsn> {
        self.rename_with(from, &RenameOptions { to, conflict: Conflict::Replace, versions: None, expires: None })
    }

    /// Renames a filter, in one record of the log. Until then, lookups find the previous owner of the new name.
    pub fn rename_with(&self, from: &[u8], options: &RenameOptions<'_>) -> Result<Lsn> {
        self.rename_current(self.get(from)?.as_ref(), options)
    }

    /// [`Store::rename_with`] of an entry, which must still have a name.
    pub fn rename_current(&self, entry: &Entry, options: &RenameOptions<'_>) -> Result<Lsn> {
        let to = check_name(options.to)?;
        self.check_local(to)?;
        let _one = self.lock_catalogue();
        if !self.is_current(entry) {
            return Err(Fault::missing());
        }
        self.log.admit()?;
        let holder = self.find_holder(to)?;
        let is_itself = holder.as_ref().is_some_and(|holder| holder.id == entry.id);
        let replaced = holder.as_ref().filter(|_| !is_itself);
        let (_still, _replaced) = (entry.read(), replaced.map(|replaced| replaced.read()));
        entry.at(options.versions).check()?;
        if !is_itself || matches!(options.conflict, Conflict::Refuse) {
            options.conflict.check(holder.as_deref())?;
        }
        let expires = options.expires.map(|at| at.unwrap_or(0));
        let record = Record::Rename { id: entry.id, name: to.to_string(), expires };
        let lsn = self.append_to_catalogue(&record)?;
        // In one step, so that lookups never find the new name unused.
        self.rename_entry(&entry.shared_name(), to);
        if let Some(at) = options.expires {
            entry.set_expires(at);
        }
        Ok(Lsn(lsn))
    }

    /// Renames an entry, returning the one it replaced.
    pub(super) fn rename_entry(&self, from: &str, to: &str) -> Option<Arc<Entry>> {
        let mut names = self.names.write();
        let entry = names.remove(from)?;
        entry.rename(to);
        let before = names.insert(entry);
        if let Some(before) = &before {
            before.account.leave();
        }
        self.epoch.fetch_add(1, Ordering::Release);
        before
    }

    /// Sets when a filter expires, in milliseconds since 1970; `None` means never.
    pub fn set_expiry<'a>(&self, target: impl Into<Target<'a>>, at: Option<u64>) -> Result<Lsn> {
        let target = target.into();
        let lsn = self.update_expiry(target, |_| Some(at))?;
        lsn.ok_or_else(Fault::missing)
    }

    /// Sets when a filter expires. `decide` maps the old expiry to the new one; `None` changes nothing. Changes nothing
    /// if the filter was dropped.
    pub fn update_expiry<'a>(
        &self,
        target: impl Into<Target<'a>>,
        decide: impl FnOnce(Option<u64>) -> Option<Option<u64>>,
    ) -> Result<Option<Lsn>> {
        let _one = self.lock_catalogue();
        self.log.admit()?;
        let target = target.into();
        let entry = target.entry;
        let _still = entry.read();
        target.check()?;
        let wanted = if self.is_current(entry) { decide(entry.expires()) } else { None };
        let Some(at) = wanted else { return Ok(None) };
        let lsn = self.append_to_catalogue(&Record::Expire { id: entry.id, at: at.unwrap_or(0) })?;
        entry.set_expires(at);
        Ok(Some(Lsn(lsn)))
    }

    /// Drops the expired filters; returns how many.
    pub fn drop_expired(&self) -> Result<usize> {
        let now = now();
        let due: Vec<Arc<Entry>> = self.names.read().entries().filter(|entry| !entry.is_alive(now)).cloned().collect();
        let mut dropped = 0;
        for entry in due {
            dropped += usize::from(self.drop_if_expired(&entry)?.is_some());
        }
        Ok(dropped)
    }
}
