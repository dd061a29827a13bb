//! The choice of the stage for a fingerprint: one by one, in batches, when filters are merged and when stages are
//! emptied.

use std::ops::Range;

use super::DynamicCuckooFilter;
use super::plan::room;
use crate::chain::stages::{ask_in_turn, look};
use crate::error::{Error, Result};
use crate::structure::batch::CHUNK;
use crate::structure::{Addable, Filter};
use crate::table::CuckooFilter;
use crate::table::cuckoo::moves::Refusal;
use crate::table::cuckoo::places::Spot;

/// Stages that search for space with moves, 500 in each, before a key is refused.
const SEARCHES: u32 = 2;

impl DynamicCuckooFilter {
    /// The first stage with free capacity or, if every stage is full and no other may be opened, the first that still
    /// takes keys; the number of stages if no stage does.
    pub(super) fn first_open(&self) -> usize {
        let roomy = self.chain.stages.iter().position(|stage| room(stage) > 0);
        let takes = || self.chain.stages.iter().position(|stage| self.all_open() && !stage.is_full());
        roomy.or_else(takes).unwrap_or(self.chain.stages.len())
    }

    /// Stores a fingerprint in stage `at`: `at`, and whether it was new there.
    #[inline(always)]
    fn put_in(&mut self, at: usize, spot: Spot, turn: u64) -> std::result::Result<(usize, bool), Refusal> {
        let new = self.chain.stages[at].store(spot, turn)?;
        if room(&self.chain.stages[at]) == 0 {
            self.active = self.first_open();
        }
        Ok((at, new))
    }

    /// Stores a fingerprint in the first of `stages` that takes it; `searches` counts down those that found it crowded.
    #[inline(always)]
    fn put_in_one(
        &mut self,
        stages: Range<usize>,
        searches: &mut u32,
        (spot, turn): (Spot, u64),
        open: impl Fn(&CuckooFilter) -> bool,
    ) -> Option<(usize, bool)> {
        for at in stages {
            if *searches == 0 {
                return None;
            }
            if open(&self.chain.stages[at]) {
                match self.put_in(at, spot, turn) {
                    Ok(done) => return Some(done),
                    Err(why) => *searches -= u32::from(why == Refusal::Crowded),
                }
            }
        }
        None
    }

    /// Stores a fingerprint in the first stage with free capacity that takes it.
    #[inline(always)]
    fn put_where_room(&mut self, spot: Spot, turn: u64) -> Option<(usize, bool)> {
        let stages = self.active..self.chain.stages.len();
        self.put_in_one(stages, &mut { SEARCHES }, (spot, turn), |stage| room(stage) > 0)
    }

    /// Stores a fingerprint; returns the stage, and whether it was new there. After an error nothing has changed.
    #[inline(always)]
    pub(super) fn put(&mut self, spot: Spot, turn: u64) -> Result<(usize, bool)> {
        match self.put_where_room(spot, turn) {
            Some(done) => Ok(done),
            None => self.put_beyond(spot, turn),
        }
    }

    /// True if there are enough keys for chance to have closed the stages to one of them: one stage more than twice the
    /// keys need may be open. Keys that share buckets, and copies of one key, find no space in any number of stages; if
    /// one were opened for each few of them, a key would cost kilobytes.
    fn may_open(&self) -> bool {
        let stages = self.chain.stages.len() as u64;
        !self.all_open() && (stages - 1).saturating_mul(self.plan.capacity) <= self.num_added().saturating_mul(2)
    }

    /// [`DynamicCuckooFilter::put`] if no stage has free capacity.
    #[cold]
    fn put_beyond(&mut self, spot: Spot, turn: u64) -> Result<(usize, bool)> {
        let mut stages = 0..if self.all_open() { self.chain.stages.len() } else { 0 };
        if self.may_open() {
            self.chain.check_room(self.plan.shape.words() * 8)?;
            let stage = self
                .chain
                .spare
                .take()
                .map_or_else(|| self.plan.stage(self.chain.hasher.fresh()), |spare| Ok(*spare))?;
            self.chain.open(stage);
            self.active = self.first_open();
            stages = self.chain.stages.len() - 1..self.chain.stages.len();
        }
        let open = |_: &CuckooFilter| true;
        self.put_in_one(stages, &mut { SEARCHES }, (spot, turn), open).ok_or_else(|| self.refusal(spot))
    }

