//! [`Walk`]: from the [`Digest`] of a key to its numbers.

/// The shape of a filter, as far as a rule needs it for its digests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// m.
    pub num_bits: u64,
    /// k.
    pub num_hashes: u32,
}

/// The hash of a key, as wide as the widest rule needs it.
pub type Digest = [u64; 2];

/// Numbers of a key, before they are taken modulo the number of bits.
pub(in crate::foreign) trait Walk: Copy {
    /// Before the first number.
    fn start(digest: Digest) -> Self;
    /// The next number, below 2^63.
    fn next(&mut self) -> u64;
}
