//! [`Cell`]: the number of its keys, their xor, and the xor of their checks.

use crate::hash::splitmix::mix;

/// Parts the check from the positions, which are mixed from the hash, too.
const CHECK: u64 = 0x6a09_e667_f3bc_c909;

/// The check of a key: a cell with several keys passes for one with a single key with probability 2^-32.
#[inline(always)]
pub fn check(hash: u64) -> u32 {
    (mix(hash ^ CHECK) >> 32) as u32
}

/// A cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Keys added less keys removed, modulo 2^64 (2^32 in files: only differences are read from it).
    pub count: i64,
    /// Xor of the keys.
    pub key: u64,
    /// Xor of their checks.
    pub check: u32,
}

impl Cell {
    /// Adds a key `times`, 1 or -1.
    #[inline(always)]
    pub fn put(&mut self, hash: u64, check: u32, times: i64) {
        self.count = self.count.wrapping_add(times);
        self.key ^= hash;
        self.check ^= check;
    }

    /// Adds all of another cell `times`, 1 or -1.
    #[inline(always)]
    pub fn join(&mut self, other: Cell, times: i64) {
        self.put(other.key, other.check, other.count.wrapping_mul(times));
    }

    /// True if it is empty.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self == Cell::default()
    }

    /// True if it seems to hold one key, added or removed once.
    #[inline(always)]
    pub fn is_pure(self) -> bool {
        (self.count == 1 || self.count == -1) && check(self.key) == self.check
    }

    /// The two words of a file: the key; the count, and above it the check.
    #[inline(always)]
    pub fn to_words(self) -> [u64; 2] {
        [self.key.to_le(), (u64::from(self.count as u32) | u64::from(self.check) << 32).to_le()]
    }

    /// Reads the words of [`Cell::to_words`].
    #[inline(always)]
    pub fn from_words([key, rest]: [u64; 2]) -> Self {
        let rest = u64::from_le(rest);
        Cell { count: i64::from(rest as u32 as i32), key: u64::from_le(key), check: (rest >> 32) as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_the_cell_and_sums_cancel() {
        let mut cell = Cell::default();
        cell.put(7, check(7), -1);
        assert!(cell.is_pure() && Cell::from_words(cell.to_words()) == cell);
        let mut other = cell;
        other.put(9, check(9), 1);
        assert!(!other.is_pure() && !other.is_empty());
        other.join(cell, -1);
        assert!(other.is_pure() && other.key == 9);
        cell.join(cell, -1);
        assert!(cell.is_empty());
    }
}
