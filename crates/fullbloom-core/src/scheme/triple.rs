//! Scheme 8, `triple`: `(a + i b + i (i - 1) / 2 c) mod range`: emit a; `a += b`; `b += c`.
//!
//! With the a and b of `double`; `c = (q ^ q >> 32) mod range` with `q = h * 0xd1342543de82ef95 (mod 2^64)`.

use super::double::{add_mod, pair};
use super::probes::Sequence;

/// The sequence.
#[derive(Clone, Copy, Debug)]
pub struct Triple {
    a: u64,
    b: u64,
    c: u64,
    range: u64,
}

impl Sequence for Triple {
    #[inline(always)]
    fn start(hash: u64, range: u64) -> Self {
        let (a, b) = pair(hash, range);
        let product = hash.wrapping_mul(0xd134_2543_de82_ef95);
        Triple { a, b, c: (product ^ (product >> 32)) % range, range }
    }

    #[inline(always)]
    fn next(&mut self) -> u64 {
        let position = self.a;
        self.a = add_mod(self.a, self.b, self.range);
        self.b = add_mod(self.b, self.c, self.range);
        position
    }
}
