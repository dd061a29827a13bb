//! [`Slots`]: the table itself, and the search for a fingerprint.
//!
//! Numbers of slots and quotients continue around the ring: a run whose quotient is near the end may stop at a slot
//! number past 2^q, which is slot number minus 2^q. Every number that only grows is bounded by the ring, so that a walk
//! over arbitrary bytes ends; it then returns `None`, as it does when a valid table is full.

use super::geometry::Geometry;
use super::words::{count, select};
use crate::cells::{Memory, PackedCells};
use crate::error::Result;
use crate::isa::prefetch;

/// The stored offset that means itself or more.
pub(super) const FAR: u64 = 255;

/// Blocks that a lookup in a mapped table, which may be unchecked, walks forwards: the reach of an add in slots (see
/// [`Geometry::reach`]), and one at either end. Backwards it walks four times as far.
const MAPPED_WALK: u64 = (1 << 10) + 2;

/// The place of a remainder, or where it would go.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The last slot with this remainder, or the slot it would be inserted at.
    pub slot: u64,
    /// True if the remainder is present.
    pub found: bool,
    /// The quotient has a run.
    pub occupied: bool,
    /// First slot after all runs of quotients up to this one.
    pub(super) stop: u64,
}

/// Bits and remainders.
pub struct Slots {
    geometry: Geometry,
    pub(super) packed: PackedCells,
    /// Occupied and runends, a word of each by turns.
    pub(super) bits: Memory,
    /// A byte a block.
    pub(super) offsets: Memory,
    /// Remainders (and counters), packed.
    pub(super) cells: Memory,
    /// Blocks that a walk covers before it gives up.
    walk: u64,
}

impl Slots {
    /// An empty table.
    pub fn new(geometry: Geometry) -> Result<Self> {
        let [bits, offsets, cells] = geometry.words();
        Self::from_memory(geometry, [Memory::zeroed(bits)?, Memory::zeroed(offsets)?, Memory::zeroed(cells)?])
    }

    /// A table over memory of the lengths that [`Geometry::words`] names.
    pub fn from_memory(geometry: Geometry, [bits, offsets, cells]: [Memory; 3]) -> Result<Self> {
        // A mapped table is only looked up in; a forged file would make every lookup walk all of it (5 ms for 17 MB).
        let walk = if bits.is_mapped() { MAPPED_WALK.min(geometry.blocks()) } else { geometry.blocks() };
        Ok(Slots { geometry, packed: geometry.cells()?, bits, offsets, cells, walk })
    }

    /// The three arrays: bits, offsets, slots.
    pub fn memories(&self) -> [&Memory; 3] {
        [&self.bits, &self.offsets, &self.cells]
    }

    /// An independent copy.
    pub fn try_clone(&self) -> Result<Self> {
        let [bits, offsets, cells] = self.memories();
        Self::from_memory(self.geometry, [bits.try_clone()?, offsets.try_clone()?, cells.try_clone()?])
    }

    /// The numbers of the table.
    #[inline(always)]
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// True if nothing can be changed.
    #[inline(always)]
    pub fn is_read_only(&self) -> bool {
        self.bits.is_read_only()
    }

