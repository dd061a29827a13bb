//! Scheme 5, `enhanced-double`: emit a; `a += b`; `b += i` (i from 1), all modulo the range.
//!
//! Dillinger and Manolios, "Bloom filters in probabilistic verification", 2004: the cubic term
//! `(i^3 - i) / 6` breaks the symmetry of plain double hashing at the price of one addition.

use super::double::{add_mod, pair};
use super::probes::Sequence;

/// The sequence.
#[derive(Clone, Copy, Debug)]
pub struct EnhancedDouble {
    a: u64,
    b: u64,
    i: u64,
    range: u64,
}

impl Sequence for EnhancedDouble {
    #[inline(always)]
    fn start(hash: u64, range: u64) -> Self {
        let (a, b) = pair(hash, range);
        EnhancedDouble { a, b, i: 0, range }
    }

    #[inline(always)]
    fn next(&mut self) -> u64 {
        let position = self.a;
        self.i += 1;
        self.a = add_mod(self.a, self.b, self.range);
        self.b = add_mod(self.b, self.i % self.range, self.range);
        position
    }
}
