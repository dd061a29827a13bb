//! A quotient filter of twice as many slots.

use super::QuotientFilter;
use super::stream::build;
use crate::error::{Error, Result};
use crate::structure::Addable;
use crate::structure::load::Load;

impl QuotientFilter {
    /// Doubles the slots by moving one bit from remainder to quotient; no key is needed, and no
    /// answer changes. The capacity doubles, and with it the rate there; `target_fpr` follows. On an
    /// error nothing has changed.
    pub fn grow(&mut self) -> Result<()> {
        self.check_writable()?;
        let mut geometry = self.geometry();
        if geometry.remainder_bits == 1 {
            return Err(Error::Capacity(
                "the remainders have no bit left to give; build a new filter from the keys".into(),
            ));
        }
        geometry.quotient_bits += 1;
        geometry.remainder_bits -= 1;
        let geometry = geometry.check().map_err(|error| Error::Capacity(error.to_string()))?;
        if geometry.nbytes() > self.max_bytes {
            return Err(Error::Memory(format!(
                "growing would make the filter {} bytes large, max_bytes is {}; open its file with more if you trust it",
                geometry.nbytes(),
                self.max_bytes
            )));
        }
        let (slots, census) = build(geometry, &[&self.slots])?;
        let capacity = self.load.capacity.saturating_mul(2);
        let fpr = self.load.target_fpr.max(geometry.fpr(capacity));
        let mut load = Load::new(capacity, fpr)?;
        load.added = census.distinct;
        (self.slots, self.load, self.used) = (slots, load, census.used);
        Ok(())
    }
}
