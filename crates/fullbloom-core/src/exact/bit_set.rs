//! [`BitSet`]: an exact set of the integers below a bound, one bit each.
//!
//! A structure sees only the hash of a key. The hash of an integer can be inverted ([`KeyHasher::invert_signed`]), so that
//! each integer has a bit of its own. A key that is not an integer of the universe inverts to a random 64-bit number,
//! which is below N with probability N / 2^64: that is the rate for such keys, and `add` refuses the others. With a
//! secret the hash has no inverse.

use crate::cells::{LINE_WORDS, Memory, bits};
use crate::container::{Header, kind};
use crate::error::{Error, Result};
use crate::isa::prefetch;
use crate::key::KeyHasher;
use crate::registry::BIT_SET;
use crate::structure::declaration::structure;
use crate::structure::memories::memory_methods;
use crate::structure::traits::write_methods;
use crate::structure::{
    Addable, Declared, Filter, Intersectable, Loadable, Mergeable, Positioned, Removable, Sections,
};

structure! {
    /// An exact set of whole numbers below `capacity`: one bit per number, no false positives.
    class BitSet;
    parameters {
        /// N, the size of the universe: keys are the ints from 0 to capacity - 1.
        capacity: "int";
    }
    /// Exact for ints: `in` is always right, num_added is the number of members, and remove() affects no other key. Any
    /// other key is never a member, except one key of another type in 2**64 / capacity; adding it raises
    /// ParameterError. Smaller than any filter of 10 bits per key as soon as one number in ten is a
    /// member; see `fullbloom plan --universe`.
    ///
    /// False negatives: never. Takes no secret, since members are found by inverting the public hash of an int.
    /// Raises ParameterError, ParameterTypeError, FilterMemoryError. Cost: one bit for each number of the
    /// universe; one cache line per key. Source: the characteristic vector of a set; Carter, Floyd, Gill,
    /// Markowsky, Wegman, STOC 1978, on when approximate membership takes less space.
    ///
    /// >>> from fullbloom import BitSet
    /// >>> ports = BitSet(65_536)
    /// >>> ports.update([22, 80, 443])
    /// >>> 80 in ports, 81 in ports, 70_000 in ports
    /// (True, False, False)
    /// >>> ports.remove(22)
    /// >>> ports.num_added
    /// 2
    fields {
        /// Size of the universe.
        universe: u64 = |f| f.universe, CAPACITY merged;
        /// Number of members.
        members: u64 = |f| f.members, COUNT;
        /// True when the bits are in a mapped file.
        pub mapped: bool = |f| f.memory.is_mapped();
    }
}

/// 2^58 bits are 32 PiB, beyond any machine.
const MOST: u64 = 1 << 58;

/// A set of whole numbers below a bound.
pub struct BitSet {
    universe: u64,
    members: u64,
    memory: Memory,
    hasher: KeyHasher,
}

/// Words of a set of numbers below `universe`.
fn words(universe: u64) -> Result<u64> {
    if (1..=MOST).contains(&universe) {
        return Ok(universe.div_ceil(64));
    }
    Err(Error::Parameter(format!("capacity must be between 1 and {MOST}, got {universe}")))
}

fn check_public(hasher: &KeyHasher) -> Result<()> {
    if hasher.invert_signed(0).is_none() {
        return Err(Error::parameter("a BitSet holds the numbers themselves and takes no secret; leave secret= out"));
    }
    Ok(())
}

impl BitSet {
    /// An empty set of numbers below `universe`.
    pub fn construct(universe: u64, hasher: KeyHasher) -> Result<Self> {
        check_public(&hasher)?;
        Ok(BitSet { universe, members: 0, memory: Memory::zeroed(words(universe)?)?, hasher })
    }

    /// Bytes of such a set, in whole lines.
    pub fn cell_bytes(universe: u64) -> Result<u64> {
        Ok(words(universe)?.next_multiple_of(LINE_WORDS as u64) * 8)
    }

    /// The number whose hash is `hash`, if it is in the universe.
    #[inline(always)]
    fn number(&self, hash: u64) -> Option<u64> {
        self.hasher.number_below(self.universe, hash)
    }

