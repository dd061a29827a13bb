//! [`Load`]: what a structure was sized for and how far it is filled. Most structures carry one.

use crate::container::{Header, tag};
use crate::error::{Error, Result};
use crate::sizing::check_asked;

/// Parameters that [`Load::describe`] writes.
pub const PARAMS: usize = 3;

/// Capacity, target rate, keys added, and whether the warning past capacity was given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Keys the structure was sized for.
    pub capacity: u64,
    /// Rate asked for at capacity.
    pub target_fpr: f64,
    /// Keys that were new when added, less those removed.
    pub added: u64,
    warned: bool,
}

/// The methods of [`crate::structure::Filter`] that a field `load` answers: capacity and target rate, and
/// with `added` the number of keys.
macro_rules! load_answers {
    () => {
        fn capacity(&self) -> u64 {
            self.load.capacity
        }

        fn target_fpr(&self) -> f64 {
            self.load.target_fpr
        }
    };
    (added) => {
        crate::structure::load::load_answers!();

        fn num_added(&self) -> u64 {
            self.load.added
        }
    };
}

/// The methods of [`crate::structure::Addable`] that a field `load` and the named memories answer. The first
/// memory says whether anything may be written. `full` comes first where more than `load` tells
/// whether one more key is refused; the structure then says it in `is_full`.
macro_rules! load_takes {
    (full, $($memory:ident),+) => {
        crate::structure::load::load_takes!(@ $($memory),+);

        #[inline(always)]
        fn is_roomy(&self) -> bool {
            self.load.is_roomy() && !self.is_full() && !self.is_read_only()
        }
    };
    (@ $first:ident $(, $more:ident)*) => {
        #[inline(always)]
        fn is_read_only(&self) -> bool {
            self.$first.is_read_only()
        }

        fn expect_adds(&mut self, adds: usize) {
            self.$first.expect_writes(adds);
            $(self.$more.expect_writes(adds);)*
        }

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
        check_asked(capacity, target_fpr)?;
        Ok(Load { capacity, target_fpr, added: 0, warned: false })
    }

    /// True when one more key is worth no warning.
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

    /// Counts a key that came, if `new`.
    #[inline(always)]
    pub fn count(&mut self, new: bool) {
        self.added = self.added.saturating_add(u64::from(new));
    }

    /// Counts a key that went, if `gone`.
    #[inline(always)]
    pub fn uncount(&mut self, gone: bool) {
        self.added = self.added.saturating_sub(u64::from(gone));
    }

    /// Back to empty.
    pub fn clear(&mut self) {
        self.added = 0;
        self.warned = false;
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
        load.added = header.get(tag::COUNT, index)?;
        load.warned = load.added > load.capacity;
        Ok(load)
    }
}
