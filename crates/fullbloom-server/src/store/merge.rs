//! Merges one filter into another.
//!
//! The result cannot be expressed as keys, so it is written to a file, which one log record names. It is built beside
//! the filter, from a copy, and clients continue to add keys. These keys are added to the result as well, in the same
//! order, and their records are repeated after the record of the merge, in one block with it: replay loads the file and
//! adds what it lacks. Small and strict filters, and filters with other changes, are not changed in the meantime.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::cells::Account;
use super::entry::{Place, SMALL};
use super::files::NewFile;
use super::journal::{MOST, Runs};
use super::slices::FilterCopy;
use super::{Entry, Lsn, Store, Target};
use crate::blocking::run_blocking;
use crate::fault::Result;
use crate::kind::{Kind, add_recorded};
use crate::log::Record;

/// The most words of keys that are added to the result while changes wait.
const FEW: usize = 1024;
/// The most rounds in which keys are added before that.
const ROUNDS: usize = 100;
/// The most words of keys of all rounds, 16 MiB: a merge that is twice as fast as its clients needs no more after a
/// first round of a whole journal. Beyond that the filters are merged while changes wait. Without this limit 100 rounds
/// held 800 MiB, and wrote them to the log as one block.
const MOST_ADDED: usize = 2 * MOST;

impl Store {
    /// Merges the keys of `source` into a filter, which serves lookups in the meantime.
    pub fn merge<'a>(&self, target: impl Into<Target<'a>>, source: &Entry) -> Result<Lsn> {
        self.log.admit()?;
        let target = target.into();
        let entry = target.entry;
        let _one = entry.merge_lock.try_lock().unwrap_or_else(|| run_blocking(|| entry.merge_lock.lock()));
        let _held = self.budget.take(entry.nbytes())?;
        // A filter that must keep its version, or its limit on keys, must not change in the meantime.
        if entry.nbytes() >= SMALL
            && !target.has_versions()
            && !entry.settings.strict
            && !std::ptr::eq(source, entry)
            && let Some(lsn) = self.merge_concurrently(entry, source, entry.copy_with_journal()?)?
        {
            return Ok(lsn);
        }
        self.merge_exclusively(target, source)
    }

    /// [`Store::merge`] while keys are added. `None`, without any change, if there was another change.
    fn merge_concurrently(&self, entry: &Entry, source: &Entry, copied: FilterCopy<'_>) -> Result<Option<Lsn>> {
        let FilterCopy { filter: mut merged, journal, .. } = copied;
        let growth = self.admit_growth(merged.as_mut());
        match source.snapshot(&self.budget) {
            Ok(source) => merged.merge(source.filter())?,
            // There is no memory for a copy.
            Err(_) => source.with_whole(|source| merged.merge(source))?,
        }
        let mut file = self.write_new(entry.id, merged.as_ref())?;
        let mut added = Runs::default();
        for _ in 0..ROUNDS {
            self.reach("merge.round")?;
            let Some(runs) = journal.take_added() else { return Ok(None) };
            if !added.extend(&runs, MOST_ADDED) || !add_runs(merged.as_mut(), &runs) {
                return Ok(None);
            }
            if runs.words().len() <= FEW {
                break;
            }
        }
        let _names = self.lock_catalogue();
        let mut filter = entry.write();
        match journal.take_added() {
            Some(runs) if added.extend(&runs, MOST_ADDED) && add_runs(merged.as_mut(), &runs) => {}
            _ => return Ok(None),
        }
        let (lsn, before) = self.replace(entry, &mut filter, (merged, growth), &mut file, &added)?;
        // The kernel takes 50 ms to free half a gigabyte.
        drop(filter);
        drop(before);
        Ok(Some(lsn))
    }

    /// [`Store::merge`] without changes of the filter in the meantime.
    fn merge_exclusively(&self, target: Target<'_>, source: &Entry) -> Result<Lsn> {
        let entry = target.entry;
        let steady = entry.read_upgradable();
        target.check()?;
        let mut merged = steady.filter.duplicate()?;
        let growth = self.admit_growth(merged.as_mut());
        if std::ptr::eq(source, entry) {
            merged.merge(steady.filter.as_ref())?;
        } else {
            source.with_whole(|source| merged.merge(source))?;
        }
        let mut file = self.write_new(entry.id, merged.as_ref())?;
        let _names = self.lock_catalogue();
        let (mut filter, _long) = steady.upgrade();
        let (lsn, before) = self.replace(entry, &mut filter, (merged, growth), &mut file, &Runs::default())?;
        drop(filter);
        drop(before);
        Ok(lsn)
    }

    /// Limits the growth of a result. Its account returns that growth unless the result replaces the filter.
    fn admit_growth(&self, merged: &mut dyn Kind) -> Arc<Account> {
        let growth = Account::new(0);
        growth.join(&self.cells);
        merged.bound(self.options.limits.filter_bytes);
        merged.share(growth.clone());
        growth
    }

    /// Replaces `filter`, which is locked, by the result, and returns the old one. `file` contains the result except
    /// the keys `added` since. The caller holds `catalogue_lock`, so that no manifest is made between the record and
    /// the update of the entry.
    fn replace(
        &self,
        entry: &Entry,
        filter: &mut Box<dyn Kind>,
        (mut merged, growth): (Box<dyn Kind>, Arc<Account>),
        file: &mut Option<NewFile<'_>>,
        added: &Runs,
    ) -> Result<(Lsn, Box<dyn Kind>)> {
        let number = file.as_ref().map_or(0, |file| file.number);
        self.reach("change.applied")?;
        let mut records = vec![Record::Replaced { id: entry.id, file: number }];
        let adds = added.iter().map(|(domains, hashes)| Record::Add { id: entry.id, domains, hashes });
        records.extend(adds);
        let first = self.log.append_all(&records)?;
        if let Some(file) = file {
            file.keep();
        }
        merged.share(entry.account.clone());
        let before = std::mem::replace(filter, merged);
        entry.journals.invalidate();
        entry.account.set_replaced(filter.nbytes(), &growth);
        entry.record_saved(first, Place::own(number));
        let last = first + added.len() as u64;
        entry.lsn.store(last, Ordering::Relaxed);
        Ok((Lsn(last), before))
    }
}

/// Adds keys as replay will; false if one is refused.
fn add_runs(filter: &mut dyn Kind, runs: &Runs) -> bool {
    runs.iter()
        .all(|(domains, words)| add_recorded(filter, domains, words.len(), |filter| filter.add(words, None)).is_ok())
}
