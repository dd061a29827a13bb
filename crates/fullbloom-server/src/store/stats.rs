//! [`FilterStats`]: what a filter says about itself at one moment, and [`Known`]: until when that is true.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use fullbloom_core::structure::{CellStats, Value};

use crate::kind::Kind;

/// The numbers of a filter at one moment.
#[derive(Clone, Debug)]
pub struct FilterStats {
    /// The fields of `info()`; none without a count.
    pub details: Vec<(&'static str, Value)>,
    /// The model rate.
    pub fpr: f64,
    /// The share of set cells, if they were counted.
    pub fill: Option<f64>,
    /// The bytes of its cells.
    pub nbytes: u64,
    /// The number of keys that were new when added, less those removed.
    pub num_added: u64,
    /// The number of keys it was sized for.
    pub capacity: u64,
    /// The requested rate at capacity.
    pub target_fpr: f64,
    /// The estimated number of distinct keys and its deviation, if the cells were counted and permit one.
    pub estimated: Option<(f64, f64)>,
    /// Its class.
    pub class: &'static str,
}

impl FilterStats {
    pub(super) fn without_count(filter: &dyn Kind, fpr: f64) -> Self {
        FilterStats {
            details: Vec::new(),
            fpr,
            fill: None,
            nbytes: filter.nbytes(),
            num_added: filter.num_added(),
            capacity: filter.capacity(),
            target_fpr: filter.target_fpr(),
            estimated: None,
            class: filter.variant().class,
        }
    }

    pub(super) fn with_count(filter: &dyn Kind, cells: CellStats) -> Self {
        let (fill, fpr, estimated) = (Some(cells.fill), cells.fpr, cells.estimated);
        FilterStats { details: filter.info_with(cells), fill, estimated, ..Self::without_count(filter, fpr) }
    }

    /// True if it holds more keys than it was sized for, so that its rate exceeds the requested one.
    pub fn is_over_capacity(&self) -> bool {
        self.num_added > self.capacity && self.fpr > self.target_fpr
    }
}

/// The last count, or the last rate.
pub(super) struct Cached<T> {
    pub(super) value: T,
    pub(super) begun: Instant,
    pub(super) ended: Instant,
    /// The number of the last change, if there was none in the meantime.
    lsn: Option<u64>,
}

impl<T> Cached<T> {
    /// Does `work` and records when; `last` is the number of the filter's last change.
    pub(super) fn of(last: &AtomicU64, work: impl FnOnce() -> T) -> Self {
        let (begun, before) = (Instant::now(), last.load(Ordering::Acquire));
        let value = work();
        let lsn = Some(before).filter(|&lsn| last.load(Ordering::Acquire) == lsn);
        Cached { value, begun, ended: Instant::now(), lsn }
    }

    /// True until the filter changes.
    pub(super) fn is_of(&self, lsn: u64) -> bool {
        self.lsn == Some(lsn)
    }
}
