//! Two banks of equal parameters, merged and compared.

use super::FilterBank;
use super::directory::Entry;
use crate::cells::bits;
use crate::error::{Error, Result};

/// The error that names the differences.
fn differing(what: &str) -> Error {
    Error::Incompatible(format!(
        "the banks differ in {what}; only banks of equal capacity, fpr, max_fpr, growth, shape and hash can be merged"
    ))
}

impl FilterBank {
    /// Refuses a bank with other filters or another hash.
    pub fn check_compatible(&self, other: &Self) -> Result<()> {
        let (ours, theirs) = (&self.plan, &other.plan);
        let (our, their) = (&self.hasher, &other.hasher);
        let fields = [
            ("capacity", ours.capacity != theirs.capacity),
            ("fpr", ours.fpr != theirs.fpr),
            ("max_fpr", ours.max_fpr != theirs.max_fpr),
            ("growth", ours.growth != theirs.growth),
            ("seed", our.seed() != their.seed()),
            ("secret", our.secret_fingerprint() != their.secret_fingerprint()),
            // A file states them beside the parameters: one of another release may have other shapes.
            ("shape", self.stages.iter().zip(&other.stages).any(|(ours, theirs)| ours.shape != theirs.shape)),
        ];
        let names: Vec<_> = fields.into_iter().filter_map(|(name, differs)| differs.then_some(name)).collect();
        if names.is_empty() { Ok(()) } else { Err(differing(&names.join(", "))) }
    }

    /// Adds the owners of `other`, and the keys of those that are in both: stage by stage, so that both banks' keys are
    /// found. The number of keys of such an owner is estimated from its cells. If it exceeds the capacity, the next new
    /// key opens a stage, and until then its rate is above fpr. On an error the owners before it are merged, and of the one
    /// that it is about nothing has changed.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        self.check_compatible(other)?;
        self.check_writable()?;
        other.check_mapped()?;
        while self.stages.len() < other.stages.len() {
            self.stages.push(other.stages[self.stages.len()]);
        }
        // Before the first key: an error may leave some of them here.
        self.hasher.domains_mut().join(other.hasher.domains());
        for theirs in other.owners.iter() {
            self.merge_owner(other, &theirs)?;
        }
        Ok(())
    }

    /// Merges one owner, or changes nothing: whatever can fail comes before the first bit.
    fn merge_owner(&mut self, other: &Self, theirs: &Entry) -> Result<()> {
        let is_new = !self.has_owner(theirs.owner);
        if is_new {
            self.create(theirs.owner)?;
        }
        let ours = self.owners.get(theirs.owner).ok_or_else(Self::directory_error)?;
        let (held, their) = (self.filters(&ours).len(), other.filters(theirs));
        for index in held..their.len() {
            if let Err(error) = self.open_stage(theirs.owner, index) {
                self.close_stages(theirs.owner, held)?;
                if is_new {
                    self.remove_owner(theirs.owner)?;
                }
                return Err(error);
            }
        }
        // An owner with later stages has more keys than the first holds: they are looked up behind a full one only.
        let least = ours.count.max(theirs.count);
        let mine = self.filters(&Entry { count: least, ..ours });
        let mut keys = 0.0;
        for (index, &first) in mine.iter().enumerate() {
            let lines = self.stages[index].lines();
            if let Some(&from) = their.get(index) {
                let words = other.pool.filter(from, lines);
                bits::or_assign(self.pool.filter_mut(first, lines)?, words);
            }
            keys += self.estimate(self.pool.filter(first, lines), index);
        }
        let most = ours.count.saturating_add(theirs.count);
        let keys = if keys.is_finite() { keys.round() as u32 } else { most };
        self.recount(theirs.owner, keys.clamp(least, most))
    }

    /// Sets the number of keys of an owner.
    fn recount(&mut self, owner: u64, count: u32) -> Result<()> {
        let at = self.owners.find(owner).ok_or_else(Self::directory_error)?;
        let before = self.owners.entry(at).map_or(0, |entry| entry.count);
        self.owners.set_count(at, count)?;
        self.added = self.added.saturating_sub(before.into()).saturating_add(count.into());
        Ok(())
    }

    /// Same parameters, same hash, the same owners with the same cells.
    pub fn same_as(&self, other: &Self) -> bool {
        if self.check_compatible(other).is_err() || self.len() != other.len() || self.added != other.added {
            return false;
        }
        self.owners.iter().all(|ours| {
            other.owners.get(ours.owner).is_some_and(|theirs| {
                let (mine, their) = (self.filters(&ours), other.filters(&theirs));
                let filters = mine.iter().zip(&their).zip(&self.stages);
                ours.count == theirs.count
                    && mine.len() == their.len()
                    && filters.into_iter().all(|((&a, &b), stage)| {
                        self.pool.filter(a, stage.lines()) == other.pool.filter(b, stage.lines())
                    })
            })
        })
    }
}
