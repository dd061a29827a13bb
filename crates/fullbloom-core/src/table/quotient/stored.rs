//! A quotient filter from its file.
//!
//! Opening looks at the header alone, unless every byte is to be checked: then runs, offsets and the number of slots in
//! use must agree. Cells that no table could have are met by the operations otherwise: they end soon, and answer
//! "perhaps" or that the file is damaged.

use super::geometry::Geometry;
use super::slots::Slots;
use super::stream::damaged;
use super::{KINDS, QuotientFilter, Stored};
use crate::container::Header;
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::structure::{Loadable, Sections};

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
        Ok(QuotientFilter { slots: Slots::over(geometry, memories)?, hasher, load, used, max_bytes: u64::MAX })
    }

    fn bound(&mut self, max_bytes: u64) {
        self.max_bytes = max_bytes;
    }

    fn check_cells(&self) -> Result<()> {
        self.slots.check(self.used).ok_or_else(damaged)
    }
}
