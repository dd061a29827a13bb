//! [`FilterBank`]: millions of small filters, one per owner, in one memory or one mapped file.
//!
//! A user, a tenant or a block of a log has a few hundred keys, and a filter object of its own would cost more than its
//! cells. In a bank an owner is 16 bytes of a table, and its filter some lines of 64 bytes: of layout `blocked`, so that a
//! key touches one of them.
//!
//! * [`plan`]: the size of every filter, and the law of their rates;
//! * [`directory`]: from the hash of an owner to its first line; `positions`: where its search begins;
//! * [`pool`]: the lines of all filters;
//! * `batch`: pairs of owners and keys; `owners`: what is done to one owner; `merging`: two banks;
//! * `file`: the bank as a file.
//!
//! Owners are distinguished by 64-bit hashes: among n owners, two share one with probability n^2 / 2^65, which is 2.7e-6 for
//! ten million.

mod batch;
pub mod directory;
mod file;
mod merging;
pub mod owners;
pub mod plan;
pub mod pool;
pub mod positions;

pub use batch::Owners;
pub use owners::Exported;
pub use plan::Plan;

use std::sync::Arc;

use self::directory::{Directory, Entry};
use self::plan::{MAX_STAGES, Stage};
use self::pool::Pool;
use crate::cells::LINE_BYTES;
use crate::error::{Error, Result};
use crate::growth::{Bound, Growth};
use crate::key::KeyHasher;
use crate::scheme::columns::by_columns;
use crate::scheme::fastrange;
use crate::scheme::placed;

/// Many small filters.
pub struct FilterBank {
    plan: Plan,
    /// The stages of the largest owner so far, at least one.
    stages: Vec<Stage>,
    hasher: KeyHasher,
    /// The first stage of each owner, with its number of keys.
    owners: Directory,
    /// Later stages of each owner, with their numbers.
    later: Directory,
    pool: Pool,
    /// Keys of all owners that were new when they were added.
    added: u64,
    bound: Bound,
}

impl FilterBank {
    /// An empty bank.
    pub fn new(plan: Plan, hasher: KeyHasher) -> Result<Self> {
        let plan = plan.check()?;
        Ok(FilterBank {
            plan,
            stages: vec![plan.stage(0, 0)?],
            hasher,
            owners: Directory::empty(),
            later: Directory::empty(),
            pool: Pool::empty(),
            added: 0,
            bound: Bound::default(),
        })
    }

    /// The parameters.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The stages of the largest owner so far.
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// How owners and keys become hashes.
    pub fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    /// [`FilterBank::hasher`], for the domains of keys to be recorded.
    pub fn hasher_mut(&mut self) -> &mut KeyHasher {
        &mut self.hasher
    }

    /// Number of owners.
    pub fn len(&self) -> u64 {
        self.owners.len()
    }

    /// True without owners.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of stages behind the first, of all owners.
    pub fn num_later(&self) -> u64 {
        self.later.len()
    }

    /// Keys of all owners that were new when they were added.
    pub fn num_added(&self) -> u64 {
        self.added
    }

    /// Bytes of all lines and tables.
    pub fn nbytes(&self) -> u64 {
        self.line_bytes() + self.directory_bytes()
    }

    /// Bytes of all lines.
    pub fn line_bytes(&self) -> u64 {
        u64::from(self.pool.num_used()) * LINE_BYTES as u64
    }

    /// Bytes of both tables and their indexes.
    pub fn directory_bytes(&self) -> u64 {
        [&self.owners, &self.later].map(|table| table.nbytes() + table.index_bytes()).iter().sum()
    }

    /// True if the bank is in a mapped file.
    pub fn is_mapped(&self) -> bool {
        self.pool.memory().or(self.owners.memory()).is_some_and(crate::cells::Memory::is_mapped)
    }

    /// True if nothing can be added.
    pub fn is_read_only(&self) -> bool {
        self.pool.is_read_only() || self.owners.is_read_only()
    }

