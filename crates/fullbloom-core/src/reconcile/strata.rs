//! [`Strata`]: an estimate of the number of differences between two sets, by tables of samples of 1/2, 1/4, 1/8, ... of
//! the keys.
//!
//! Eppstein, Goodrich, Uyeda and Varghese, "What's the difference?", SIGCOMM 2011. The number of trailing zeros in a
//! mix of its hash selects the stratum of a key. From the sparsest stratum down, differences are decoded and counted,
//! until a stratum cannot be decoded: the count is then multiplied by the inverse of the sample's share. Within 25 % or
//! so, from 40 KB.

use super::cell::{Cell, check};
use super::peel::{PROBES, peel, places};
use crate::error::{Error, Result};
use crate::hash::splitmix::mix;
use crate::key::KeyHasher;

/// Strata; the last holds all keys with more zeros.
pub const STRATA: usize = 32;
/// Cells of a sub-table: 80 a stratum, which decode up to 50 differences.
const EACH: usize = 20;
const CELLS: usize = EACH * PROBES;
/// Parts the strata from the cells.
const STRATUM: u64 = 0xbb67_ae85_84ca_a73b;
const MAGIC: [u8; 8] = *b"\x89BST\x01\0\0\0";

/// A sample of a set, whose size does not depend on that of the set.
#[derive(Clone)]
pub struct Strata {
    cells: Vec<Cell>,
    hasher: KeyHasher,
}

impl Strata {
    /// Of no keys.
    pub fn new(hasher: KeyHasher) -> Self {
        Strata { cells: vec![Cell::default(); STRATA * CELLS], hasher }
    }

    /// How keys become hashes.
    pub fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    /// Adds a key, which must not be repeated.
    pub fn add(&mut self, hash: u64) {
        let stratum = (mix(hash ^ STRATUM).trailing_zeros() as usize).min(STRATA - 1);
        let check = check(hash);
        for at in places(hash, EACH as u64) {
            self.cells[stratum * CELLS + at].put(hash, check, 1);
        }
    }

    /// Estimated number of keys in only one of the two sets; exact up to about 50.
    pub fn differences(&self, other: &Self) -> Result<u64> {
        if self.hash_number() != other.hash_number() {
            return Err(Error::Incompatible(
                "the estimators differ in seed or secret; build both with the same".into(),
            ));
        }
        let mut found = 0u64;
        for stratum in (0..STRATA).rev() {
            let all = stratum * CELLS..(stratum + 1) * CELLS;
            let mut cells = self.cells[all.clone()].to_vec();
            cells.iter_mut().zip(&other.cells[all]).for_each(|(cell, other)| cell.join(*other, -1));
            let decoded = peel(&mut cells);
            if !decoded.complete {
                return Ok(found << (stratum + 1));
            }
            found += (decoded.mine.len() + decoded.theirs.len()) as u64;
        }
        Ok(found)
    }

    /// The hash that both sides must share.
    fn hash_number(&self) -> u64 {
        mix(self.hasher.seed()) ^ self.hasher.secret_fingerprint()
    }

    /// Two words per cell, after 16 bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let cells = self.cells.iter().flat_map(|cell| cell.to_words()).flat_map(u64::to_ne_bytes);
        MAGIC.into_iter().chain(self.hash_number().to_le_bytes()).chain(cells).collect()
    }

    /// Reads the bytes of [`Strata::to_bytes`].
    pub fn from_bytes(bytes: &[u8], hasher: KeyHasher) -> Result<Self> {
        let mut strata = Strata::new(hasher);
        let (words, rest) = bytes.as_chunks::<8>();
        let [magic, number, cells @ ..] = words else { return Err(foreign()) };
        if *magic != MAGIC || !rest.is_empty() || cells.len() != 2 * strata.cells.len() {
            return Err(foreign());
        }
        if u64::from_le_bytes(*number) != strata.hash_number() {
            return Err(Error::Incompatible(
                "the estimator has another seed or secret; build both with the same".into(),
            ));
        }
        let (pairs, _) = cells.as_chunks::<2>();
        for (cell, words) in strata.cells.iter_mut().zip(pairs) {
            *cell = Cell::from_words(words.map(u64::from_ne_bytes));
        }
        Ok(strata)
    }
}

fn foreign() -> Error {
    Error::format("the bytes are no strata estimator of this version, or not all of it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::testing::hash;

    #[test]
    fn differences_are_estimated() {
        for (differences, seed) in [(0u64, 0u64), (10, 1), (45, 2), (1000, 3), (30_000, 4)] {
            let mut pair = [0, 1].map(|_| Strata::new(KeyHasher::seeded(0)));
            (0..5000).for_each(|i| pair.iter_mut().for_each(|strata| strata.add(hash(seed << 32 | i))));
            (0..differences).for_each(|i| pair[(i % 2) as usize].add(hash(seed << 32 | 1 << 31 | i)));
            let back = Strata::from_bytes(&pair[0].to_bytes(), *pair[0].hasher()).unwrap();
            let result = back.differences(&pair[1]).unwrap();
            // The deciding stratum lists some 20 to 60 differences: a deviation of 1/sqrt(20) at most.
            assert!(
                result.abs_diff(differences) as f64 <= differences as f64 * 4.5 / 20f64.sqrt(),
                "{differences} {result}"
            );
            assert!(differences > 10 || result == differences);
        }
    }

    #[test]
    fn foreign_bytes_are_refused() {
        let bytes = Strata::new(KeyHasher::seeded(0)).to_bytes();
        for end in [0, 7, 16, bytes.len() - 1] {
            assert!(matches!(Strata::from_bytes(&bytes[..end], KeyHasher::seeded(0)), Err(Error::Format(_))));
        }
        assert!(matches!(Strata::from_bytes(&bytes, KeyHasher::seeded(1)), Err(Error::Incompatible(_))));
    }
}
