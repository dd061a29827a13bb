//! [`Load`]: the capacity and rate of a structure and the number of its keys. Most structures have one.

use crate::container::{Header, tag};
use crate::error::{Error, Result};
use crate::sizing::check_sized;

/// Parameters that [`Load::describe`] writes.
pub const PARAMS: usize = 3;

/// Capacity, target rate, keys added, and whether the warning past capacity was given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Keys the structure was sized for.
    pub capacity: u64,
    /// The rate requested at capacity.
    pub target_fpr: f64,
    /// Keys that were new when added, less those removed.
    pub added: u64,
    /// Additions less removals, with repeated keys, if [`Load::came`] counts them.
    pub occurrences: u64,
    warned: bool,
}

/// The methods of [`crate::structure::Filter`] that follow from a field `load`: capacity and target rate and, with
/// `added` or `occurrences`, the number of keys.
macro_rules! load_answers {
    () => {
        fn capacity(&self) -> u64 {
            self.load.capacity
        }

        fn target_fpr(&self) -> f64 {
            self.load.target_fpr
        }
    };
    (occurrences) => {
        crate::structure::load::load_answers!();

        /// Additions less removals, with repeated keys.
        fn num_added(&self) -> u64 {
            self.load.occurrences
        }
    };
    (added) => {
        crate::structure::load::load_answers!();

        fn num_added(&self) -> u64 {
            self.load.added
        }
    };
}

/// The methods of [`crate::structure::Addable`] that follow from a field `load` and the named memories. The first
/// memory decides whether writing is allowed. `full` comes first if `load` alone does not decide whether one more key
/// is refused; the structure then has a method `is_full`.
macro_rules! load_takes {
    (full, $($memory:ident),+) => {
        crate::structure::load::load_takes!(@ $($memory),+);

        #[inline(always)]
        fn is_roomy(&self) -> bool {
            self.load.is_roomy() && !self.is_full() && !self.is_read_only()
        }
    };
    (@ $($memory:ident),+) => {
        crate::structure::traits::write_methods!($($memory),+);

        #[inline(always)]
        fn newly_overfull(&mut self) -> bool {
            self.load.newly_overfull()
        }
    };
    ($($memory:ident),+) => {
        crate::structure::load::load_takes!(@ $($memory),+);

        #[inline(always)]
        fn is_roomy(&self) -> bool {
            self.load.is_roomy() && !self.is_read_only()
        }
    };
}
pub(crate) use {load_answers, load_takes};

impl Load {
    /// Of an empty structure; `capacity` must be at least 1, `target_fpr` a rate.
    pub fn new(capacity: u64, target_fpr: f64) -> Result<Self> {
        check_sized(capacity, target_fpr)?;
        Ok(Load { capacity, target_fpr, added: 0, occurrences: 0, warned: false })
    }

    /// True if one more key causes no warning.
    #[inline(always)]
    pub fn is_roomy(&self) -> bool {
        self.added < self.capacity || self.warned
    }

    /// True once, when there are more keys than the capacity.
    #[inline(always)]
    pub fn newly_overfull(&mut self) -> bool {
        let newly = self.added > self.capacity && !self.warned;
        self.warned |= newly;
        newly
    }

    /// Counts an added key, if `new`.
    #[inline(always)]
    pub fn count(&mut self, new: bool) {
        self.added = self.added.saturating_add(u64::from(new));
    }

    /// Counts a key that went, if `gone`.
    #[inline(always)]
    pub fn uncount(&mut self, gone: bool) {
        self.added = self.added.saturating_sub(u64::from(gone));
    }

    /// Counts `coming` additions, `new` of which were of absent keys.
    #[inline(always)]
    pub fn came(&mut self, coming: u64, new: u64) {
        self.added = self.added.saturating_add(new);
        self.occurrences = self.occurrences.saturating_add(coming);
    }

    /// Counts `taken` removals, `gone` of which left their key absent.
    #[inline(always)]
    pub fn went(&mut self, taken: u64, gone: u64) {
        self.added = self.added.saturating_sub(gone);
        self.occurrences = self.occurrences.saturating_sub(taken);
    }

    /// Updates the counts after a merge with the cells of `other`: the number of keys that one filter would have found
    /// new is the `estimate` from the cells, within its possible bounds.
    pub fn join(&mut self, other: &Load, estimate: f64) {
        let (most, least) = (self.added.saturating_add(other.added), self.added.max(other.added));
        self.added = (estimate.round() as u64).clamp(least, most);
        self.occurrences = self.occurrences.saturating_add(other.occurrences);
    }

    /// Back to empty.
    pub fn clear(&mut self) {
        (self.added, self.occurrences, self.warned) = (0, 0, false);
    }

    /// Writes capacity, rate and count into a header, under `index`.
    pub fn describe(&self, header: &mut Header, index: u16) {
        header.set(tag::CAPACITY, index, self.capacity);
        header.set_f64(tag::FPR, index, self.target_fpr);
        header.set(tag::COUNT, index, self.added);
    }

    /// Reads back what [`Load::describe`] wrote, checked as a constructor would.
    pub fn restore(header: &Header, index: u16) -> Result<Self> {
        let (capacity, fpr) = (header.get(tag::CAPACITY, index)?, header.get_f64(tag::FPR, index)?);
        let mut load = Load::new(capacity, fpr).map_err(Error::as_format)?;
        // Half of all numbers, so that later additions to the number in a file cannot overflow.
        load.added = header.get(tag::COUNT, index)?.min(u64::MAX >> 1);
        load.warned = load.added > load.capacity;
        Ok(load)
    }
}
