//! [`Choice`]: which bit of a false positive to clear.

use crate::hash::splitmix;
use crate::scheme::fastrange;
use crate::structure::declaration::names;

/// Which bit of a false positive to clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Any, as the key's hash has it.
    Random,
    /// The one that fewest members set.
    MinimumFn,
    /// The one that most known false positives need.
    MaximumFp,
    /// The one with most known false positives a member.
    Ratio,
}

names! { Choice, "scheme":
    Random "random",
    MinimumFn "minimum-fn",
    MaximumFp "maximum-fp",
    Ratio "ratio",
}

/// The candidate that `choice` prefers, given a candidate's members and known false positives; the
/// first of equals.
pub(super) fn choose(choice: Choice, hash: u64, candidates: &[u64], weigh: impl Fn(u64) -> (u64, u64)) -> u64 {
    let mut best = candidates.first().copied().unwrap_or(0);
    if choice == Choice::Random {
        let i = fastrange(splitmix::at(hash, 0), candidates.len() as u64);
        return candidates.get(i as usize).copied().unwrap_or(best);
    }
    let (mut members, mut known) = weigh(best);
    for &bit in candidates.iter().skip(1) {
        let (m, f) = weigh(bit);
        let better = match choice {
            Choice::Random => false,
            Choice::MinimumFn => m < members || (m == members && f > known),
            Choice::MaximumFp => f > known || (f == known && m < members),
            // f/m against known/members without a division; equal ratios: the less harm.
            Choice::Ratio => f * members > known * m || (f * members == known * m && m < members),
        };
        if better {
            (best, members, known) = (bit, m, f);
        }
    }
    best
}
