//! [`Positions`]: the k bits of a key among m by scheme `mcg`, and the choice of m and k.

use crate::cells::memory::ADDRESSABLE_BYTES;
use crate::error::{Error, Result};
use crate::isa::prefetch;
use crate::scheme::ProbeKernel;
use crate::scheme::mcg::Mcg;
use crate::scheme::probes::Sequence;
use crate::sizing::classic::{Classic, MAX_HASHES};
use crate::sizing::{check_reachable, check_sized, too_large};

/// Most bits of a filter.
const MAX_BITS: u64 = ADDRESSABLE_BYTES * 8;

/// m and k.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Positions {
    /// m.
    pub num_bits: u64,
    /// k.
    pub num_hashes: u32,
}

impl Positions {
    /// The smallest m, with its k, for a rate of at most `fpr` at `capacity` keys.
    pub fn for_capacity(capacity: u64, fpr: f64) -> Result<Self> {
        Self::fit_within(MAX_BITS, capacity, fpr)
    }

    /// [`Positions::for_capacity`] with at most `most` positions.
    pub(crate) fn fit_within(most: u64, capacity: u64, fpr: f64) -> Result<Self> {
        check_sized(capacity, fpr)?;
        if capacity as f64 * -fpr.log2() > most as f64 {
            return Err(too_large(capacity, fpr));
        }
        check_reachable(capacity, fpr)?;
        let found = Classic::for_capacity(most, capacity, fpr).ok_or_else(|| too_large(capacity, fpr))?;
        Ok(Positions { num_bits: found.num_bits, num_hashes: found.num_hashes })
    }

    /// Refuses numbers that no constructor chooses.
    pub fn check(self) -> Result<Self> {
        let Positions { num_bits, num_hashes } = self;
        if num_bits == 0 || num_bits > MAX_BITS {
            return Err(Error::Parameter(format!("num_bits must be between 1 and {MAX_BITS}, got {num_bits}")));
        }
        if num_hashes == 0 || num_hashes > MAX_HASHES {
            return Err(Error::Parameter(format!("num_hashes must be between 1 and {MAX_HASHES}, got {num_hashes}")));
        }
        Ok(self)
    }

    /// The law of the rate.
    pub fn law(self) -> Classic {
        Classic { num_bits: self.num_bits, num_hashes: self.num_hashes }
    }

    /// Words of one bit per position.
    pub fn words(self) -> u64 {
        self.num_bits.div_ceil(64)
    }

    /// The probes as a kernel.
    #[inline(always)]
    pub(crate) fn kernel(self) -> ProbeKernel {
        ProbeKernel { range: self.num_bits, stride: 0, num_hashes: self.num_hashes }
    }

    /// True when all bits of `hash` are set.
    #[inline(always)]
    pub(crate) fn contains(self, words: &[u64], hash: u64) -> bool {
        self.kernel().contains::<Mcg>(words, hash)
    }

    /// The distinct bits of `hash`, in the order of the probes.
    #[inline(always)]
    pub(crate) fn distinct(self, hash: u64, buffer: &mut [u64; 64]) -> &[u64] {
        let mut sequence = Mcg::start(hash, self.num_bits);
        let mut len = 0;
        for _ in 0..self.num_hashes.min(MAX_HASHES) {
            let position = sequence.next();
            if !buffer[..len].contains(&position) {
                buffer[len] = position;
                len += 1;
            }
        }
        &buffer[..len]
    }

    /// Prefetches the lines of `words` with the cells of `hash`, `1 << per_word` cells per word.
    #[inline(always)]
    pub(crate) fn fetch(self, words: &[u64], per_word: u32, hash: u64) {
        let mut sequence = Mcg::start(hash, self.num_bits);
        for _ in 0..self.num_hashes {
            prefetch(words.as_ptr().wrapping_add((sequence.next() >> per_word) as usize));
        }
    }
}

/// True if a bit from number `num_bits` on is set.
pub(crate) fn has_bits_past(words: &[u64], num_bits: u64) -> bool {
    let (last, used) = ((num_bits / 64) as usize, num_bits % 64);
    let partial = words.get(last).is_some_and(|word| u64::from_le(*word) >> used != 0);
    partial || words.iter().skip(last + 1).any(|&word| word != 0)
}
