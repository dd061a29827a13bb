//! Scheme 9, `quadratic`: `(a + i b + i^2) mod range`, with the a and b of `double`.
//!
//! Tutorials call it enhanced double hashing, which is another rule ([`enhanced`](super::enhanced)). Emit a; `a += b +
//! 2i + 1`. Less weak than `double`, but still weak: the probes of one key are a shift or a reflection of another's.

use super::double::{add_mod, pair};
use super::probes::Sequence;

/// The sequence.
#[derive(Clone, Copy, Debug)]
pub struct Quadratic {
    a: u64,
    b: u64,
    odd: u64,
    range: u64,
}

impl Sequence for Quadratic {
    #[inline(always)]
    fn start(hash: u64, range: u64) -> Self {
        let (a, b) = pair(hash, range);
        Quadratic { a, b, odd: 1, range }
    }

    #[inline(always)]
    fn next(&mut self) -> u64 {
        let position = self.a;
        let step = add_mod(self.b, self.odd % self.range, self.range);
        self.a = add_mod(self.a, step, self.range);
        self.odd += 2;
        position
    }
}