    /// Has the kernel supply the memory that `writes` operations are about to change.
    pub fn expect_writes(&mut self, writes: usize) {
        for memory in [&mut self.bits, &mut self.offsets, &mut self.cells] {
            memory.expect_writes(writes);
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        for memory in [&mut self.bits, &mut self.offsets, &mut self.cells] {
            memory.words_mut().unwrap_or_default().fill(0);
        }
    }

    /// Prefetches the lines that an operation on `quotient` starts with.
    #[inline(always)]
    pub fn prefetch(&self, quotient: u64) {
        let bit = quotient * u64::from(self.geometry.slot_bits());
        let lines = [(&self.bits, (quotient >> 6) * 2), (&self.offsets, quotient >> 9), (&self.cells, bit >> 6)];
        for (memory, word) in lines {
            prefetch(memory.words().as_ptr().wrapping_add(word as usize));
        }
    }

    #[inline(always)]
    pub(super) fn ring(&self) -> u64 {
        self.geometry.slots() - 1
    }

    #[inline(always)]
    pub(super) fn block(&self, block: u64) -> usize {
        (block & (self.ring() >> 6)) as usize
    }

    /// The occupied bits of a block.
    #[inline(always)]
    pub fn occupied(&self, block: u64) -> u64 {
        u64::from_le(self.bits.words()[2 * self.block(block)])
    }

    #[inline(always)]
    pub(super) fn runends_word(&self, block: u64) -> u64 {
        u64::from_le(self.bits.words()[2 * self.block(block) + 1])
    }

    /// True when some key has this quotient.
    #[inline(always)]
    pub fn is_occupied(&self, quotient: u64) -> bool {
        self.occupied(quotient >> 6) >> (quotient & 63) & 1 != 0
    }

    /// True when a run ends at this slot.
    #[inline(always)]
    pub fn is_runend(&self, slot: u64) -> bool {
        self.runends_word(slot >> 6) >> (slot & 63) & 1 != 0
    }

    /// Remainder and copies in a slot.
    #[inline(always)]
    pub fn read(&self, slot: u64) -> (u64, u64) {
        self.geometry.open(self.raw(slot))
    }

    /// Quotients occupied among `from..to`, which is at most one lap.
    #[inline(always)]
    pub(super) fn count_occupied(&self, from: u64, to: u64) -> u64 {
        count::<2, 0>(self.bits.words(), self.geometry.quotient_bits, from, to)
    }

    /// First slot after the `rank`-th end of a run (from 1) at or after slot `from`.
    #[inline(always)]
    pub(super) fn after_runend(&self, from: u64, mut rank: u64) -> Option<u64> {
        let mut block = from >> 6;
        let mut word = self.runends_word(block) & (u64::MAX << (from & 63));
        for _ in 0..=self.walk {
            let ones = u64::from(word.count_ones());
            if rank <= ones {
                return Some((block << 6) + u64::from(select(word, rank as u32 - 1)) + 1);
            }
            rank -= ones;
            block += 1;
            word = self.runends_word(block);
        }
        None
    }

    #[inline(always)]
    pub(super) fn stored_offset(&self, block: u64) -> u64 {
        let block = self.block(block);
        u64::from_le(self.offsets.words()[block >> 3]) >> (8 * (block & 7)) & 0xff
    }

    /// Slots from the first of `block` on that belong to runs of earlier quotients.
    #[inline(always)]
    pub fn offset(&self, block: u64) -> Option<u64> {
        let stored = self.stored_offset(block);
        if stored < FAR { Some(stored) } else { self.far_offset(block) }
    }

    /// Counts an offset from the last block before whose offset is stored. Such a block exists if a slot is free.
    #[cold]
    fn far_offset(&self, block: u64) -> Option<u64> {
        let blocks = self.geometry.blocks();
        let back = (1..blocks.min(4 * self.walk)).find(|back| self.stored_offset(block + blocks - back) < FAR)?;
        let (start, end) = ((block + blocks - back) << 6, (block + blocks) << 6);
        let (from, runs) = (start + self.stored_offset(start >> 6), self.count_occupied(start, end));
        let stop = if runs == 0 { from } else { self.after_runend(from, runs)? };
        let offset = stop.saturating_sub(end);
        (offset <= self.geometry.slots()).then_some(offset)
    }

    /// The offset of the block after `block`, whose own offset is `offset`.
    pub(super) fn next_offset(&self, block: u64, offset: u64) -> Option<u64> {
        let runs = u64::from(self.occupied(block).count_ones());
        let from = (block << 6) + offset;
        let stop = if runs == 0 { from } else { self.after_runend(from, runs)? };
        let next = stop.saturating_sub((block + 1) << 6);
        (next <= self.geometry.slots()).then_some(next)
    }

    /// Finds the place of a remainder in the run of `quotient`.
    #[inline(always)]
    pub fn locate(&self, quotient: u64, remainder: u64) -> Option<Place> {
        let (block, bit) = (quotient >> 6, quotient & 63);
        let word = self.occupied(block);
        let rank = (word & (u64::MAX >> (63 - bit))).count_ones();
        let occupied = word >> bit & 1 != 0;
        let from = (block << 6) + self.offset(block)?;
        let stop = if rank == 0 { from } else { self.after_runend(from, u64::from(rank))? };
        if !occupied {
            return Some(Place { slot: stop.max(quotient), found: false, occupied, stop });
        }
        if stop.saturating_sub(quotient) > self.walk << 6 {
            return None;
        }
        // Backwards, so that the end of the run need not be found first.
        let mut slot = stop;
        while slot > quotient {
            let (here, _) = self.read(slot - 1);
            if here <= remainder {
                let found = here == remainder;
                return Some(Place { slot: slot - u64::from(found), found, occupied, stop });
            }
            slot -= 1;
            if slot > quotient && self.is_runend(slot - 1) {
                break;
            }
        }
        (stop > quotient).then_some(Place { slot, found: false, occupied, stop })
    }

    /// True if the slot before `slot` belongs to the run of `quotient` as well.
    #[inline(always)]
    pub(super) fn continues(&self, quotient: u64, slot: u64) -> bool {
        slot > quotient && !self.is_runend(slot - 1)
    }

    /// Copies of the remainder found at `place`.
    pub fn copies(&self, quotient: u64, place: &Place) -> u64 {
        let (mut slot, (remainder, mut copies)) = (place.slot, self.read(place.slot));
        while self.continues(quotient, slot) {
            slot -= 1;
            match self.read(slot) {
                (same, more) if same == remainder => copies += more,
                _ => break,
            }
        }
        copies
    }

    /// True if the slot found at `place` is the only one with its remainder.
    pub fn is_only(&self, quotient: u64, place: &Place) -> bool {
        !self.continues(quotient, place.slot) || self.read(place.slot - 1).0 != self.read(place.slot).0
    }

    /// Overwrites the cell of a slot.
    pub fn write(&mut self, slot: u64, cell: u64) {
        let (packed, slot) = (self.packed, slot & self.ring());
        packed.set(self.cells.words_mut().unwrap_or_default(), slot, cell);
    }

    #[inline(always)]
    pub(super) fn raw(&self, slot: u64) -> u64 {
        self.packed.get(self.cells.words(), slot & self.ring())
    }
}
