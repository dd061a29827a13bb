//! Cells that come from elsewhere, piece by piece.

use super::filter::BloomFilter;
use crate::error::{Error, Result};
use crate::scheme::positions::has_bits_past;

impl BloomFilter {
    /// Writes `bytes` over the cells from byte `start` on, a multiple of 8; what follows the last bit must be 0.
    pub fn write_cells(&mut self, start: u64, bytes: &[u8]) -> Result<()> {
        let (num_bits, fits) = (self.shape.num_bits, self.shape.num_bits.div_ceil(8));
        if !start.is_multiple_of(8) || start.checked_add(bytes.len() as u64).is_none_or(|end| end > fits) {
            return Err(Error::format(format!(
                "{} bytes from byte {start} on are not among {fits} of cells",
                bytes.len()
            )));
        }
        let words = self.words_mut()?;
        for (word, piece) in words[(start / 8) as usize..].iter_mut().zip(bytes.chunks(8)) {
            let mut whole = word.to_ne_bytes();
            whole[..piece.len()].copy_from_slice(piece);
            *word = u64::from_ne_bytes(whole);
        }
        if has_bits_past(words, num_bits) {
            return Err(Error::format(
                "the cells have bits set beyond num_bits; they are of another filter or damaged",
            ));
        }
        Ok(())
    }

    /// Takes the number of keys from the cells, which came without one: those that were new when they came, by estimate.
    pub fn recount(&mut self) {
        let count = self.new_when_added();
        self.load.added = if count.is_finite() { count.round() as u64 } else { self.load.capacity };
    }
}
