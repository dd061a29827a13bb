//! [`Slots`]: the table itself, one fingerprint at a time.
//!
//! Slots and quotients are counted on around the ring: a run whose quotient is near the end may
//! stop at a slot number past 2^q, which is slot number minus 2^q. Every number that only grows is
//! bounded by the ring, so that a walk over arbitrary bytes ends; it then answers `None`, as it does
//! when a sound table is full.

use super::geometry::Geometry;
use super::words::{LEVELS, count, move_down, move_up, select};
use crate::cells::{Memory, Packed};
use crate::error::Result;
use crate::isa::prefetch;

/// The stored offset that stands for itself and all above.
pub(super) const FAR: u64 = 255;

/// Jumps from run end to run end before slots are walked along.
const JUMPS: u32 = 32;

/// Blocks that a look-up in a mapped table, which nobody may have checked, walks forwards: the reach of an add in slots
/// (see [`Geometry::reach`]), and one at either end. Backwards it walks four times as far.
const MAPPED_WALK: u64 = (1 << 10) + 2;

/// Where a remainder is, or where it would go.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The last slot with this remainder, or the slot it would be inserted at.
    pub slot: u64,
    /// There is such a remainder.
    pub found: bool,
    /// The quotient has a run.
    pub occupied: bool,
    /// First slot after all runs of quotients up to this one.
    stop: u64,
}

/// Bits and remainders.
pub struct Slots {
    geometry: Geometry,
    packed: Packed,
    /// Occupied and runends, a word of each by turns.
    bits: Memory,
    /// A byte a block.
    offsets: Memory,
    /// Remainders (and counters), packed.
    cells: Memory,
    /// Blocks that a walk goes along before it gives up.
    walk: u64,
}

impl Slots {
    /// An empty table.
    pub fn new(geometry: Geometry) -> Result<Self> {
        let [bits, offsets, cells] = geometry.words();
        Self::over(geometry, [Memory::zeroed(bits)?, Memory::zeroed(offsets)?, Memory::zeroed(cells)?])
    }

    /// A table over memory of the lengths that [`Geometry::words`] names.
    pub fn over(geometry: Geometry, [bits, offsets, cells]: [Memory; 3]) -> Result<Self> {
        // What is mapped is only looked up in; a file that lies would make every look-up walk all of it (5 ms for 17 MB).
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
        Self::over(self.geometry, [bits.try_clone()?, offsets.try_clone()?, cells.try_clone()?])
    }

    /// The numbers of the table.
    #[inline(always)]
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// True when nothing can be changed.
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

    /// Asks for the lines that an operation on `quotient` starts with.
    #[inline(always)]
    pub fn prefetch(&self, quotient: u64) {
        let bit = quotient * u64::from(self.geometry.slot_bits());
        let lines = [(&self.bits, (quotient >> 6) * 2), (&self.offsets, quotient >> 9), (&self.cells, bit >> 6)];
        for (memory, word) in lines {
            prefetch(memory.words().as_ptr().wrapping_add(word as usize));
        }
    }

    #[inline(always)]
    fn ring(&self) -> u64 {
        self.geometry.slots() - 1
    }

    #[inline(always)]
    fn block(&self, block: u64) -> usize {
        (block & (self.ring() >> 6)) as usize
    }

    #[inline(always)]
    fn occupied_word(&self, block: u64) -> u64 {
        u64::from_le(self.bits.words()[2 * self.block(block)])
    }

    #[inline(always)]
    pub(super) fn runends_word(&self, block: u64) -> u64 {
        u64::from_le(self.bits.words()[2 * self.block(block) + 1])
    }

    /// True when some key has this quotient.
    #[inline(always)]
    pub fn is_occupied(&self, quotient: u64) -> bool {
        self.occupied_word(quotient >> 6) >> (quotient & 63) & 1 != 0
    }

