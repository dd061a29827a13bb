//! SipHash-1-3, the keyed hash behind `secret=`: a pseudo-random function of the key bytes.
//!
//! Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012, with one compression and
//! three finalisation rounds (the variant of Rust's and Python's hash tables).

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

/// The 128-bit key as two little-endian words.
pub type SipKey = (u64, u64);

/// Splits 16 bytes into the two words of the key.
pub fn sip_key(bytes: &[u8; 16]) -> SipKey {
    let key = u128::from_le_bytes(*bytes);
    (key as u64, (key >> 64) as u64)
}

/// SipHash-1-3 of `bytes` under `key`.
// A function of its own: among several callers, the compiler leaves the library's `hash` a call that reads its state from
// memory, 2.8 ns of 11 for a key of 16 bytes.
#[inline(never)]
pub fn sip13(bytes: &[u8], key: SipKey) -> u64 {
    SipHasher13::new_with_keys(key.0, key.1).hash(bytes)
}

/// [`sip13`] of bytes that `feed` hands on in pieces.
pub fn sip13_pieces(key: SipKey, feed: impl FnOnce(&mut dyn FnMut(&[u8]))) -> u64 {
    let mut state = SipHasher13::new_with_keys(key.0, key.1);
    feed(&mut |piece| state.write(piece));
    state.finish()
}