    /// Sets or clears the bit of a number of the universe; true if that changed it.
    #[inline(always)]
    fn put(&mut self, number: u64, member: bool) -> Result<bool> {
        let words = self.memory.writable()?;
        let (word, mask) = (&mut words[(number / 64) as usize], bits::mask(number));
        let changed = (*word & mask == 0) == member;
        *word = if member { *word | mask } else { *word & !mask };
        // The count of a forged file may be anything.
        self.members = match member {
            true => self.members.saturating_add(changed.into()),
            false => self.members.saturating_sub(changed.into()),
        };
        Ok(changed)
    }

    #[cold]
    fn refusal(&self) -> Error {
        Error::Parameter(format!(
            "the key must be a whole number from 0 to {} in this BitSet; build one with a larger \
             capacity, or a filter that takes any key",
            self.universe - 1
        ))
    }
}

impl Filter for BitSet {
    memory_methods! { BIT_SET, 0; memory: BITS }

    /// Keys fetched ahead: one line each, and a core has 10 to 12 line-fill buffers.
    const AHEAD: usize = 16;

    #[inline(always)]
    fn fetch(&self, hash: u64) {
        let word = self.number(hash).unwrap_or(0) / 64;
        prefetch(self.memory.words().as_ptr().wrapping_add(word as usize));
    }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        self.number(hash).is_some_and(|n| self.memory.words()[(n / 64) as usize] & bits::mask(n) != 0)
    }

    fn capacity(&self) -> u64 {
        self.universe
    }

    fn target_fpr(&self) -> f64 {
        0.0
    }

    fn num_added(&self) -> u64 {
        self.members
    }

    fn estimate_count(&self) -> Option<(f64, f64)> {
        Some((self.members as f64, 0.0))
    }

    fn fpr(&self) -> f64 {
        0.0
    }

    fn fill(&self) -> f64 {
        self.members as f64 / self.universe as f64
    }

    /// The number of members is known.
    fn count_steps(&self) -> Option<Vec<usize>> {
        Some(vec![0])
    }

    fn fpr_by_count(&self) -> Option<f64> {
        Some(0.0)
    }

    fn writes(&self, hashes: &[u64], word: &mut dyn FnMut(usize, usize)) -> bool {
        let numbers = hashes.iter().filter_map(|&hash| self.number(hash));
        numbers.for_each(|number| word(0, (number / 64) as usize));
        true
    }
}

impl Addable for BitSet {
    fn add_hash(&mut self, hash: u64) -> Result<bool> {
        match self.number(hash) {
            Some(number) => self.put(number, true),
            None => Err(self.refusal()),
        }
    }

    write_methods!(memory);

    fn clear(&mut self) -> Result<()> {
        self.memory.writable()?.fill(0);
        self.members = 0;
        Ok(())
    }
}

impl Removable for BitSet {
    fn remove_hash(&mut self, hash: u64) -> Result<bool> {
        match self.number(hash) {
            Some(number) => self.put(number, false),
            None if self.is_read_only() => Err(Error::read_only()),
            None => Ok(false),
        }
    }
}

impl BitSet {
    /// Combines the bits with those of another set of the same universe.
    fn combine(&mut self, other: &Self, combine: fn(&mut [u64], &[u64])) -> Result<()> {
        self.check_compatible(other)?;
        let words = self.memory.writable()?;
        combine(words, other.memory.words());
        self.members = bits::count_ones(words);
        Ok(())
    }

    /// Removes the members of `other`.
    pub fn subtract(&mut self, other: &Self) -> Result<()> {
        self.combine(other, bits::and_not_assign)
    }

    /// Keeps the members of exactly one of the two sets.
    pub fn differ(&mut self, other: &Self) -> Result<()> {
        self.combine(other, bits::xor_assign)
    }
}

impl Mergeable for BitSet {
    fn merge(&mut self, other: &Self) -> Result<()> {
        self.combine(other, bits::or_assign)
    }
}

/// All of it exact.
impl Intersectable for BitSet {
    fn intersect(&mut self, other: &Self) -> Result<()> {
        self.combine(other, bits::and_assign)
    }

    fn is_subset(&self, other: &Self) -> Result<bool> {
        self.check_compatible(other)?;
        Ok(bits::is_subset(self.memory.words(), other.memory.words()))
    }

    fn certainly_disjoint(&self, other: &Self) -> Result<bool> {
        self.check_compatible(other)?;
        Ok(bits::are_disjoint(self.memory.words(), other.memory.words()))
    }

