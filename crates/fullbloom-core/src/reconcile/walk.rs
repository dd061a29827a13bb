//! [`Walk`]: the coded symbols that hold a key.
//!
//! Symbol i holds a key with probability 1 / (1 + i/2), each for itself: Yang, Gilad and Alizadeh, "Practical rateless set
//! reconciliation", SIGCOMM 2024. From i on the next one is beyond j with probability
//! `prod_(n=i+1..j) n / (n + 2) = (i + 1)(i + 2) / ((j + 1)(j + 2))`, so for a uniform u it is the least j above i with
//! `(j + 1)(j + 2) >= (i + 1)(i + 2) / u`. Division and square root of f64 are exact to the last bit everywhere, so all
//! machines walk alike.

use crate::hash::splitmix;

/// A symbol that no stream reaches.
pub const NEVER: u32 = u32::MAX;

/// A key on its way through the symbols.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    /// The key.
    pub hash: u64,
    steps: u32,
    /// The symbol at which it is.
    pub at: u32,
}

impl Walk {
    /// At symbol 0, which holds every key.
    pub fn of(hash: u64) -> Self {
        Walk { hash, steps: 0, at: 0 }
    }

    /// Advances to the next symbol.
    #[inline(always)]
    pub fn step(&mut self) {
        let uniform = ((splitmix::at(self.hash, u64::from(self.steps)) >> 11) + 1) as f64 * f64::EPSILON / 2.0;
        let here = f64::from(self.at);
        let next = (((here + 1.0) * (here + 2.0) / uniform + 0.25).sqrt() - 1.5).ceil();
        // Saturates at 32 bits.
        self.at = (next as u32).max(self.at.saturating_add(1));
        self.steps = self.steps.wrapping_add(1);
    }

    /// Calls `visit` with each remaining symbol before `end`.
    #[inline(always)]
    pub fn until(&mut self, end: u32, mut visit: impl FnMut(usize)) {
        while self.at < end {
            visit(self.at as usize);
            self.step();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::testing::hash;

    #[test]
    fn symbols_hold_keys_as_often_as_the_law_says() {
        let (mut held, trials) = (vec![0u32; 200], 20_000);
        (0..trials).for_each(|i| Walk::of(hash(i)).until(200, |at| held[at] += 1));
        for (i, &held) in held.iter().enumerate() {
            let p = 1.0 / (1.0 + i as f64 / 2.0);
            let (mean, sd) = (trials as f64 * p, (trials as f64 * p * (1.0 - p)).sqrt());
            assert!((f64::from(held) - mean).abs() <= 4.5 * sd, "{i} {held} {mean}");
        }
    }

    #[test]
    fn every_machine_walks_alike() {
        let mut walk = Walk::of(1);
        let walked: Vec<u32> = std::iter::from_fn(|| Some((walk.at, walk.step()).0)).take(8).collect();
        assert_eq!(walked, WALKED);
        (0..200).for_each(|_| walk.step());
        assert_eq!(walk.at, NEVER);
    }

    const WALKED: [u32; 8] = [0, 1, 2, 3, 6, 10, 12, 13];
}
