//! FNV-1a of 64 bits (Fowler, Noll and Vo; RFC 9923): one multiplication a byte.

const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x100_0000_01b3;

/// The function, piece by piece.
pub struct Fnv1a(u64);

impl Fnv1a {
    /// Of no bytes yet.
    pub fn new() -> Self {
        Fnv1a(BASIS)
    }

    /// Of no bytes yet, from `offset` beyond the basis on.
    pub fn after(offset: u64) -> Self {
        Fnv1a(BASIS.wrapping_add(offset))
    }

    /// The hash of units wider than a byte, each taken in at once.
    pub fn of_units(self, units: impl Iterator<Item = u64>) -> u64 {
        units.fold(self.0, |state, unit| (state ^ unit).wrapping_mul(PRIME))
    }

    /// Takes in bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |state, &byte| (state ^ u64::from(byte)).wrapping_mul(PRIME));
    }

    /// The hash of all bytes so far.
    pub fn digest(&self) -> u64 {
        self.0
    }
}

impl Default for Fnv1a {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_the_specification_hold() {
        for (text, want) in [("", BASIS), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)] {
            let mut state = Fnv1a::new();
            text.as_bytes().chunks(2).for_each(|piece| state.update(piece));
            assert_eq!(state.digest(), want, "{text}");
        }
    }
}
