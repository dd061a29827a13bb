//! SipHash-1-3, the keyed hash behind `secret=`: a pseudo-random function of the key bytes.
//!
//! Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012, with one compression and
//! three finalisation rounds (the variant of Rust's and Python's hash tables).

use siphasher::sip::SipHasher13;

/// The 128-bit key as two little-endian words.
pub type SipKey = (u64, u64);

/// Splits 16 bytes into the two words of the key.
pub fn sip_key(bytes: &[u8; 16]) -> SipKey {
    let (a, b) = bytes.split_at(8);
    (le_word(a), le_word(b))
}

fn le_word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |acc, &b| (acc << 8) | u64::from(b))
}

/// SipHash-1-3 of `bytes` under `key`.
#[inline]
pub fn sip13(bytes: &[u8], key: SipKey) -> u64 {
    SipHasher13::new_with_keys(key.0, key.1).hash(bytes)
}
