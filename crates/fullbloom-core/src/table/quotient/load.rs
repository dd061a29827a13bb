//! A quotient filter from its file.
//!
//! Opening reads the header only, unless every byte must be checked: then one walk over runs and quotients checks that
//! runs, offsets and the number of slots in use agree. If a table is not checked, operations may meet cells that no table
//! could have: they end soon, and answer "perhaps" or that the file is damaged.

use super::geometry::Geometry;
use super::slots::{FAR, Slots};
use super::stream::table_error;
use super::{KINDS, QuotientFilter, Stored};
use crate::container::Header;
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::structure::{Loadable, Sections};

/// The ends of runs, in order, from one slot on and around the ring.
struct Ends<'a> {
    slots: &'a Slots,
    block: u64,
    word: u64,
    last: u64,
}

impl<'a> Ends<'a> {
    fn from(slots: &'a Slots, slot: u64) -> Self {
        let block = slot >> 6;
        let word = slots.runends_word(block) & u64::MAX << (slot & 63);
        Ends { slots, block, word, last: block + slots.geometry().blocks() }
    }

    fn next(&mut self) -> Option<u64> {
        while self.word == 0 {
            if self.block == self.last {
                return None;
            }
            self.block += 1;
            self.word = self.slots.runends_word(self.block);
        }
        let end = (self.block << 6) + u64::from(self.word.trailing_zeros());
        self.word &= self.word - 1;
        Some(end)
    }
}

impl Slots {
    /// `Some` if every occupied quotient has a run that begins at home or right after the run before it, nothing else
    /// ends a run, offsets follow from that, and runs have `used` slots in all.
    pub fn check(&self, used: u64) -> Option<()> {
        let (slots, blocks) = (self.geometry().slots(), self.geometry().blocks());
        // The first slots belong to runs from before the seam.
        let wrapped = self.offset(0)?;
        let mut ends = Ends::from(self, wrapped);
        let (mut stop, mut held, mut runs, mut marks) = (wrapped, 0, 0, 0);
        for block in 0..blocks {
            if self.stored_offset(block) != stop.saturating_sub(block << 6).min(FAR) {
                return None;
            }
            let mut occupied = self.occupied(block);
            runs += u64::from(occupied.count_ones());
            marks += u64::from(self.runends_word(block).count_ones());
            while occupied != 0 {
                let quotient = (block << 6) + u64::from(occupied.trailing_zeros());
                occupied &= occupied - 1;
                let (start, end) = (stop.max(quotient), ends.next()?);
                if end < start || end >= slots + wrapped {
                    return None;
                }
                held += end + 1 - start;
                stop = end + 1;
            }
        }
        let sound = stop.saturating_sub(slots) == wrapped && marks == runs && held == used;
        sound.then_some(())
    }
}

impl Loadable for QuotientFilter {
    fn load(header: &Header, hasher: KeyHasher, memory: Sections<'_>) -> Result<Self> {
        let (Stored { quotient_bits, remainder_bits, counter_bits, used_slots: used }, load) =
            Stored::with_load(header, 0)?;
        let geometry = Geometry { quotient_bits, remainder_bits, counter_bits }.check().map_err(Error::as_format)?;
        if used > geometry.limit() || load.added > used {
            return Err(Error::format(format!(
                "the file says that {used} slots hold {} fingerprints, its table may fill {}; it is damaged",
                load.added,
                geometry.limit()
            )));
        }
        let [bits, offsets, cells] = geometry.words();
        let memories = [memory(KINDS[0], 0, bits)?, memory(KINDS[1], 0, offsets)?, memory(KINDS[2], 0, cells)?];
        Ok(QuotientFilter { slots: Slots::from_memory(geometry, memories)?, hasher, load, used, max_bytes: u64::MAX })
    }

    fn bound(&mut self, max_bytes: u64) {
        self.max_bytes = max_bytes;
    }

    fn check_cells(&self) -> Result<()> {
        self.slots.check(self.used).ok_or_else(table_error)
    }
}
