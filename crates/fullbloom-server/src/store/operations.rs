//! Batches of keys. A change is made and logged under the filter's lock, so that the log has the order of the changes.

use std::sync::atomic::Ordering;

use fullbloom_core::key::KeyDomains;

use super::{Entry, Store, Target};
use crate::fault::{Code, Fault, Result};
use crate::kind::{Kind, add_recorded};
use crate::log::Record;

/// The number of a log record. Its change is on disk once
/// [`Log::wait_until_durable`](crate::log::Log::wait_until_durable) returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lsn(pub u64);

/// Changes of this many keys take so long that connections on the same thread should not wait for them.
const MANY: usize = 4096;

/// True for a change of the whole filter, or of many keys.
fn is_long(record: &Record<'_>) -> bool {
    match record {
        Record::Add { hashes, .. } | Record::Remove { hashes, .. } | Record::Pairs { hashes, .. } => {
            hashes.len() >= MANY
        }
        Record::ClearOwners { owners, .. } | Record::RemoveOwners { owners, .. } => owners.len() >= MANY,
        _ => true,
    }
}

impl Entry {
    /// Adds keys in order, unless a strict filter would exceed its capacity. Replay uses it as well, so that what was
    /// refused is refused again.
    pub(super) fn add_checked(&self, filter: &mut dyn Kind, hashes: &[u64], new: Option<&mut [u8]>) -> Result<()> {
        if self.settings.strict && filter.num_added() + (hashes.len() / self.keying.width()) as u64 > filter.capacity()
        {
            return Err(Fault::new(Code::Full, "non scaling filter is full"));
        }
        filter.add(hashes, new)
    }
}

impl Store {
    /// Looks up keys; writes one result (0 or 1) per hash.
    pub fn contains(&self, entry: &Entry, hashes: &[u64], found: &mut [u8]) {
        entry.read().contains(hashes, found);
        self.count_answers(entry, found);
    }

    /// [`Store::contains`], unless the filter is being changed; then returns false and writes nothing.
    pub fn try_contains(&self, entry: &Entry, hashes: &[u64], found: &mut [u8]) -> bool {
        let Some(filter) = entry.try_read() else { return false };
        filter.contains(hashes, found);
        drop(filter);
        self.count_answers(entry, found);
        true
    }

    fn count_answers(&self, entry: &Entry, found: &[u8]) {
        let hits = found.iter().map(|&b| u64::from(b)).sum::<u64>();
        entry.counters.hits.fetch_add(hits, Ordering::Relaxed);
        entry.counters.misses.fetch_add(found.len() as u64 - hits, Ordering::Relaxed);
    }

