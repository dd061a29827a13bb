//! What is done to one owner: its keys are counted, it is cleared, removed or exported.

use super::FilterBank;
use super::directory::Entry;
use crate::bloom::BloomFilter;
use crate::chain::ScalableBloomFilter;
use crate::error::{Error, Result};
use crate::structure::Filter;

/// The filter of one owner, in memory of its own.
pub enum Exported {
    /// Of an owner within its capacity.
    One(BloomFilter),
    /// Of one that has grown.
    Grown(ScalableBloomFilter),
}

impl FilterBank {
    /// True for an owner to which a key was added, or that was cleared, and that was not removed.
    pub fn has_owner(&self, owner: u64) -> bool {
        self.owners.find(owner).is_some()
    }

    /// Keys of an owner that were new when they were added.
    pub fn num_keys(&self, owner: u64) -> Option<u64> {
        self.owners.get(owner).map(|entry| entry.count.into())
    }

    /// Every owner with its number of keys, in the order of the table.
    pub fn each_owner(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.owners.iter().map(|entry| (entry.owner, entry.count.into()))
    }

    /// [`FilterBank::each_owner`] from an owner on, which need not exist; all of them from the owner 0 on. Other owners that
    /// come and go do not change the order.
    pub fn owners_from(&self, owner: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.owners.iter_from(owner).map(|entry| (entry.owner, entry.count.into()))
    }

    /// The first lines of the filters of an owner, first stage first.
    pub(super) fn filters(&self, owner: &Entry) -> Vec<u32> {
        let later = self.later.of(owner.owner).take(self.stages.len() - 1).map(|entry| entry.line);
        let has_later = u64::from(owner.count) > self.stages[0].capacity;
        std::iter::once(owner.line).chain(later.filter(|_| has_later)).collect()
    }

    /// Number of stages of an owner.
    pub fn num_stages(&self, owner: u64) -> Option<u64> {
        self.owners.get(owner).map(|entry| self.filters(&entry).len() as u64)
    }

    /// Bytes of the lines and slots of an owner.
    pub fn owner_bytes(&self, owner: u64) -> Option<u64> {
        let filters = self.filters(&self.owners.get(owner)?);
        let lines = self.stages.iter().take(filters.len()).map(|stage| u64::from(stage.lines()) * 64);
        Some(lines.sum::<u64>() + filters.len() as u64 * super::directory::SLOT_BYTES)
    }

    /// The stages of an owner as filters of their own.
    fn export_stages(&self, owner: &Entry) -> Result<Vec<BloomFilter>> {
        let (filters, mut left) = (self.filters(owner), u64::from(owner.count));
        let (last, mut exported) = (filters.len() - 1, Vec::new());
        for (index, (first, stage)) in filters.into_iter().zip(&self.stages).enumerate() {
            let words = self.pool.filter(first, stage.lines());
            if words.is_empty() {
                return Err(Self::directory_error()); // before memory of the stated size is allocated
            }
            let added = if index == last { left } else { left.min(stage.capacity) };
            left -= added;
            let filter = BloomFilter::new(stage.shape, stage.capacity, stage.fpr, self.hasher.fresh(), false);
            let mut filter = filter.map_err(Error::as_format)?; // parameters that only a damaged file has
            filter.copy_cells(words, added)?;
            exported.push(filter);
        }
        Ok(exported)
    }

    /// The filter of an owner, whose answers equal the bank's; None without such an owner.
    pub fn export(&self, owner: u64) -> Result<Option<Exported>> {
        let Some(entry) = self.owners.get(owner) else { return Ok(None) };
        let mut stages = self.export_stages(&entry)?;
        if stages.len() == 1 {
            // Stages of a chain record no domains of keys; the chain does.
            stages.iter_mut().for_each(|filter| *filter.hasher_mut() = self.hasher);
            return Ok(stages.pop().map(Exported::One));
        }
        let plan = &self.plan;
        let numbers = (plan.capacity, plan.max_fpr, plan.growth, plan.tightening());
        let grown = ScalableBloomFilter::of_blocked(numbers, stages, self.hasher).map_err(Error::as_format)?;
        Ok(Some(Exported::Grown(grown)))
    }

    /// Model rate of false positives of an owner at its present load; 0 for none.
    pub fn owner_fpr(&self, owner: u64) -> Result<f64> {
        Ok(match self.export(owner)? {
            None => 0.0,
            Some(Exported::One(filter)) => filter.fpr(),
            Some(Exported::Grown(filter)) => filter.fpr(),
        })
    }

    /// Estimated number of keys of an owner with its standard deviation; 0 for none.
    pub fn owner_estimate(&self, owner: u64) -> Result<(f64, f64)> {
        Ok(match self.export(owner)? {
            None => (0.0, 0.0),
            Some(Exported::One(filter)) => filter.approx_count(),
            Some(Exported::Grown(filter)) => filter.estimate_count().unwrap_or((f64::NAN, f64::INFINITY)),
        })
    }

    /// Estimated number of keys in words of the first stage.
    pub(super) fn estimate(&self, words: &[u64], stage: usize) -> f64 {
        let fill = crate::cells::bits::count_ones(words) as f64 / (words.len() * 64) as f64;
        self.stages[stage].shape.law().items(fill)
    }

    /// Returns the lines of the stages of an owner from number `first` on, which is at least 1.
    pub(super) fn close_stages(&mut self, owner: u64, first: usize) -> Result<()> {
        while let Some(at) = self.later.find(owner).map(|at| at + first - 1) {
            let Some(Entry { line, count, .. }) = self.later.entry(at).filter(|entry| entry.owner == owner) else {
                break;
            };
            self.later.remove_at(at)?;
            let size = count as usize;
            let lines = self.stages.get(size).map_or(0, |stage| stage.lines());
            self.pool.give_back(size, line, lines)?;
        }
        Ok(())
    }

    /// Removes the keys of an owner, which remains; false without such an owner.
    pub fn clear_owner(&mut self, owner: u64) -> Result<bool> {
        self.check_writable()?;
        let Some(at) = self.owners.find(owner) else { return Ok(false) };
        let Some(entry) = self.owners.entry(at) else { return Ok(false) };
        self.close_stages(owner, 1)?;
        let lines = self.stages[0].lines();
        self.pool.filter_mut(entry.line, lines)?.fill(0);
        self.owners.set_count(at, 0)?;
        self.added = self.added.saturating_sub(entry.count.into());
        Ok(true)
    }

    /// Removes an owner, whose lines the next ones take; false without such an owner.
    pub fn remove_owner(&mut self, owner: u64) -> Result<bool> {
        self.check_writable()?;
        let Some(at) = self.owners.find(owner) else { return Ok(false) };
        let Some(entry) = self.owners.entry(at) else { return Ok(false) };
        self.close_stages(owner, 1)?;
        self.owners.remove_at(at)?;
        self.pool.give_back(0, entry.line, self.stages[0].lines())?;
        self.added = self.added.saturating_sub(entry.count.into());
        Ok(true)
    }
}
