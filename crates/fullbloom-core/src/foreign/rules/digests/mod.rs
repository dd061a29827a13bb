//! Positions from a cryptographic digest, as tutorials have it: one file a way of cutting it. Positions that do not fit in one
//! [`Digest`] take several, the *parts* of a key: a key is present if all parts are.

mod algorithm;
mod double;
mod seeded;
mod slices;

use super::walk::{Digest, Range};
pub use algorithm::Algorithm;
pub(in crate::foreign) use seeded::Pair;
pub(in crate::foreign) use slices::Words;

/// What becomes of the digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// [`double`].
    Double,
    /// [`slices`].
    Slices,
    /// [`seeded`].
    Seeded,
}

/// Positions in one part of a key.
pub(super) fn positions_per_part(cut: Cut) -> u32 {
    match cut {
        Cut::Double => u32::MAX,
        Cut::Slices => slices::WORDS,
        Cut::Seeded => seeded::PAIR,
    }
}

/// Digests that the positions of a key take.
pub(super) fn parts(cut: Cut, num_hashes: u32) -> u32 {
    num_hashes.div_ceil(positions_per_part(cut))
}

/// Part number `part` of a key.
pub(super) fn digest(algorithm: Algorithm, cut: Cut, range: Range, part: u32, bytes: &[u8]) -> Digest {
    match cut {
        Cut::Double => double::digest(algorithm, range, bytes),
        Cut::Slices => slices::digest(algorithm, range, part, bytes),
        Cut::Seeded => seeded::digest(algorithm, range, part, bytes),
    }
}