    /// Adds keys in order; sets `new` to 1 for each key that was certainly new. After a fault, the keys before the
    /// refused one are added; how much of `new` is set is unspecified.
    pub fn add<'a>(&self, target: impl Into<Target<'a>>, hashes: &[u64], new: &mut [u8]) -> Result<Lsn> {
        let target = target.into();
        let entry = target.entry;
        entry.check_words(hashes, new.len())?;
        let (id, domains) = (entry.id, target.domains);
        let record = Record::Add { id, domains, hashes };
        let lsn = self.apply(target, &record, |filter| {
            add_recorded(filter, domains, hashes.len(), |filter| entry.add_checked(filter, hashes, Some(new)))
        })?;
        entry.counters.adds.fetch_add(new.len() as u64, Ordering::Relaxed);
        entry.counters.new.fetch_add(new.iter().map(|&b| u64::from(b)).sum(), Ordering::Relaxed);
        Ok(lsn)
    }

    /// Adds a key if it is absent, in one step; returns `None` if it is present.
    pub fn add_absent(&self, entry: &Entry, words: &[u64]) -> Result<Option<Lsn>> {
        self.log.admit()?;
        entry.check_words(words, 1)?;
        let mut filter = entry.write();
        let mut found = [0];
        filter.contains(words, &mut found);
        if found != [0] {
            return Ok(None);
        }
        let domains = KeyDomains::TEXT;
        let done = add_recorded(filter.as_mut(), domains, 1, |filter| entry.add_checked(filter, words, None));
        let lsn =
            self.log_change(entry, filter.as_ref(), &Record::Add { id: entry.id, domains, hashes: words }, done)?;
        entry.counters.adds.fetch_add(1, Ordering::Relaxed);
        entry.counters.new.fetch_add(1, Ordering::Relaxed);
        Ok(Some(lsn))
    }

    /// Adds keys with a label or value each.
    pub fn add_pairs<'a>(&self, target: impl Into<Target<'a>>, hashes: &[u64], values: &[u64]) -> Result<Lsn> {
        let target = target.into();
        let entry = target.entry;
        entry.check_words(hashes, values.len())?;
        let (id, domains) = (entry.id, target.domains);
        let record = Record::Pairs { id, domains, hashes, values };
        let lsn = self.apply(target, &record, |filter| {
            add_recorded(filter, domains, hashes.len(), |filter| filter.add_pairs(hashes, values))
        })?;
        entry.counters.adds.fetch_add(hashes.len() as u64, Ordering::Relaxed);
        Ok(lsn)
    }

    /// Removes keys in order; sets `removed` to 1 for each key that was not certainly absent.
    pub fn remove<'a>(&self, target: impl Into<Target<'a>>, hashes: &[u64], removed: &mut [u8]) -> Result<Lsn> {
        let target = target.into();
        let entry = target.entry;
        entry.check_words(hashes, removed.len())?;
        let record = Record::Remove { id: entry.id, hashes };
        let lsn = self.apply(target, &record, |filter| filter.remove(hashes, Some(removed)))?;
        entry.counters.removed.fetch_add(removed.iter().map(|&b| u64::from(b)).sum(), Ordering::Relaxed);
        Ok(lsn)
    }

    /// Removes all keys of a filter.
    pub fn clear<'a>(&self, target: impl Into<Target<'a>>) -> Result<Lsn> {
        let target = target.into();
        self.apply(target, &Record::Clear { id: target.entry.id }, |filter| filter.clear())
    }

    /// Advances the time of a filter with a window, in seconds.
    pub fn advance<'a>(&self, target: impl Into<Target<'a>>, now: f64) -> Result<Lsn> {
        let target = target.into();
        self.apply(target, &Record::Advance { id: target.entry.id, now }, |filter| filter.advance(now).map(drop))
    }

    /// Loads a chunk of a filter of RedisBloom; a refused chunk changes nothing.
    pub fn load_piece(&self, entry: &Entry, number: i64, bytes: &[u8]) -> Result<Lsn> {
        self.log.admit()?;
        let _long = entry.begin_long_change();
        let mut filter = entry.write();
        let unsupported = filter.unsupported("be loaded in pieces");
        filter.dump_format_mut().ok_or(unsupported)?.load(number, bytes)?;
        self.log_change(entry, filter.as_ref(), &Record::Piece { id: entry.id, number, bytes }, Ok(()))
    }

    /// Frees the space of removed keys, in a kind that does not do so by itself.
    pub fn compact(&self, entry: &Entry) -> Result<Lsn> {
        self.apply(entry.into(), &Record::Compact { id: entry.id }, |filter| {
            filter.dump_format_mut().map_or(Ok(()), |filter| filter.compact())
        })
    }

    /// Makes a change and logs it. A change that fails may be made in part, so it is logged as well: on replay it fails
    /// at the same key.
    pub(super) fn apply(
        &self,
        target: Target<'_>,
        record: &Record<'_>,
        work: impl FnOnce(&mut dyn Kind) -> Result<()>,
    ) -> Result<Lsn> {
        self.log.admit()?;
        let entry = target.entry;
        let _long = if is_long(record) { entry.begin_long_change() } else { None };
        let mut filter = entry.write();
        target.check()?;
        let done = work(filter.as_mut());
        self.log_change(entry, filter.as_ref(), record, done)
    }

    /// Logs a change of a filter, which is still locked.
    pub(super) fn log_change(
        &self,
        entry: &Entry,
        filter: &dyn Kind,
        record: &Record<'_>,
        done: Result<()>,
    ) -> Result<Lsn> {
        // Even if the log has no space, or the change failed after the filter had reserved bytes.
        entry.account.set(filter.nbytes());
        match &done {
            Err(fault) if matches!(fault.code, Code::Unsupported | Code::Invalid) => return Err(fault.clone()),
            _ => {}
        }
        entry.journals.record(record, filter);
        self.reach("change.applied")?;
        let lsn = if done.is_ok() { self.log.append(record)? } else { self.log.append_refused(record)? };
        self.reach("change.appended")?;
        entry.lsn.store(lsn, Ordering::Relaxed);
        self.reach("change.logged")?;
        done.map(|()| Lsn(lsn))
    }
}
