//! Relocation: fingerprints that move from one table to another.

use super::buckets::Buckets;
use super::moves::Stash;
use super::places::Spot;
use super::shape::Kernel;
use super::{CuckooFilter, dispatch};
use crate::error::{Error, Result};
use crate::structure::{Addable, Filter, Mergeable};

/// Decides which slots are emptied when a fingerprint found in a table is stored in another.
#[inline(always)]
fn turn(fp: u64, bucket: u64, slot: u32) -> u64 {
    fp << 32 ^ bucket << 3 ^ u64::from(slot)
}

impl CuckooFilter {
    /// Visits every fingerprint, the one in the stash last, up to the first error, with its places and a turn that
    /// decides where another table stores it.
    pub(crate) fn visit<E>(
        &self,
        mut visit: impl FnMut(Spot, u64) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let words = self.memory.words();
        dispatch!(self.kernel, rule => {
            for at in 0..self.shape.buckets {
                let mut bucket = rule.load(words, at);
                for slot in 0..self.shape.bucket_size {
                    match rule.swap(&mut bucket, slot, 0) {
                        0 => {}
                        fp => visit(self.places.at(fp, at), turn(fp, at, slot))?,
                    }
                }
            }
        });
        match self.stash {
            Stash { fp: 0, .. } => Ok(()),
            Stash { fp, bucket } => visit(self.places.at(fp, bucket), turn(fp, bucket, 0)),
        }
    }

    /// Offers every fingerprint to `take`, the one in the stash first, and drops those that it accepts; true if none is
    /// left. If the stash is refused it ends, as a table with free slots does not leave its stash occupied.
    pub(crate) fn hand_over(&mut self, mut take: impl FnMut(Spot, u64) -> bool) -> bool {
        let (places, load) = (self.places, &mut self.load);
        let Some(words) = self.memory.words_mut() else { return false };
        let Stash { fp, bucket } = self.stash;
        if fp != 0 {
            if !take(places.at(fp, bucket), turn(fp, bucket, 0)) {
                return false;
            }
            self.stash = Stash::default();
            load.uncount(true);
        }
        let mut empty = true;
        dispatch!(self.kernel, rule => {
            for at in 0..self.shape.buckets {
                for slot in 0..self.shape.bucket_size {
                    let mut bucket = rule.load(words, at);
                    let fp = rule.swap(&mut bucket, slot, 0);
                    if fp != 0 && take(places.at(fp, at), turn(fp, at, slot)) {
                        rule.store(words, at, bucket);
                        load.uncount(true);
                    } else {
                        empty &= fp == 0;
                    }
                }
            }
        });
        empty
    }
}

impl Mergeable for CuckooFilter {
    /// The union of two multisets: stores every fingerprint of `other`, at the places that follow from its bucket.
    /// `Error::Capacity` if they do not all fit.
    fn merge(&mut self, other: &Self) -> Result<()> {
        self.check_compatible(other)?;
        self.check_writable()?;
        let mut merged = self.try_clone()?;
        other.visit(|spot, turn| merged.store(spot, turn).map(drop)).map_err(|_| {
            let (ours, theirs, slots) = (self.load.added, other.load.added, self.shape.slots());
            let home = 2 * self.shape.bucket_size;
            Error::Capacity(if ours.saturating_add(theirs) > slots / 2 {
                format!("{ours} and {theirs} keys do not fit together into {slots} slots; build filters with a larger capacity")
            } else {
                format!(
                    "{ours} and {theirs} keys do not fit together, although there are {slots} slots: copies of one key \
                     have {home} slots; remove keys that both filters have from one of them"
                )
            })
        })?;
        *self = merged;
        Ok(())
    }
}