    fn check_writable(&self) -> Result<()> {
        if self.is_read_only() {
            return Err(Error::ReadOnly("the bank is mapped read-only; take a copy() and change that".into()));
        }
        Ok(())
    }

    /// Refuses to grow beyond `max_bytes` from now on.
    pub fn limit(&mut self, max_bytes: u64) {
        self.bound.most = max_bytes;
    }

    /// Asks `growth` before the bank grows, from now on.
    pub fn share(&mut self, growth: Arc<dyn Growth>) {
        self.bound.share(growth);
    }

    /// An independent copy in memory of its own; of a mapped bank only if it is not damaged.
    pub fn try_clone(&self) -> Result<Self> {
        self.check_mapped()?;
        Ok(FilterBank {
            stages: self.stages.clone(),
            owners: self.owners.try_clone()?,
            later: self.later.try_clone()?,
            pool: self.pool.try_clone()?,
            bound: self.bound.copy_alone(),
            ..*self
        })
    }

    /// Removes every owner.
    pub fn clear(&mut self) -> Result<()> {
        self.check_writable()?;
        self.owners.clear();
        self.later.clear();
        self.pool.clear();
        self.hasher.domains_mut().clear();
        self.added = 0;
        Ok(())
    }

    /// The line of a key in a filter of `stage` that begins at `first`.
    #[inline(always)]
    fn line(stage: &Stage, first: u32, key: u64) -> u32 {
        first.saturating_add(fastrange(key, u64::from(stage.lines())) as u32)
    }

    /// True if the filter of a stage that begins at line `first` has the key.
    #[inline]
    fn finds(&self, stage: &Stage, first: u32, key: u64) -> bool {
        let (line, mut found) = ([Self::line(stage, first, key)], [0]);
        by_columns!(stage.per_column(), S => placed::contains::<S>(self.pool.words(), &line, &[key], &mut found));
        found[0] == 1
    }

    /// Adds a key to the filter of a stage; true if it was new.
    #[inline]
    fn put(&mut self, stage: Stage, first: u32, key: u64) -> Result<bool> {
        let (line, mut new) = ([Self::line(&stage, first, key)], [0]);
        let words = self.pool.words_mut()?;
        by_columns!(stage.per_column(), S => placed::add::<S>(words, &line, &[key], &mut new));
        Ok(new[0] == 1)
    }

    /// True if one of the later stages of an owner has the key.
    fn finds_later(&self, owner: u64, key: u64) -> bool {
        let mut stages = self.later.of(owner).zip(self.stages.iter().skip(1));
        stages.any(|(entry, stage)| self.finds(stage, entry.line, key))
    }

    /// False: the key was never added for this owner. True: it probably was.
    pub fn contains(&self, owner: u64, key: u64) -> bool {
        let Some(entry) = self.owners.get(owner) else { return false };
        let first = &self.stages[0];
        self.finds(first, entry.line, key) || u64::from(entry.count) > first.capacity && self.finds_later(owner, key)
    }

    /// Adds a key for an owner; true if it was certainly new.
    pub fn add(&mut self, owner: u64, key: u64) -> Result<bool> {
        self.check_writable()?;
        let at = match self.owners.find(owner) {
            Some(at) => at,
            None => {
                self.create(owner)?;
                self.owners.find(owner).ok_or_else(Self::directory_error)?
            }
        };
        let entry = self.owners.entry(at).ok_or_else(Self::directory_error)?;
        let first = self.stages[0];
        let new = if u64::from(entry.count) < first.capacity {
            self.put(first, entry.line, key)?
        } else {
            self.add_later(entry, key)?
        };
        if new {
            self.owners.set_count(at, entry.count + 1)?;
            self.added += 1;
        }
        Ok(new)
    }

    #[cold]
    fn directory_error() -> Error {
        Error::format("the directory of the bank contradicts itself; the file is damaged")
    }

