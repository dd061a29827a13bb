//! The multiplication that spreads hashes of owners over a directory, and its inverse.

/// An odd multiplier with a good spectrum (Steele and Vigna, 2021).
pub const MIX: u64 = 0xd134_2543_de82_ef95;
/// The inverse of [`MIX`] modulo 2^64.
pub const UNMIX: u64 = inverse(MIX);

/// Newton's iteration doubles the number of correct bits.
const fn inverse(odd: u64) -> u64 {
    let (mut x, mut step) = (odd, 0);
    while step < 6 {
        x = x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x)));
        step += 1;
    }
    x
}
