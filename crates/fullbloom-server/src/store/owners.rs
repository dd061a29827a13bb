//! What is done to owners of a bank. A change of owners is one log record, made under the bank's lock.

use fullbloom_core::bank::Exported;
use fullbloom_core::container::Container;

use super::{Entry, Lsn, Store, Target};
use crate::budget::Reservation;
use crate::fault::{Fault, Result};
use crate::kind::Kind;
use crate::log::Record;

/// What is known about one owner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnerInfo {
    /// Its keys that were new when they were added.
    pub num_added: u64,
    /// Its filters: more than one if it has grown.
    pub stages: u64,
    /// The bytes of its lines and slots.
    pub nbytes: u64,
    /// The model rate at its present fill.
    pub fpr: f64,
    /// The estimated number of its distinct keys and the standard deviation, if its bits permit one.
    pub estimated: Option<(f64, f64)>,
}

/// Some owners of a bank, by their hashes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnerPage {
    /// The hash and the number of keys of each, in the order of the bank's table.
    pub owners: Vec<(u64, u64)>,
    /// The hash with which the next page starts; `None` at the end.
    pub next: Option<u64>,
    /// The number of all owners.
    pub total: u64,
}

/// Removes the keys of owners; sets `changed`, if it is as long, to 1 for each owner that exists.
pub(super) fn clear(filter: &mut dyn Kind, owners: &[u64], changed: &mut [u8]) -> Result<()> {
    let bank = filter.bank_mut()?;
    each(owners, changed, |owner| Ok(bank.clear_owner(owner)?))
}

/// Removes owners; sets `changed`, if it is as long, to 1 for each owner that existed.
pub(super) fn remove(filter: &mut dyn Kind, owners: &[u64], changed: &mut [u8]) -> Result<()> {
    let bank = filter.bank_mut()?;
    each(owners, changed, |owner| Ok(bank.remove_owner(owner)?))
}

fn each(owners: &[u64], changed: &mut [u8], mut work: impl FnMut(u64) -> Result<bool>) -> Result<()> {
    for (at, &owner) in owners.iter().enumerate() {
        let was_there = work(owner)?;
        if let Some(changed) = changed.get_mut(at) {
            *changed = u8::from(was_there);
        }
    }
    Ok(())
}

impl Store {
    /// Removes the keys of owners, which remain; sets `cleared` to 1 for each owner that exists.
    pub fn clear_owners<'a>(&self, target: impl Into<Target<'a>>, owners: &[u64], cleared: &mut [u8]) -> Result<Lsn> {
        let target = target.into();
        let record = Record::ClearOwners { id: target.entry.id, owners };
        self.apply(target, &record, |filter| clear(filter, owners, cleared))
    }

    /// Removes owners with their keys; sets `removed` to 1 for each owner that existed.
    pub fn remove_owners<'a>(&self, target: impl Into<Target<'a>>, owners: &[u64], removed: &mut [u8]) -> Result<Lsn> {
        let target = target.into();
        let record = Record::RemoveOwners { id: target.entry.id, owners };
        self.apply(target, &record, |filter| remove(filter, owners, removed))
    }

    /// What is known about an owner; `None` if the bank does not have it. Reads the owner's lines.
    pub fn owner_info(&self, entry: &Entry, owner: u64) -> Result<Option<OwnerInfo>> {
        let filter = entry.read();
        let bank = filter.bank()?;
        let (num_added, stages) = (bank.num_keys(owner), bank.num_stages(owner));
        let (Some(num_added), Some(stages), Some(nbytes)) = (num_added, stages, bank.owner_bytes(owner)) else {
            return Ok(None);
        };
        let _held = self.budget.take(nbytes)?;
        let Some(exported) = bank.export(owner)? else { return Ok(None) };
        drop(filter);
        let exported = as_kind(&exported);
        let estimated = exported.cell_stats().estimated;
        let estimated = estimated.filter(|(keys, deviation)| keys.is_finite() && deviation.is_finite());
        Ok(Some(OwnerInfo { num_added, stages, nbytes, fpr: exported.fpr(), estimated }))
    }

    /// The filter of an owner as the bytes of a file, and their charge to the budget; `None` without such an owner.
    pub fn export_owner(&self, entry: &Entry, owner: u64) -> Result<Option<(Vec<u8>, Reservation)>> {
        let filter = entry.read();
        let bank = filter.bank()?;
        let Some(nbytes) = bank.owner_bytes(owner) else { return Ok(None) };
        // The filter's own memory, and its bytes.
        let mut held = self.budget.take(nbytes.saturating_mul(2))?;
        let Some(exported) = bank.export(owner)? else { return Ok(None) };
        drop(filter);
        let bytes = to_bytes(&as_kind(&exported).container())?;
        drop(exported);
        held.set(bytes.len() as u64)?;
        Ok(Some((bytes, held)))
    }
}

fn as_kind(exported: &Exported) -> &dyn Kind {
    match exported {
        Exported::One(filter) => filter,
        Exported::Grown(filter) => filter,
    }
}

fn to_bytes(container: &Container<'_>) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(container.nbytes());
    container.write_with(&container.head()?, &mut bytes).map_err(|error| Fault::invalid(error.to_string()))?;
    Ok(bytes)
}

impl Entry {
    /// Refuses a filter whose keys have no owners.
    pub fn check_owners(&self) -> Result<()> {
        self.read().bank().map(drop)
    }

    /// Up to `most` owners from the hash `start` on, in the order of the bank's table; 0 for its first. Costs what the page
    /// does, however many owners there are.
    pub fn owners(&self, start: u64, most: usize) -> Result<OwnerPage> {
        let filter = self.peek();
        let bank = filter.bank()?;
        let mut left = bank.owners_from(start);
        let owners = left.by_ref().take(most).collect();
        let next = left.next().map(|(owner, _)| owner);
        Ok(OwnerPage { owners, next, total: bank.len() })
    }
}
