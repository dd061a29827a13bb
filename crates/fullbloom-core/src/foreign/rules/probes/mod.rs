//! Rules whose positions come from a hash each, or from pieces of a digest that no sum yields, one file a rule. The positions
//! of a key fill [`Digest`]s two by two, already below the number of bits.

mod bip37;
mod ethereum;
mod fastbloom_rs;
mod key;
mod pybloom_live;
mod pybloomfiltermmap3;
mod pyprobables;
mod rbloom;

use super::seed::Seed;
use super::walk::{Digest, Range};
use key::Key;

/// A rule of this folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// [`bip37`].
    Bip37,
    /// [`ethereum`].
    Ethereum,
    /// [`fastbloom_rs`].
    FastbloomRs,
    /// [`pybloom_live`].
    PybloomLive,
    /// [`pybloomfiltermmap3`].
    Pybloomfiltermmap3,
    /// [`pyprobables`], of texts by their characters.
    Pyprobables,
    /// [`pyprobables`], of bytes.
    PyprobablesBytes,
    /// [`rbloom`].
    Rbloom,
}

/// Positions in a digest.
const PAIR: u32 = 2;

impl Probe {
    /// Digests of one key.
    pub(super) fn parts(self, num_hashes: u32) -> u32 {
        match self {
            // Start and step.
            Probe::FastbloomRs => 1,
            _ => num_hashes.div_ceil(PAIR),
        }
    }

    /// The only number of hashes, where a rule has one.
    pub fn fixed_hashes(self) -> Option<u32> {
        (self == Probe::Ethereum).then_some(ethereum::NUM_HASHES)
    }

    /// Digest number `part` of a key.
    #[inline(never)]
    pub(super) fn digest(self, seed: &Seed, range: Range, part: u32, bytes: &[u8]) -> Digest {
        let (key, first) = (Key { bytes, seed, range }, part * PAIR);
        match self {
            Probe::Bip37 => pair(range, first, |i| bip37::position(key, i)),
            Probe::Ethereum => pair(range, first, ethereum::positions(key)),
            Probe::FastbloomRs => fastbloom_rs::start_and_step(key),
            Probe::PybloomLive => pair(range, first, pybloom_live::positions(key)),
            Probe::Pybloomfiltermmap3 => pair(range, first, |i| pybloomfiltermmap3::position(key, i)),
            Probe::Pyprobables => pair(range, first, |i| pyprobables::of_text(key, i)),
            Probe::PyprobablesBytes => pair(range, first, |i| pyprobables::of_bytes(key, i)),
            Probe::Rbloom => pair(range, first, rbloom::positions(key)),
        }
    }
}

/// The positions `first` and `first + 1`; the last one of an odd number twice. `position` is called in ascending order.
#[inline(always)]
fn pair(range: Range, first: u32, mut position: impl FnMut(u32) -> u64) -> Digest {
    let one = position(first);
    [one, if first + 1 < range.num_hashes { position(first + 1) } else { one }]
}
