//! [`CharacteristicSketch`]: values of the characteristic polynomial of a set, from which a peer decodes up to `bound`
//! differences: 8 bytes each, the least that any message of so many keys can take.
//!
//! Minsky, Trachtenberg and Zippel, "Set reconciliation with nearly optimal communication complexity", IEEE Transactions on
//! Information Theory 49(9), 2003; for handhelds Starobinski, Trachtenberg and Agarwal, IEEE Transactions on Mobile Computing
//! 2(1), 2003. The polynomial of a set is the product of x - key. That of one set over that of another loses its common
//! factors: what is left has the keys of either set alone as its zeros and poles. It is interpolated from bound + 1 values, checked
//! against [`CHECKS`] more, and factored. More differences than the bound agree with the checks by chance only, 2^-50 each.
//!
//! The bytes: `\x89BCS`, version 1 as four bytes, a number for the hash, the number of keys, then the values, 8 bytes each, all
//! little-endian. Points are drawn from that number, so that both sides have the same, and the shorter message counts.

use super::peel::DecodedKeys;
use crate::cells::allocation::reserve;
use crate::error::{Error, Result};
use crate::field::{P, evaluate, inverse, mul, rational, roots, sub};
use crate::hash::splitmix::mix;
use crate::key::KeyHasher;

const MAGIC: [u8; 8] = *b"\x89BCS\x01\0\0\0";
/// Magic, number of the hash, number of keys.
const HEAD: usize = 24;
/// Values beyond those that are interpolated: a wrong result passes each with a chance of 2^-50.
pub const CHECKS: usize = 2;
/// Values of a sketch beyond its bound: one for the interpolation, and the checks.
const BEYOND: usize = 1 + CHECKS;
/// The largest bound: decoding then takes a second, and grows with its square.
pub const MOST: u64 = 1024;
/// Separates points from other uses of the number of the hash.
const POINTS: u64 = 0x6a09_e667_f3bc_c908;
/// Points that are worked on together: their values stay in registers and the first-level cache.
const TOGETHER: usize = 16;

/// Values of the characteristic polynomial of a set at fixed points.
#[derive(Clone)]
pub struct CharacteristicSketch {
    /// The keys, ascending.
    keys: Vec<u64>,
    values: Vec<u64>,
    hash: u64,
}

/// The hash that both sides must share.
fn hash_number(hasher: &KeyHasher) -> u64 {
    mix(hasher.seed()) ^ hasher.secret_fingerprint()
}

/// The point `i`.
fn point(hash: u64, i: usize) -> u64 {
    // A bijection of 64 bits, so that no two are equal except where 59 numbers are folded over others.
    mix(mix(hash ^ POINTS).wrapping_add(i as u64)) % P
}