    /// Creates an owner without keys and returns its first line. On an error nothing has changed.
    fn create(&mut self, owner: u64) -> Result<u32> {
        let most = self.plan.max_owners;
        if most > 0 && self.owners.len() >= most {
            return Err(Error::Capacity(format!(
                "the bank has {most} owners, its max_owners; remove some, or create a bank with more"
            )));
        }
        let line = self.take_lines(0, self.owners.growth())?;
        let inserted = self.owners.insert(Entry { owner, line, count: 0 });
        if inserted.is_err() {
            self.pool.give_back(0, line, self.stages[0].lines())?;
        }
        inserted.map(|()| line)
    }

    /// The first line of a new filter of stage `index`, if the bank may grow by it and `beside` bytes.
    fn take_lines(&mut self, index: usize, beside: u64) -> Result<u32> {
        let lines = self.stages[index].lines();
        if !self.bound.is_open() && !self.pool.has_free(index) {
            let more = u64::from(lines) * LINE_BYTES as u64 + beside;
            let (bytes, most) = (self.nbytes().saturating_add(more), self.bound.most);
            if bytes > most {
                return Err(Error::Memory(format!(
                    "another filter would make the bank {bytes} bytes large, max_bytes is {most}; open its file with \
                     more if you trust it"
                )));
            }
            if !self.bound.take(more) {
                return Err(Error::Memory(format!(
                    "another filter has {more} bytes, which are more than all filters have left; drop some, or raise \
                     the cap"
                )));
            }
        }
        self.pool.take(index, lines)
    }

    /// Adds a key for an owner whose first stage is full; true if it was new.
    fn add_later(&mut self, owner: Entry, key: u64) -> Result<bool> {
        if owner.count == u32::MAX {
            return Err(Self::uncountable(owner.count));
        }
        if self.finds(&self.stages[0], owner.line, key) || self.finds_later(owner.owner, key) {
            return Ok(false);
        }
        let newest = self.later.of(owner.owner).last();
        let index = newest.map_or(0, |entry| entry.count as usize);
        let Some(stage) = self.stages.get(index).copied() else { return Err(Self::directory_error()) };
        if u64::from(owner.count) < stage.total
            && let Some(newest) = newest
        {
            return self.put(stage, newest.line, key);
        }
        self.check_grows(owner, index + 1)?;
        let known = self.stages.len();
        if known == index + 1 {
            let next = self.plan.stage(index + 1, stage.total).map_err(|error| match error {
                Error::Parameter(why) => Error::Capacity(format!("an owner cannot grow further: {why}")),
                other => other,
            })?;
            self.stages.push(next);
        }
        let opened = self.open_stage(owner.owner, index + 1);
        if opened.is_err() {
            self.stages.truncate(known);
        }
        let line = opened?;
        self.put(self.stages[index + 1], line, key)
    }

    /// Gives an owner stage `index`, without keys, and returns its first line. On an error nothing has changed.
    fn open_stage(&mut self, owner: u64, index: usize) -> Result<u32> {
        let line = self.take_lines(index, self.later.growth())?;
        let inserted = self.later.insert(Entry { owner, line, count: index as u32 });
        if inserted.is_err() {
            self.pool.give_back(index, line, self.stages[index].lines())?;
        }
        inserted.map(|()| line)
    }

    /// Refuses another stage if the owner may not grow, or has as many keys as can be counted.
    fn check_grows(&self, owner: Entry, index: usize) -> Result<()> {
        if !self.plan.grows() {
            return Err(Error::Capacity(format!(
                "an owner holds its capacity of {} keys, and max_fpr leaves no rate for more; create a bank with \
                 max_fpr above fpr, or with a larger capacity",
                self.plan.capacity
            )));
        }
        if index >= MAX_STAGES { Err(Self::uncountable(owner.count)) } else { Ok(()) }
    }

    #[cold]
    fn uncountable(keys: u32) -> Error {
        Error::Capacity(format!("an owner has {keys} keys, the most in a bank; give it a filter of its own"))
    }
}

#[cfg(test)]
mod tests;
