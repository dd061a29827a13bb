//! Scheme 4, `double`: plain double hashing, `(a + i b) mod range`.
//!
//! Kirsch and Mitzenmacher, "Less hashing, same performance", 2006. Kept for comparison and for
//! foreign layouts: the claim is asymptotic, and below 0.1 % small filters miss their rate by up
//! to ten times. `a = h mod range`; `b` is the high half of `h * 0x9e3779b97f4a7c15 (mod 2^64)`
//! mixed as `(p ^ p >> 32) mod range`.

use super::probes::Sequence;

/// The pair (a, b) of both double-hashing schemes, reduced modulo `range`.
#[inline(always)]
pub(super) fn pair(hash: u64, range: u64) -> (u64, u64) {
    (hash % range, spread(hash) % range)
}

/// b before it is reduced.
#[inline(always)]
pub(super) fn spread(hash: u64) -> u64 {
    let product = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ (product >> 32)
}

/// `a + b mod range` for reduced operands; cannot wrap, since `range` is below 2^63.
#[inline(always)]
pub(super) fn add_mod(a: u64, b: u64, range: u64) -> u64 {
    let sum = a + b;
    if sum >= range { sum - range } else { sum }
}

/// The sequence.
#[derive(Clone, Copy, Debug)]
pub struct Double {
    a: u64,
    b: u64,
    range: u64,
}

impl Sequence for Double {
    #[inline(always)]
    fn start(hash: u64, range: u64) -> Self {
        let (a, b) = pair(hash, range);
        Double { a, b, range }
    }

    #[inline(always)]
    fn next(&mut self) -> u64 {
        let position = self.a;
        self.a = add_mod(self.a, self.b, self.range);
        position
    }
}
