//! Scheme 10, `odd-step`: `(a + i b) mod range` with b made odd before it is reduced.
//!
//! `b = ((p ^ p >> 32) | 1) mod range`, with the a and p of `double`. An odd step visits all of a range that is a power
//! of two, so that no key probes one cell k times; two keys with the same step still share most of their probes.

use super::double::{add_mod, spread};
use super::probes::Sequence;

/// The sequence.
#[derive(Clone, Copy, Debug)]
pub struct OddStep {
    a: u64,
    b: u64,
    range: u64,
}

impl Sequence for OddStep {
    #[inline(always)]
    fn start(hash: u64, range: u64) -> Self {
        OddStep { a: hash % range, b: (spread(hash) | 1) % range, range }
    }

    #[inline(always)]
    fn next(&mut self) -> u64 {
        let position = self.a;
        self.a = add_mod(self.a, self.b, self.range);
        position
    }
}
