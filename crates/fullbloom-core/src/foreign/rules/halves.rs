//! The two halves of a 64-bit hash as start and step, as tutorials in Go and Java have it.
//!
//! ```text
//! h = FNV-1a(key) of 64 bits;  a = h mod 2^32;  b = (h >> 32) | 1, an odd step
//! position i = reduce(a + i b) mod bits,  i = 0..k-1
//! ```
//!
//! The programs differ in the width of the sum, and in what they do to a negative `int` of Java: [`Sum`].

use super::walk::{Digest, Walk};
use crate::hash::fnv::Fnv1a;

/// The sum, and how a program makes it a number that is not negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sum {
    /// Go's `uint64` and Java's `long`: it never wraps.
    Wide = 0,
    /// Go's `uint32`: modulo 2^32.
    Wrapped = 1,
    /// Java's `int`, `& Integer.MAX_VALUE`.
    Masked = 2,
    /// Java's `int`, `Math.abs(sum % bits)`.
    Absolute = 3,
    /// Java's `int`, `Math.floorMod(sum, bits)`.
    Floor = 4,
    /// Java's `int`, `~sum` if it is negative.
    Complement = 5,
}

/// Start and step. Behind the start is the number that [`Sum::Floor`] adds to a negative sum, behind the step the [`Sum`].
#[inline(always)]
pub(super) fn digest(bytes: &[u8], sum: Sum, num_bits: u64) -> Digest {
    let mut state = Fnv1a::new();
    state.update(bytes);
    let hash = state.digest();
    let (start, step) = (hash & 0xffff_ffff, hash >> 32 | 1);
    if sum == Sum::Wide {
        return [start, step];
    }
    let offset = if sum == Sum::Floor { (1u64 << 31).next_multiple_of(num_bits) } else { 0 };
    [start | offset << 32, step | (sum as u64) << 32]
}

/// Sums in 64 bits that stay below 2^63.
#[derive(Clone, Copy)]
pub(in crate::foreign) struct Steps {
    sum: u64,
    step: u64,
}

impl Walk for Steps {
    #[inline(always)]
    fn start([sum, step]: Digest) -> Self {
        Steps { sum, step }
    }

    #[inline(always)]
    fn next(&mut self) -> u64 {
        let number = self.sum;
        self.sum = self.sum.wrapping_add(self.step);
        number
    }
}

/// Sums in 32 bits.
#[derive(Clone, Copy)]
pub(in crate::foreign) struct Ints {
    sum: u32,
    step: u32,
    reduce: u32,
    offset: u32,
}

impl Walk for Ints {
    #[inline(always)]
    fn start([start, step]: Digest) -> Self {
        Ints { sum: start as u32, step: step as u32, reduce: (step >> 32) as u32, offset: (start >> 32) as u32 }
    }

    #[inline(always)]
    fn next(&mut self) -> u64 {
        const MASKED: u32 = Sum::Masked as u32;
        const ABSOLUTE: u32 = Sum::Absolute as u32;
        const FLOOR: u32 = Sum::Floor as u32;
        const COMPLEMENT: u32 = Sum::Complement as u32;
        let sum = self.sum;
        self.sum = sum.wrapping_add(self.step);
        let signed = sum as i32;
        match self.reduce {
            MASKED => u64::from(sum & (u32::MAX >> 1)),
            ABSOLUTE => u64::from(signed.unsigned_abs()),
            COMPLEMENT => (signed ^ (signed >> 31)) as u64,
            FLOOR if signed < 0 => (i64::from(signed) + i64::from(self.offset)) as u64,
            _ => u64::from(sum),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_languages() {
        let (num_bits, start, step) = (1_000_003u64, 0x7fff_fff0u64, 0x9000_0001u64);
        for sum in [Sum::Wrapped, Sum::Masked, Sum::Absolute, Sum::Floor, Sum::Complement] {
            let offset = (1u64 << 31).next_multiple_of(num_bits);
            let mut walk = Ints::start([start | offset << 32, step | (sum as u64) << 32]);
            for i in 0..1000u64 {
                let exact = (start + i * step) as i32;
                let want = match sum {
                    Sum::Wrapped => i64::from(exact as u32) % num_bits as i64,
                    Sum::Masked => i64::from(exact & i32::MAX) % num_bits as i64,
                    Sum::Absolute => (i64::from(exact) % num_bits as i64).abs(),
                    Sum::Floor => i64::from(exact).rem_euclid(num_bits as i64),
                    _ => i64::from(if exact < 0 { !exact } else { exact }) % num_bits as i64,
                };
                assert_eq!(walk.next() % num_bits, want as u64, "{sum:?} {i}");
            }
        }
    }
}
