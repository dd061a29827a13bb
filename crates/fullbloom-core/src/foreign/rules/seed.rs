//! [`Seed`]: the seed of a filter's hash, those of its hashes, or a key.

use std::fmt::{Display, Formatter, Result};

use crate::hash::splitmix::mix;

/// The seed of a filter's hash; in formats whose filters have several, each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed {
    /// The one that the caller gave, 0 without one.
    pub number: u32,
    /// One for each hash, in a format that has several; zeros behind them.
    pub each: [u32; Seed::MOST],
}

impl Seed {
    /// The most seeds of a filter.
    pub const MOST: usize = 32;
    /// Of a format without one.
    pub const NONE: Seed = Seed::of(0);

    /// A single one.
    pub const fn of(number: u32) -> Self {
        Seed { number, each: [0; Self::MOST] }
    }

    /// A key of 16 bytes.
    pub fn of_key(key: &[u8; 16]) -> Self {
        let mut seed = Self::of(0);
        let words = key.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
        seed.each.iter_mut().zip(words).for_each(|(each, word)| *each = word);
        seed
    }

    /// The words of that key.
    pub(super) fn key(&self) -> [u64; 2] {
        [0, 2].map(|at| u64::from(self.each[at]) | u64::from(self.each[at + 1]) << 32)
    }

    /// One for each of `count` hashes, which follow from `number`.
    pub fn spread(number: u32, count: u32) -> Self {
        let mut seed = Self::of(number);
        for (each, i) in seed.each.iter_mut().zip(0..count) {
            *each = mix(u64::from(number) << 32 | u64::from(i)) as u32;
        }
        seed
    }
}

impl Display for Seed {
    fn fmt(&self, to: &mut Formatter<'_>) -> Result {
        let count = Self::MOST - self.each.iter().rev().take_while(|each| **each == 0).count();
        match count {
            0 => self.number.fmt(to),
            _ => write!(to, "{:?}", &self.each[..count]),
        }
    }
}
