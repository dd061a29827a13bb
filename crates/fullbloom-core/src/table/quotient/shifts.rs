//! Insertion and removal of fingerprints in a table of [`Slots`]: the rest of the cluster shifts by one slot.

use super::slots::{FAR, Place, Slots};
use super::words::{LEVELS, move_down, move_up};

/// Jumps from run end to run end before slots are walked along.
const JUMPS: u32 = 32;

impl Slots {
    fn store_offset(&mut self, block: u64, offset: u64) {
        let block = self.block(block);
        let shift = 8 * (block & 7);
        let words = self.offsets.words_mut().unwrap_or_default();
        words[block >> 3] = (u64::from_le(words[block >> 3]) & !(0xff << shift) | offset.min(FAR) << shift).to_le();
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

    /// First free slot at or after `stop`, where all runs of quotients up to `quotient` end; `None` if no slot is free
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

    /// First slot of `slot..end` at which no run is open, given `open` runs that began before `slot`. In a long cluster
    /// of runs a slot off their homes every jump of [`Slots::first_free`] gains one slot for 8 ns; this takes 20 ns for
    /// 64.
    #[cold]
    fn walk_to_free(&self, open: u64, mut slot: u64, end: u64) -> Option<u64> {
        let mut open = open as i64;
        while slot < end {
            let (block, bit) = (slot >> 6, slot & 63);
            let (begins, ends) = (self.occupied(block) >> bit, self.runends_word(block) >> bit);
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
        while stop - quotient <= self.geometry().slots() {
            let runs = self.count_occupied(seen, stop);
            if runs == 0 {
                return Some(stop);
            }
            seen = stop;
            stop = self.after_runend(stop, runs)?;
        }
        None
    }

    /// Moves cells and run ends of the slots `from..to` of one lap; `UP` by one up, else the slots
    /// after them one down.
    fn shift_line<const UP: bool>(&mut self, from: u64, to: u64) {
        let width = self.geometry().slot_bits();
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
        let slots = self.geometry().slots();
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
        let slots = self.geometry().slots();
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

    /// Puts `cell` into a new slot at `place` (after the one found, if one was), if a slot is free less than `reach`
    /// slots from home; otherwise changes nothing.
    pub fn insert(&mut self, quotient: u64, place: &Place, cell: u64, reach: u64) -> Option<()> {
        let slot = place.slot + u64::from(place.found);
        // Nothing reaches as far as the home of a new quotient: it is free.
        let at_home = !place.occupied && place.stop <= quotient;
        let end = quotient + reach.min(self.geometry().slots());
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

    /// Removes the slot found at `place`; `None` if the table is damaged, and then nothing has changed.
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
                // 255 or more: only counting gives the number.
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
        for block in 0..self.geometry().blocks() {
            self.store_offset(block, offset);
            offset = self.next_offset(block, offset).unwrap_or(0);
        }
    }
}