    /// The occupied bits of a block.
    #[inline(always)]
    pub fn occupied(&self, block: u64) -> u64 {
        self.occupied_word(block)
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
    fn count_occupied(&self, from: u64, to: u64) -> u64 {
        count::<2, 0>(self.bits.words(), self.geometry.quotient_bits, from, to)
    }

    /// First slot after the `rank`-th end of a run (from 1) at or after slot `from`.
    #[inline(always)]
    fn after_runend(&self, from: u64, mut rank: u64) -> Option<u64> {
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

    fn store_offset(&mut self, block: u64, offset: u64) {
        let block = self.block(block);
        let shift = 8 * (block & 7);
        let words = self.offsets.words_mut().unwrap_or_default();
        words[block >> 3] = (u64::from_le(words[block >> 3]) & !(0xff << shift) | offset.min(FAR) << shift).to_le();
    }

    /// Slots from the first of `block` on that belong to runs of earlier quotients.
    #[inline(always)]
    pub fn offset(&self, block: u64) -> Option<u64> {
        let stored = self.stored_offset(block);
        if stored < FAR { Some(stored) } else { self.far_offset(block) }
    }

    /// Counts an offset from the last block before whose offset is stored. Such a block exists
    /// where a slot is free.
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
    fn next_offset(&self, block: u64, offset: u64) -> Option<u64> {
        let runs = u64::from(self.occupied_word(block).count_ones());
        let from = (block << 6) + offset;
        let stop = if runs == 0 { from } else { self.after_runend(from, runs)? };
        let next = stop.saturating_sub((block + 1) << 6);
        (next <= self.geometry.slots()).then_some(next)
    }

    /// Finds the place of a remainder in the run of `quotient`.
    #[inline(always)]
    pub fn locate(&self, quotient: u64, remainder: u64) -> Option<Place> {
        let (block, bit) = (quotient >> 6, quotient & 63);
        let word = self.occupied_word(block);
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
        // Backwards, so that the end of the run need not be told from its beginning first.
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

    /// True when the slot before `slot` belongs to the run of `quotient` as well.
    #[inline(always)]
    fn continues(&self, quotient: u64, slot: u64) -> bool {
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

    /// True when the slot found at `place` is the only one with its remainder.
    pub fn is_only(&self, quotient: u64, place: &Place) -> bool {
        !self.continues(quotient, place.slot) || self.read(place.slot - 1).0 != self.read(place.slot).0
    }

    /// First free slot at or after `stop`, where all runs of quotients up to `quotient` end; `None` when there is none
    /// before `end`, at most one lap from `quotient`.
    fn first_free(&self, quotient: u64, mut stop: u64, end: u64) -> Option<u64> {
        let mut seen = quotient + 1;
        for _ in 0..JUMPS {
            if stop >= end {
                return None;
            }
            // The runs of quotients up to `stop` begin before or at it.
            let runs = self.count_occupied(seen, stop + 1);
            if runs == 0 {
                return Some(stop);
            }
            seen = stop + 1;
            stop = self.after_runend(stop, runs)?;
        }
        (stop < end).then(|| self.walk_to_free(self.count_occupied(seen, stop), stop, end)).flatten()
    }

    /// First slot of `slot..end` at which no run is open, when `open` ones are that began before `slot`. In a long
    /// cluster of runs a slot off their homes every jump of [`Slots::first_free`] gains one slot for 8 ns; this takes
    /// 20 ns for 64.
    #[cold]
    fn walk_to_free(&self, open: u64, mut slot: u64, end: u64) -> Option<u64> {
        let mut open = open as i64;
        while slot < end {
            let (block, bit) = (slot >> 6, slot & 63);
            let (begins, ends) = (self.occupied_word(block) >> bit, self.runends_word(block) >> bit);
            let all = i64::from(ends.count_ones());
            if open > all {
                open += i64::from(begins.count_ones()) - all;
                slot += 64 - bit;
                continue;
            }
            let mut at = 0;
            while at < 64 - bit {
                let (most, change) = LEVELS[((begins >> at & 15) << 4 | ends >> at & 15) as usize];
                if open > i64::from(most) && at + 4 <= 64 - bit {
                    (open, at) = (open + i64::from(change), at + 4);
                    continue;
                }
                open += (begins >> at & 1) as i64;
                if open <= 0 {
                    return Some(slot + at).filter(|free| *free < end);
                }
                (open, at) = (open - (ends >> at & 1) as i64, at + 1);
            }
            slot += 64 - bit;
        }
        None
    }

    /// First slot from `stop` on that is free or holds a remainder at home.
    fn first_at_home(&self, quotient: u64, mut stop: u64) -> Option<u64> {
        let mut seen = quotient + 1;
        while stop - quotient <= self.geometry.slots() {
            let runs = self.count_occupied(seen, stop);
            if runs == 0 {
                return Some(stop);
            }
            seen = stop;
            stop = self.after_runend(stop, runs)?;
        }
        None
    }

    fn set_bit(&mut self, array: usize, place: u64, on: bool) {
        let word = 2 * self.block(place >> 6) + array;
        let mask = (1u64 << (place & 63)).to_le();
        let words = self.bits.words_mut().unwrap_or_default();
        if on {
            words[word] |= mask;
        } else {
            words[word] &= !mask;
        }
    }

    /// Overwrites the cell of a slot.
    pub fn write(&mut self, slot: u64, cell: u64) {
        let (packed, slot) = (self.packed, slot & self.ring());
        packed.set(self.cells.words_mut().unwrap_or_default(), slot, cell);
    }

    #[inline(always)]
    fn raw(&self, slot: u64) -> u64 {
        self.packed.get(self.cells.words(), slot & self.ring())
    }

    /// Moves cells and run ends of the slots `from..to` of one lap; `UP` by one up, else the slots
    /// after them one down.
    fn shift_line<const UP: bool>(&mut self, from: u64, to: u64) {
        let width = self.geometry.slot_bits();
        let wide = u64::from(width);
        let cells = self.cells.words_mut().unwrap_or_default();
        let bits = self.bits.words_mut().unwrap_or_default();
        if UP {
            move_up::<1, 0>(cells, from * wide, to * wide, width);
            move_up::<2, 1>(bits, from, to, 1);
        } else {
            move_down::<1, 0>(cells, from * wide, to * wide, width);
            move_down::<2, 1>(bits, from, to, 1);
        }
    }

    /// One slot across the seam of the ring.
    fn carry(&mut self, from: u64, to: u64) {
        let (cell, end) = (self.raw(from), self.is_runend(from));
        self.write(to, cell);
        self.set_bit(1, to, end);
    }

    /// Moves the slots `from..to` one up, around the ring.
    fn shift_up(&mut self, from: u64, to: u64) {
        let slots = self.geometry.slots();
        if from >= slots {
            self.shift_line::<true>(from - slots, to - slots);
        } else if to < slots {
            self.shift_line::<true>(from, to);
        } else {
            self.shift_line::<true>(0, to - slots);
            self.carry(slots - 1, 0);
            self.shift_line::<true>(from, slots - 1);
        }
    }

    /// Moves the slots `from + 1..=to` one down, around the ring.
    fn shift_down(&mut self, from: u64, to: u64) {
        let slots = self.geometry.slots();
        if from >= slots {
            self.shift_line::<false>(from - slots, to - slots);
        } else if to < slots {
            self.shift_line::<false>(from, to);
        } else {
            self.shift_line::<false>(from, slots - 1);
            self.carry(0, slots - 1);
            self.shift_line::<false>(0, to - slots);
        }
    }

    /// Puts `cell` into a new slot at `place` (after the one found, if one was), where a slot is free less than `reach`
    /// slots from home; else nothing has changed.
    pub fn insert(&mut self, quotient: u64, place: &Place, cell: u64, reach: u64) -> Option<()> {
        let slot = place.slot + u64::from(place.found);
        // Nothing reaches as far as the home of a new quotient: it is free.
        let at_home = !place.occupied && place.stop <= quotient;
        let end = quotient + reach.min(self.geometry.slots());
        let free = if at_home { slot } else { self.first_free(quotient, place.stop, end)? };
        if slot < free {
            self.shift_up(slot, free);
        }
        self.write(slot, cell);
        let last = !place.occupied || slot == place.stop;
        self.set_bit(1, slot, last);
        if last && place.occupied {
            self.set_bit(1, slot - 1, false);
        }
        if !place.occupied {
            self.set_bit(0, quotient, true);
        }
        for block in (quotient >> 6) + 1..=free >> 6 {
            self.store_offset(block, self.stored_offset(block) + 1);
        }
        Some(())
    }

    /// Takes out the slot found at `place`; `None` when the table is damaged, and then nothing has
    /// changed.
    pub fn remove(&mut self, quotient: u64, place: &Place) -> Option<()> {
        let stop = self.first_at_home(quotient, place.stop)?;
        let last = place.slot + 1 == place.stop;
        if last && self.continues(quotient, place.slot) {
            self.set_bit(1, place.slot - 1, true);
        } else if last {
            self.set_bit(0, quotient, false);
        }
        self.shift_down(place.slot, stop - 1);
        self.write(stop - 1, 0);
        self.set_bit(1, stop - 1, false);
        self.lower_offsets((quotient >> 6) + 1, (stop - 1) >> 6);
        Some(())
    }

    /// The blocks `first..=last` lost one slot to runs of earlier quotients.
    fn lower_offsets(&mut self, first: u64, last: u64) {
        let mut before = None;
        for block in first..=last {
            let stored = self.stored_offset(block);
            let offset = if stored < FAR {
                Some(stored.saturating_sub(1))
            } else {
                // 255 or more: which, only counting tells.
                let before = before.or_else(|| self.offset(block - 1));
                before.and_then(|offset| self.next_offset(block - 1, offset))
            };
            self.store_offset(block, offset.unwrap_or(FAR));
            before = offset;
        }
    }

    /// For building in order: the run of `quotient` ends at `slot`.
    pub(super) fn close_run(&mut self, quotient: u64, slot: u64) {
        self.set_bit(0, quotient, true);
        self.set_bit(1, slot, true);
    }

    /// For building in order: counts all offsets, from that of the first block.
    pub(super) fn count_offsets(&mut self, first: u64) {
        let mut offset = first;
        for block in 0..self.geometry.blocks() {
            self.store_offset(block, offset);
            offset = self.next_offset(block, offset).unwrap_or(0);
        }
    }
}
