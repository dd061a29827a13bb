//! Probe kernels: k positions anywhere in the filter, or one in each of k slices.

use std::convert::Infallible;

use super::ahead::{ahead, answer_ahead};
use crate::cells::bits::mask;
use crate::isa::prefetch;

/// Keys fetched ahead; each needs k lines, and a core has 10 to 12 line-fill buffers.
const AHEAD: usize = 8;

/// Successive positions of one hash below `range`.
pub trait Sequence: Copy {
    /// The sequence of `hash`.
    fn start(hash: u64, range: u64) -> Self;
    /// The next position.
    fn next(&mut self) -> u64;
}

/// The range of probes: `classic` has one range of all bits (`stride` 0), `partitioned` a slice of `range` bits for
/// each probe (`stride` = `range`).
#[derive(Clone, Copy, Debug)]
pub struct ProbeKernel {
    /// Bits a probe chooses from.
    pub range: u64,
    /// Distance between the starts of successive ranges.
    pub stride: u64,
    /// k.
    pub num_hashes: u32,
}

impl ProbeKernel {
    /// True when all cells of `hash` are set.
    #[inline(always)]
    pub fn contains<S: Sequence>(&self, words: &[u64], hash: u64) -> bool {
        let mut sequence = S::start(hash, self.range);
        let mut offset = 0;
        for _ in 0..self.num_hashes {
            let bit = offset + sequence.next();
            if words[(bit >> 6) as usize] & mask(bit) == 0 {
                return false;
            }
            offset += self.stride;
        }
        true
    }

    /// Sets all cells of `hash`; true when one of them was clear.
    #[inline(always)]
    pub fn add<S: Sequence>(&self, words: &mut [u64], hash: u64) -> bool {
        let mut sequence = S::start(hash, self.range);
        let (mut offset, mut missing) = (0u64, 0);
        for _ in 0..self.num_hashes {
            let bit = offset + sequence.next();
            let word = &mut words[(bit >> 6) as usize];
            missing |= mask(bit) & !*word;
            *word |= mask(bit);
            offset += self.stride;
        }
        missing != 0
    }

    /// The cells of `hash`, in the order of its probes.
    pub fn positions<S: Sequence>(&self, hash: u64) -> Vec<u64> {
        let mut sequence = S::start(hash, self.range);
        (0..u64::from(self.num_hashes)).map(|i| i * self.stride + sequence.next()).collect()
    }

    /// [`ProbeKernel::contains`] as a separate call: inlined into the scalar entry points, the loops of three sequences
    /// would occupy the registers of the line kernels.
    #[inline(never)]
    pub fn contains_one<S: Sequence>(&self, words: &[u64], hash: u64) -> bool {
        self.contains::<S>(words, hash)
    }

    /// [`ProbeKernel::add`] as a separate call, likewise.
    #[inline(never)]
    pub fn add_one<S: Sequence>(&self, words: &mut [u64], hash: u64) -> bool {
        self.add::<S>(words, hash)
    }

    #[inline(always)]
    fn fetch<S: Sequence>(&self, words: &[u64], hash: u64) {
        let mut sequence = S::start(hash, self.range);
        let mut offset = 0;
        for _ in 0..self.num_hashes {
            prefetch(words.as_ptr().wrapping_add(((offset + sequence.next()) >> 6) as usize));
            offset += self.stride;
        }
    }

    /// Checks `hashes` in order.
    pub fn contains_all<S: Sequence>(&self, words: &[u64], hashes: &[u64], found: &mut [u8]) {
        let (fetch, contains) = (|hash| self.fetch::<S>(words, hash), |hash| u8::from(self.contains::<S>(words, hash)));
        answer_ahead(AHEAD, hashes, found, fetch, contains);
    }

    /// Adds `hashes` in order; reports for each whether it was new, returns how many were.
    pub fn add_all<S: Sequence>(&self, words: &mut [u64], hashes: &[u64], mut tell: impl FnMut(usize, bool)) -> u64 {
        let mut count = 0;
        let fetch = |words: &[u64], _, hash| self.fetch::<S>(words, hash);
        let Ok(()) = ahead(AHEAD, words, hashes, fetch, |words, i, hash| {
            let new = self.add::<S>(words, hash);
            count += u64::from(new);
            tell(i, new);
            Ok::<(), Infallible>(())
        });
        count
    }
}
