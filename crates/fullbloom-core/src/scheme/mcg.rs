//! Scheme 1, `mcg`: positions from a multiplicative congruential sequence of the hash.
//!
//! `x_0 = h`, `x_{i+1} = x_i * M mod 2^64`, position i = `fastrange(x_i, range)`. One multiplication a probe, and no
//! structure that raises the rate of a small filter: at m = 2000, n = 100, k = 14 plain double hashing measures 7.7e-4
//! where the ideal is 6.7e-5.

use super::probes::Sequence;
use super::range::fastrange;

const M: u64 = 0xd134_2543_de82_ef95;

/// The sequence.
#[derive(Clone, Copy, Debug)]
pub struct Mcg {
    x: u64,
    range: u64,
}

impl Sequence for Mcg {
    #[inline(always)]
    fn start(hash: u64, range: u64) -> Self {
        Mcg { x: hash, range }
    }

    #[inline(always)]
    fn next(&mut self) -> u64 {
        let position = fastrange(self.x, self.range);
        self.x = self.x.wrapping_mul(M);
        position
    }
}
