//! [`Pending`]: the records that wait for the writing thread, and the memory charged for them.

use super::synced::stopping_fault;
use crate::budget::Reservation;
use crate::fault::{Fault, Result};

/// The most bytes that may wait to be written. Beyond that changes are refused, because the disk is too slow.
const MAX_PENDING: usize = 256 << 20;
/// The buffer kept while there are no changes. A larger one is charged to the budget.
pub(super) const KEPT: usize = 4 << 20;
/// The bytes by which a larger buffer grows. The largest record takes half of them.
const STEP: usize = 16 << 20;

/// What waits to be written.
#[derive(Default)]
pub(super) struct Pending {
    /// A block: an empty head, then records.
    pub(super) block: Vec<u8>,
    /// The memory charged for it.
    pub(super) held: Option<Reservation>,
    pub(super) records: u32,
    /// The number of the next record.
    pub(super) next: u64,
    /// True requests a new segment, from the next record on.
    pub(super) rotate: bool,
    /// The first record of the newest segment.
    pub(super) boundary: u64,
    /// Why the new segment could not be created.
    pub(super) refused: Option<Fault>,
    pub(super) stop: bool,
}

impl Pending {
    /// Refuses records once the log is closed: the writing thread takes no more.
    pub(super) fn admit(&self) -> Result<()> {
        if self.stop { Err(stopping_fault()) } else { Ok(()) }
    }

    /// Ends the request for a new segment, which could not be created. If nobody requests it any more, the next request
    /// must not find this refusal.
    pub(super) fn refuse_segment(&mut self, fault: Fault) {
        self.refused = std::mem::take(&mut self.rotate).then_some(fault);
    }

    /// Makes a large block grow in steps, so that little of it is not charged yet.
    pub(super) fn make_room(&mut self) {
        let (len, capacity) = (self.block.len(), self.block.capacity());
        if capacity > KEPT && capacity - len < STEP / 2 {
            self.block.reserve_exact(STEP);
        }
    }

    /// Charges the memory of the block; false if it takes too much.
    pub(super) fn charge(&mut self) -> bool {
        let bytes = self.block.capacity();
        match &mut self.held {
            Some(held) if bytes > KEPT && bytes as u64 > held.bytes() => {
                bytes <= MAX_PENDING && held.set(bytes as u64).is_ok()
            }
            _ => true,
        }
    }
}