impl CharacteristicSketch {
    /// The sketch of the set of these hashes, which `hasher` computed, for up to `bound` differences. `breathe` is
    /// called now and then.
    pub fn new(
        mut hashes: Vec<u64>,
        bound: u64,
        hasher: &KeyHasher,
        breathe: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Self> {
        if !(1..=MOST).contains(&bound) {
            return Err(Error::parameter(format!(
                "bound must be between 1 and {MOST}, got {bound}; a stream of coded symbols has none"
            )));
        }
        hashes.sort_unstable();
        hashes.dedup();
        if let Some(beyond) = hashes.last().filter(|&&hash| hash >= P) {
            return Err(Error::parameter(format!(
                "a key has the hash {beyond}, one of the 59 outside the field; take another seed or secret"
            )));
        }
        let hash = hash_number(hasher);
        let mut values = Vec::new();
        reserve(&mut values, bound as usize + BEYOND)?;
        values.resize(bound as usize + BEYOND, 1);
        for (first, values) in (0..).step_by(TOGETHER).zip(values.chunks_mut(TOGETHER)) {
            let mut points = [0; TOGETHER];
            points.iter_mut().enumerate().for_each(|(i, at)| *at = point(hash, first + i));
            for hashes in hashes.chunks(1 << 16) {
                for &key in hashes {
                    for (value, &at) in values.iter_mut().zip(&points) {
                        *value = mul(*value, sub(at, key));
                    }
                }
                breathe()?;
            }
        }
        Ok(CharacteristicSketch { keys: hashes, values, hash })
    }

    /// Distinct keys.
    pub fn keys(&self) -> u64 {
        self.keys.len() as u64
    }

    /// The largest number of differences that it can decode.
    pub fn bound(&self) -> u64 {
        (self.values.len() - BEYOND) as u64
    }

    /// Its size in bytes.
    pub fn nbytes(&self) -> usize {
        8 * (self.keys.len() + self.values.len())
    }

    /// The message for a peer.
    pub fn to_bytes(&self) -> Vec<u8> {
        let head = [MAGIC, self.hash.to_le_bytes(), self.keys().to_le_bytes()];
        head.into_iter().chain(self.values.iter().map(|value| value.to_le_bytes())).flatten().collect()
    }

    /// The differences between this set and that of a peer, who sent `message`: all of them (`complete`), or none if
    /// there are more than the smaller bound.
    pub fn decode(&self, message: &[u8]) -> Result<DecodedKeys> {
        let (keys, theirs) = self.read(message)?;
        let nothing = DecodedKeys { mine: Vec::new(), theirs: Vec::new(), complete: false };
        let number = theirs.len().min(self.values.len());
        let bound = (number - BEYOND) as i128;
        let more = i128::from(keys) - i128::from(self.keys());
        if more.abs() > bound {
            return Ok(nothing);
        }
        // A key that is a point makes its value zero, on either side: such a value is left out. By chance that never
        // happens.
        let both = self.values.iter().zip(&theirs).enumerate().take(number);
        let ratios: Vec<(u64, u64)> = both
            .filter(|(_, (own, other))| **own != 0 && **other != 0)
            .map(|(i, (&own, &other))| (point(self.hash, i), mul(other, inverse(own))))
            .collect();
        let Some(interpolated) = ratios.len().checked_sub(CHECKS).filter(|&left| left as i128 > bound) else {
            return Ok(nothing);
        };
        let (points, values): (Vec<u64>, Vec<u64>) = ratios[..interpolated].iter().copied().unzip();
        let most = usize::try_from((bound + more) / 2).unwrap_or(0);
        let found = rational(&points, &values, most).filter(|[upper, lower]| {
            upper.len() as i128 - lower.len() as i128 == more
                && ratios.iter().all(|&(at, ratio)| evaluate(upper, at) == mul(ratio, evaluate(lower, at)))
        });
        let Some([upper, lower]) = found else { return Ok(nothing) };
        let (Some(mine), Some(theirs)) = (roots(&lower), roots(&upper)) else { return Ok(nothing) };
        let has = |key: &u64| self.keys.binary_search(key).is_ok();
        // Keys that the peer lacks are here, and keys missing here are not; otherwise the peer's message is false.
        if !mine.iter().all(has) || theirs.iter().any(has) {
            return Ok(nothing);
        }
        Ok(DecodedKeys { mine, theirs, complete: true })
    }

    /// The number of keys and the values of a message.
    fn read(&self, message: &[u8]) -> Result<(u64, Vec<u64>)> {
        let foreign = || Error::format("the bytes are not a complete characteristic sketch of this version");
        let (words, rest) = message.as_chunks::<8>();
        let [magic, hash, keys, values @ ..] = words else { return Err(foreign()) };
        if *magic != MAGIC || !rest.is_empty() || message.len() < HEAD + 8 * (BEYOND + 1) {
            return Err(foreign());
        }
        if u64::from_le_bytes(*hash) != self.hash {
            return Err(Error::Incompatible(
                "the sketches were made with another seed or secret; give both sides the same".into(),
            ));
        }
        let most = self.values.len();
        let values: Vec<u64> = values.iter().take(most).map(|value| u64::from_le_bytes(*value)).collect();
        match values.iter().find(|&&value| value >= P) {
            Some(value) => Err(Error::format(format!("the sketch has the value {value}, which is outside the field"))),
            None => Ok((u64::from_le_bytes(*keys), values)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::testing::{fixed_cases, hash};
    use proptest::prelude::*;

    fn sketch(keys: impl IntoIterator<Item = u64>, bound: u64) -> CharacteristicSketch {
        let keys = keys.into_iter().map(hash).collect();
        CharacteristicSketch::new(keys, bound, &KeyHasher::seeded(3), &mut || Ok(())).unwrap()
    }

    fn hashes(keys: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut all: Vec<u64> = keys.into_iter().map(hash).collect();
        all.sort_unstable();
        all
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..fixed_cases() })]
        /// Exact up to the bound, and nothing beyond it.
        #[test]
        fn the_differences_come_out_up_to_the_bound(
            common in 0..60u64, mine in 0..12u64, theirs in 0..12u64, bound in 1..24u64, other in 1..24u64,
        ) {
            let (a, b) = (1000..1000 + mine, 2000..2000 + theirs);
            let here = sketch((0..common).chain(a.clone()), bound);
            let there = sketch((0..common).chain(b.clone()), other);
            let found = here.decode(&there.to_bytes()).unwrap();
            if mine + theirs <= bound.min(other) {
                prop_assert_eq!((found.mine, found.theirs, found.complete), (hashes(a), hashes(b), true));
            } else {
                prop_assert!(!found.complete && found.mine.is_empty() && found.theirs.is_empty());
            }
        }

        /// Whatever a peer says: an error, or an answer that is no more than the bound and fits the own set.
        #[test]
        fn no_message_is_believed_beyond_what_fits(
            keys in any::<u64>(), values in prop::collection::vec(any::<u64>(), 0..16), near in any::<bool>(), cut in 0..8usize,
        ) {
            let here = sketch(0..20, 6);
            let keys = if near { 15 + keys % 10 } else { keys };
            let head = [MAGIC, here.hash.to_le_bytes(), keys.to_le_bytes()];
            let mut bytes: Vec<u8> = head.into_iter().chain(values.iter().map(|v| v.to_le_bytes())).flatten().collect();
            bytes.truncate(bytes.len() - cut);
            if let Ok(found) = here.decode(&bytes) {
                prop_assert!(found.mine.len() + found.theirs.len() <= 6);
                prop_assert!(found.mine.iter().all(|key| here.keys.contains(key)));
            }
        }
    }

    /// A message of a peer that has the set of these hashes, any of them more than once.
    fn lie(hashes: &[u64], keys: u64, bound: usize, of: u64) -> Vec<u8> {
        let value = |i: usize| hashes.iter().fold(1, |all, &key| mul(all, sub(point(of, i), key)));
        let head = [MAGIC, of.to_le_bytes(), keys.to_le_bytes()];
        head.into_iter().chain((0..bound + BEYOND).map(|i| value(i).to_le_bytes())).flatten().collect()
    }

    #[test]
    fn false_messages_of_peers_are_detected() {
        let here = sketch(0..20, 8);
        let own = hashes(0..20);
        let said = |hashes: &[u64], keys: u64| here.decode(&lie(hashes, keys, 8, here.hash)).unwrap();
        assert!(said(&own, 20).complete);
        // Another number of keys than there are, a key twice, a key that both have twice, more than the bound.
        assert!(!said(&own, 21).complete);
        assert!(!said(&own[1..], 20).complete);
        let with = |more: &[u64]| [own.as_slice(), more].concat();
        assert!(said(&with(&[7]), 21).complete);
        assert!(!said(&with(&[7, 7]), 22).complete);
        assert!(!said(&with(&own[..1]), 21).complete);
        assert!(!said(&with(&[1, 2, 3, 4, 5, 6, 7, 8, 9]), 29).complete);
        assert!(!said(&own[9..], 11).complete);
        // A value too many, and one that is not of the field.
        let mut bytes = lie(&own, 20, 8, here.hash);
        bytes[HEAD..HEAD + 8].fill(0xff);
        assert!(matches!(here.decode(&bytes), Err(Error::Format(_))));
        for end in [0, 8, HEAD, HEAD + 8, HEAD + 8 * BEYOND, bytes.len() - 1] {
            assert!(matches!(here.decode(&bytes[..end]), Err(Error::Format(_))), "{end}");
        }
        let foreign = CharacteristicSketch::new(own, 8, &KeyHasher::seeded(4), &mut || Ok(())).unwrap();
        assert!(matches!(here.decode(&foreign.to_bytes()), Err(Error::Incompatible(_))));
    }

    #[test]
    fn keys_that_are_points_cost_values_and_no_truth() {
        let number = hash_number(&KeyHasher::seeded(3));
        let keys: Vec<u64> = (0..20).map(hash).chain([point(number, 0)]).collect();
        let here = CharacteristicSketch::new(keys, 4, &KeyHasher::seeded(3), &mut || Ok(())).unwrap();
        let found = here.decode(&sketch(0..20, 4).to_bytes()).unwrap();
        assert!(!found.complete && found.mine.is_empty());
    }

    #[test]
    fn bounds_and_hashes_out_of_the_field_are_refused() {
        for bound in [0, MOST + 1, u64::MAX] {
            assert!(CharacteristicSketch::new(vec![], bound, &KeyHasher::seeded(0), &mut || Ok(())).is_err());
        }
        assert!(CharacteristicSketch::new(vec![P], 1, &KeyHasher::seeded(0), &mut || Ok(())).is_err());
        let empty = CharacteristicSketch::new(vec![], 1, &KeyHasher::seeded(0), &mut || Ok(())).unwrap();
        let found = empty.decode(&empty.to_bytes()).unwrap();
        assert!(found.complete && found.mine.is_empty() && found.theirs.is_empty());
    }

    #[test]
    fn the_bytes_are_these() {
        let bytes =
            CharacteristicSketch::new(vec![1, 2, 3], 1, &KeyHasher::seeded(0), &mut || Ok(())).unwrap().to_bytes();
        assert_eq!(crc32fast::hash(&bytes), 1_235_580_129);
        assert_eq!(bytes.len(), HEAD + 8 * (1 + BEYOND));
    }
}
