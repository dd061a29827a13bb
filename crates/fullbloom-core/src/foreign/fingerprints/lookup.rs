//! Lookups, one key or many.

use super::filter::FingerprintFilter;
use super::shape::{Shape, fingerprint, hash};
use crate::foreign::rules::Digest;
use crate::isa::prefetch;
use crate::scheme::ahead::answer_ahead;

/// Keys fetched ahead: three lines each.
const AHEAD: usize = 16;
/// Hashes on the way from keys to cells: 2 KiB.
const TOGETHER: usize = 256;

/// The sum of the cells of a hash and its fingerprint is 0.
#[inline(always)]
fn fits<C: Copy>(cells: &[C], shape: Shape, hash: u64, value: impl Fn(C) -> u16, mask: u16) -> bool {
    let sum = shape.places(hash).into_iter().fold(fingerprint(hash), |sum, place| sum ^ value(cells[place]));
    sum & mask == 0
}

impl FingerprintFilter {
    /// True for a key that it may have been built of.
    #[inline]
    pub fn contains(&self, digest: Digest) -> bool {
        let (hash, bytes) = (hash(digest[0], self.seed), self.memory.bytes());
        match self.layout.width {
            8 => fits(bytes, self.shape, hash, u16::from, 0xff),
            _ => fits(bytes.as_chunks::<2>().0, self.shape, hash, u16::from_le_bytes, u16::MAX),
        }
    }

    /// Looks up many keys; both slices are equally long.
    pub fn contains_many(&self, digests: &[Digest], found: &mut [u8]) {
        let bytes = self.memory.bytes();
        match (self.layout.width, self.shape) {
            (8, shape @ Shape::Xor { .. }) => self.look(bytes, shape, digests, found, u16::from, 0xff),
            (8, shape @ Shape::Fuse { .. }) => self.look(bytes, shape, digests, found, u16::from, 0xff),
            (_, shape) => {
                self.look(bytes.as_chunks::<2>().0, shape, digests, found, u16::from_le_bytes, u16::MAX);
            }
        }
    }

    #[inline(always)]
    fn look<C: Copy>(
        &self,
        cells: &[C],
        shape: Shape,
        digests: &[Digest],
        found: &mut [u8],
        value: impl Fn(C) -> u16 + Copy,
        mask: u16,
    ) {
        let mut hashes = [0; TOGETHER];
        for (digests, found) in digests.chunks(TOGETHER).zip(found.chunks_mut(TOGETHER)) {
            let hashes = &mut hashes[..digests.len()];
            hashes.iter_mut().zip(digests).for_each(|(out, digest)| *out = hash(digest[0], self.seed));
            let fetch =
                |hash| shape.places(hash).into_iter().for_each(|at| prefetch(cells.as_ptr().wrapping_add(at).cast()));
            answer_ahead(AHEAD, hashes, found, fetch, |hash| u8::from(fits(cells, shape, hash, value, mask)));
        }
    }
}