    fn refusal(&self, spot: Spot) -> Error {
        if self.is_full() {
            return Error::Capacity(format!(
                "the filter is full: {} keys in {} stages of {} slots; remove keys, or build one with a larger \
                 capacity or max_stages",
                self.num_added(),
                self.chain.stages.len(),
                self.plan.shape.slots()
            ));
        }
        let copies: u64 = self.chain.stages.iter().map(|stage| stage.copies(spot)).sum();
        if copies < 2 * u64::from(self.plan.shape.bucket_size) {
            return Error::Capacity(format!(
                "no free slot within 500 moves for this key, although {} keys are in {} stages of {} slots: too many keys \
                 share its buckets, as keys that somebody chose do; nothing was changed, and other keys are still \
                 taken; pass secret= where strangers choose keys",
                self.num_added(),
                self.chain.stages.len(),
                self.plan.shape.slots()
            ));
        }
        Error::Capacity(format!(
            "the filter holds {copies} copies of this key, and no stage has space for another; it cannot be added \
             again before it is removed (ask `in` first to store each key once, and pass secret= where strangers choose keys)"
        ))
    }

    /// Adds the first of `hashes` (at most [`CHUNK`]), as many as one stage has capacity for, so that no other stage
    /// changes within a step; returns how many, at least one.
    pub(super) fn add_step(&mut self, hashes: &[u64], mut new: Option<&mut [u8]>) -> Result<usize> {
        let at = self.active;
        let room = self.chain.stages.get(at).map_or(0, room);
        let step = usize::try_from(room).unwrap_or(usize::MAX).min(hashes.len());
        let (mut seen, mut stored) = ([0u8; CHUNK], 0);
        if step > 0 {
            if new.is_some() {
                let others = self.chain.stages.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, stage)| stage);
                ask_in_turn(others, &hashes[..step], &mut seen[..step], look)?;
            }
            // The scalar path below meets a refusal again and reports it.
            let _ = self.chain.stages[at].store_each(&hashes[..step], |i, fresh| {
                stored = i + 1;
                if let Some(new) = new.as_deref_mut() {
                    new[i] = u8::from(fresh) & (1 - seen[i]);
                }
            });
            self.active = self.first_open();
            if stored == step {
                return Ok(step);
            }
        }
        let fresh = self.add_hash(hashes[stored])?;
        if let Some(new) = new {
            new[stored] = u8::from(fresh);
        }
        Ok(stored + 1)
    }

    /// After a removal: drops the newest stages while they are empty, and sets one aside.
    pub(super) fn settle(&mut self) {
        while self.chain.stages.len() > 1 && self.chain.stages.last().is_some_and(|last| last.num_added() == 0) {
            // In a forged file, a stage of no keys may have a stash.
            self.chain.spare = self.chain.stages.pop().filter(|stage| !stage.has_stashed()).map(Box::new);
        }
        self.active = self.first_open();
    }

    /// A copy with every fingerprint of `other` added.
    pub(super) fn merge_with(&self, other: &Self) -> Result<Self> {
        let mut merged = self.try_clone()?;
        for stage in &other.chain.stages {
            stage.visit(|spot, turn| merged.put(spot, turn).map(drop)).map_err(|error| match error {
                Error::Capacity(_) => Error::Capacity(format!(
                    "{} and {} keys do not fit together into {} stages of {} slots; build filters with a larger \
                     capacity or max_stages",
                    self.num_added(),
                    other.num_added(),
                    self.plan.max_stages,
                    self.plan.shape.slots()
                )),
                other => other,
            })?;
        }
        Ok(merged)
    }

    /// Moves the fingerprints of the newest stages into free slots of earlier ones, as long as that frees a whole
    /// stage; returns the number of stages freed. Fingerprints without space stay in place.
    pub fn compact(&mut self) -> Result<usize> {
        self.chain.check_writable()?;
        let before = self.chain.stages.len();
        while let Some(mut last) = self.chain.stages.pop() {
            let rooms = self.chain.stages.iter().map(room).fold(0, u64::saturating_add);
            self.active = self.first_open();
            let fits = !self.chain.stages.is_empty() && last.num_added() <= rooms;
            if !fits || !last.hand_over(|spot, turn| self.put_where_room(spot, turn).is_some()) {
                self.chain.stages.push(last);
                break;
            }
        }
        self.settle();
        self.chain.spare = None;
        Ok(before - self.chain.stages.len())
    }
}