    fn union_count(&self, other: &Self) -> Result<(f64, f64)> {
        self.check_compatible(other)?;
        Ok((bits::count_union(self.memory.words(), other.memory.words()) as f64, 0.0))
    }

    fn intersection_count(&self, other: &Self) -> Result<(f64, f64)> {
        let (either, _) = self.union_count(other)?;
        let [ours, theirs] = [self, other].map(|set| bits::count_ones(set.memory.words()));
        Ok(((ours + theirs) as f64 - either, 0.0))
    }
}

impl Positioned for BitSet {
    fn positions(&self, hash: u64) -> Vec<u64> {
        self.number(hash).into_iter().collect()
    }
}

impl Loadable for BitSet {
    fn load(header: &Header, hasher: KeyHasher, memory: Sections<'_>) -> Result<Self> {
        check_public(&hasher).map_err(Error::as_format)?;
        Self::check_header(header, 0, 0)?;
        let Stored { universe, members } = Stored::read(header)?;
        let memory = memory(kind::BITS, 0, words(universe).map_err(Error::as_format)?)?;
        if members > universe || !bits::is_zero_from(memory.words(), universe) {
            return Err(Error::format("the file has members beyond its universe; it is damaged"));
        }
        Ok(BitSet { universe, members, memory, hasher })
    }

    /// The number of members is stated, and `len` is exact.
    fn check_cells(&self) -> Result<()> {
        let held = bits::count_ones(self.memory.words());
        if held == self.members {
            return Ok(());
        }
        Err(Error::format(format!("the file says that it has {} members, and has {held}; it is damaged", self.members)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::structure::conformance::merging_is_adding_all;
    use crate::structure::testing::{hash, reload};

    #[test]
    fn it_is_the_set_of_its_numbers() {
        for (universe, seed) in [(1u64, 0u64), (63, 1), (64, 2), (65, 3), (512, 4), (1000, u64::MAX), (100_000, 7)] {
            let hasher = KeyHasher::seeded(seed);
            let (mut set, mut truth) = (BitSet::construct(universe, hasher).unwrap(), BTreeSet::new());
            for step in 0..3000 {
                let number = hash(step) % universe;
                let key = hasher.hash_signed(number as i64);
                if !hash(step + 1).is_multiple_of(3) {
                    assert_eq!(set.add_hash(key).unwrap(), truth.insert(number));
                } else {
                    assert_eq!(set.remove_hash(key).unwrap(), truth.remove(&number));
                }
                assert_eq!(set.num_added(), truth.len() as u64);
            }
            let keys: Vec<u64> = (0..2 * universe).map(|n| hasher.hash_signed(n as i64)).collect();
            let mut found = vec![0; keys.len()];
            set.contains_hashes(&keys, &mut found);
            assert!(found.iter().zip(0..).all(|(&found, n)| (found == 1) == truth.contains(&n)));
            assert!(reload(&set).same_as(&set) && reload(&set).num_added() == set.num_added());
        }
    }

    #[test]
    fn keys_outside_of_the_universe_are_refused_and_change_nothing() {
        let hasher = KeyHasher::seeded(0);
        let mut set = BitSet::construct(1000, hasher).unwrap();
        for key in [hasher.hash_signed(1000), hasher.hash_signed(-1), hasher.hash_signed(i64::MIN), hash(5)] {
            assert!(matches!(set.add_hash(key), Err(Error::Parameter(_))) && !set.contains_hash(key));
            assert!(!set.remove_hash(key).unwrap());
        }
        assert_eq!((set.num_added(), set.fill()), (0, 0.0));
        assert!(BitSet::construct(1000, KeyHasher::keyed(0, &[7; 16])).is_err());
        assert!(BitSet::construct(0, hasher).is_err() && BitSet::construct(MOST + 1, hasher).is_err());
    }

    #[test]
    fn merging_is_the_union() {
        let hasher = KeyHasher::seeded(3);
        let set = |universe| BitSet::construct(universe, hasher).unwrap();
        merging_is_adding_all(|| set(500), |f, i| assert!(f.add_hash(hasher.hash_signed((i / 2) as i64)).is_ok()));
        assert!(set(500).merge(&set(501)).is_err());
    }
}
