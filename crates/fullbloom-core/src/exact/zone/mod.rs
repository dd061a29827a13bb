//! [`ZoneFilter`]: a set of integers without false positives up to a number of members.
//!
//! Eppstein, Goodrich and Hirschberg, "Improved combinatorial group testing algorithms for real-world problem sizes",
//! 2007. No hash: number x has the cell `x mod p` of each of the first primes p. If their product reaches u^d, no other
//! number below u shares its cells with d members or fewer ([`sizing::zone`](crate::sizing::zone)). Cells are bits, or
//! counters, from which the members can be listed ([`decode`]).

use std::ops::Range;
use std::sync::Arc;

use crate::cells::packed::PackedCells;
use crate::cells::{LINE_WORDS, Memory};
use crate::container::{Container, Header, Section, kind};
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::registry::ZONE;
use crate::sizing::zone::{self as sizing, MOST_COUNTER_BITS};
use crate::structure::declaration::structure;
use crate::structure::traits::write_methods;
use crate::structure::{Addable, CellCounts, CellStats, Declared, Filter, Loadable, Removable, Sections};

mod decode;
#[cfg(test)]
mod tests;

structure! {
    /// A set of whole numbers below `universe`: no false positives up to `capacity` members, in a few hundred bits.
    class ZoneFilter;
    parameters {
        /// the zone: up to so many members every answer is right; each costs k of log2(universe) bits.
        capacity: "int";
        *;
        /// keys are the ints from 0 to universe - 1, at most 2**60.
        universe: "int" = 4294967296;
        /// counters in place of bits: keys can be removed, and decode() lists the members.
        counting: "bool" = false;
    }
    /// Exact for ints up to the zone: 4 of 2**32 addresses take 158 bytes. Beyond it, members are still found, and other keys are
    /// found at the rate fpr(). A key that is not an int of the universe is never a member, except one key of another
    /// type in 2**64 / universe; adding it raises ParameterError. With counters, a key may be added repeatedly, and
    /// num_added counts every addition; without them, repeated keys count once, and no key can be removed.
    ///
    /// False negatives: only after a key is removed that was not added. Takes no secret, since keys are found by inverting the
    /// public hash of an int. Warns CapacityWarning past the zone; raises ParameterError, ParameterTypeError, FilterMemoryError.
    /// Cost: about 0.7 (d log2 u)^2 / ln(d log2 u) bits, some ns for each of num_hashes cells per key. Source: Eppstein,
    /// Goodrich, Hirschberg, SIAM J. Comput. 36(5), 2007.
    ///
    /// >>> from fullbloom import ZoneFilter
    /// >>> blocked = ZoneFilter(4)
    /// >>> blocked.update([0x7F000001, 0x0A000001])
    /// >>> 0x0A000001 in blocked, 0x0A000002 in blocked, blocked.fpr()
    /// (True, False, 0.0)
    /// >>> blocked.num_cells, blocked.num_hashes
    /// (1264, 27)
    fields {
        /// Members up to which answers are right.
        zone: u64 = |f| f.zone, CAPACITY;
        /// Keys are the ints below it.
        pub universe: u64 = |f| f.universe, UNIVERSE;
        /// Number of members.
        members: u64 = |f| f.members, COUNT;
        /// Bits of a cell.
        pub counter_bits: u32 = |f| f.packed.width(), CELL_BITS;
        /// True when cells count.
        pub counting: bool = |f| f.packed.width() > 1;
        /// Number of cells.
        pub num_cells: u64 = |f| f.num_cells;
        /// Cells of a key, one for each prime.
        pub num_hashes: u32 = |f| f.primes.len() as u32;
        /// True when the cells are in a mapped file.
        pub mapped: bool = |f| f.cells.is_mapped();
    }
}

/// Members are found modulo a prime (`field`), which must be larger.
const MOST: u64 = 1 << 60;

/// A set of whole numbers, exact up to so many.
pub struct ZoneFilter {
    zone: u64,
    universe: u64,
    members: u64,
    warned: bool,
    num_cells: u64,
    packed: PackedCells,
    primes: Arc<[u32]>,
    cells: Memory,
    hasher: KeyHasher,
}

/// Primes, cells and their bits.
struct Shape {
    primes: Vec<u32>,
    num_cells: u64,
    packed: PackedCells,
}

impl Shape {
    fn of(zone: u64, universe: u64, counter_bits: u32) -> Result<Self> {
        if !(2..=MOST).contains(&universe) {
            return Err(Error::Parameter(format!("universe must be between 2 and {MOST}, got {universe}")));
        }
        if zone == 0 {
            return Err(Error::Parameter(format!("capacity must be at least 1, got {zone}")));
        }
        let primes = sizing::reaching(universe, zone)?;
        let num_cells = sizing::cells(&primes);
        let packed = PackedCells::new(counter_bits).filter(|packed| packed.width() <= MOST_COUNTER_BITS);
        let packed = packed.ok_or_else(|| Error::Parameter(format!("no cell has {counter_bits} bits")))?;
        Ok(Shape { primes, num_cells, packed })
    }

    fn words(&self) -> u64 {
        self.packed.words(self.num_cells).unwrap_or(u64::MAX >> 8)
    }
}

/// Bits of a cell.
fn cell_bits(zone: u64, counting: bool) -> u32 {
    if counting { sizing::counter_bits(zone) } else { 1 }
}

fn check_public(hasher: &KeyHasher) -> Result<()> {
    if hasher.is_keyed() {
        return Err(Error::parameter(
            "a ZoneFilter holds remainders of the numbers themselves and takes no secret; leave secret= out",
        ));
    }
    Ok(())
}

impl ZoneFilter {
    /// An empty set of numbers below `universe`, exact up to `zone` of them.
    pub fn construct(zone: u64, universe: u64, counting: bool, hasher: KeyHasher) -> Result<Self> {
        check_public(&hasher)?;
        let shape = Shape::of(zone, universe, cell_bits(zone.max(1), counting))?;
        let cells = Memory::zeroed(shape.words())?;
        Ok(Self::of_shape(zone, universe, 0, shape, cells, hasher))
    }

    fn of_shape(zone: u64, universe: u64, members: u64, shape: Shape, cells: Memory, hasher: KeyHasher) -> Self {
        let Shape { primes, num_cells, packed } = shape;
        let warned = members > zone;
        ZoneFilter { zone, universe, members, warned, num_cells, packed, primes: primes.into(), cells, hasher }
    }

    /// Bytes of such a set, in whole lines.
    pub fn cell_bytes(zone: u64, universe: u64, counting: bool) -> Result<u64> {
        let words = Shape::of(zone, universe, cell_bits(zone.max(1), counting))?.words();
        Ok(words.next_multiple_of(LINE_WORDS as u64) * 8)
    }

    /// The number whose hash is `hash`, if it lies in the universe.
    #[inline(always)]
    fn number(&self, hash: u64) -> Option<u64> {
        self.hasher.number_below(self.universe, hash)
    }

    /// The cells of a number.
    #[inline(always)]
    fn places(primes: &[u32], number: u64) -> impl Iterator<Item = u64> {
        let mut start = 0;
        primes.iter().map(move |&prime| {
            let place = start + number % u64::from(prime);
            start += u64::from(prime);
            place
        })
    }

    #[inline(always)]
    fn holds(&self, number: u64) -> bool {
        let words = self.cells.words();
        Self::places(&self.primes, number).all(|place| self.packed.get(words, place) > 0)
    }

    /// The counts of prime number `i`.
    fn rests(&self, i: usize) -> impl Iterator<Item = u64> {
        let start: u64 = self.primes[..i].iter().map(|&prime| u64::from(prime)).sum();
        (start..start + u64::from(self.primes[i])).map(|place| self.packed.get(self.cells.words(), place))
    }

    /// True when a counter of prime number `i` is at its maximum, where it stays: members beyond the zone were in.
    fn has_stopped(&self, i: usize) -> bool {
        self.counting() && self.rests(i).any(|count| count == self.packed.max())
    }

    /// The members, in order, each as often as it was added, where there are no more of these than the zone has. Takes
    /// O(n k^2) steps for n members and k cells per key.
    pub fn decode(&self) -> Result<Vec<u64>> {
        if !self.counting() {
            return Err(Error::parameter("a zone without counters cannot list its members; pass counting=True"));
        }
        let all = 0..self.primes.len();
        let held: u64 = self.rests(0).sum();
        if held > self.zone || all.clone().any(|i| self.has_stopped(i)) {
            return Err(Error::Parameter(format!(
                "decode() lists members only if there were never more than capacity={}; build the filter with a larger capacity",
                self.zone
            )));
        }
        let wrong = || {
            Error::format(
                "the cells match no set of members: keys were removed that were not present, or the filter is damaged",
            )
        };
        if all.clone().any(|i| self.rests(i).sum::<u64>() != held) {
            return Err(wrong());
        }
        if held == 0 {
            return Ok(Vec::new());
        }
        let reaching = sizing::reaching(self.universe, held)?.len().min(self.primes.len());
        let primes: Vec<u64> = self.primes[..reaching].iter().map(|&prime| prime.into()).collect();
        let members = decode::members(&decode::sums(&primes, held as usize, |i| self.rests(i)));
        let mut rests = vec![0u64; self.num_cells as usize];
        for place in members.iter().flat_map(|&member| Self::places(&self.primes, member)) {
            rests[place as usize] += 1;
        }
        let agree = rests.into_iter().zip(all.flat_map(|i| self.rests(i))).all(|(found, held)| found == held);
        if !agree || members.iter().any(|&member| member >= self.universe) {
            return Err(wrong());
        }
        Ok(members)
    }

    #[cold]
    fn refusal(&self) -> Error {
        Error::Parameter(format!(
            "the key must be a whole number from 0 to {} in this ZoneFilter; build one with a larger \
             universe, or a filter that takes any key",
            self.universe - 1
        ))
    }

    /// Adds one to each cell of a number, or takes it away; a counter that is at its maximum stays there.
    fn put(&mut self, number: u64, more: bool) -> Result<()> {
        let (packed, words) = (self.packed, self.cells.writable()?);
        for place in Self::places(&self.primes, number) {
            let count = packed.get(words, place);
            if count < packed.max() || packed.max() == 1 {
                let count = if more { (count + 1).min(packed.max()) } else { count.saturating_sub(1) };
                packed.set(words, place, count);
            }
        }
        Ok(())
    }
}

impl Filter for ZoneFilter {
    fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    fn hasher_mut(&mut self) -> &mut KeyHasher {
        &mut self.hasher
    }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        self.number(hash).is_some_and(|number| self.holds(number))
    }

    fn capacity(&self) -> u64 {
        self.zone
    }

    fn target_fpr(&self) -> f64 {
        0.0
    }

    fn num_added(&self) -> u64 {
        self.members
    }

    /// 0 in the zone, unless counters stopped outside of it; beyond it the remainders of a random number are independent, by the Chinese remainder theorem.
    fn fpr(&self) -> f64 {
        if self.members <= self.zone && !(0..self.primes.len()).any(|i| self.has_stopped(i)) {
            return 0.0;
        }
        let share = |i: usize| self.rests(i).filter(|&count| count > 0).count() as f64 / f64::from(self.primes[i]);
        (0..self.primes.len()).map(share).product()
    }

    fn fill(&self) -> f64 {
        self.packed.count_set(self.cells.words(), self.num_cells) as f64 / self.num_cells as f64
    }

    fn count_steps(&self) -> Option<Vec<usize>> {
        Some(vec![self.packed.step()])
    }

    /// For each prime number, the cells that are not zero, and those at their maximum.
    fn count_words(&self, _: usize, words: Range<usize>, counts: &mut CellCounts) {
        let first = words.start as u64 * 64 / u64::from(self.packed.width());
        let end = first + self.packed.cells_in(&words, self.num_cells);
        let mut start = 0;
        for (i, &prime) in self.primes.iter().enumerate() {
            for place in first.max(start)..end.min(start + u64::from(prime)) {
                let count = self.packed.get(self.cells.words(), place);
                if count > 0 {
                    counts.add(2 * i, 1);
                    counts.add(2 * i + 1, u64::from(count == self.packed.max()));
                }
            }
            start += u64::from(prime);
        }
    }

    fn stats_of(&self, counts: &CellCounts) -> CellStats {
        let primes = 0..self.primes.len();
        let has_stopped = self.counting() && primes.clone().any(|i| counts.get(2 * i + 1) > 0);
        let share = |i: usize| counts.get(2 * i) as f64 / f64::from(self.primes[i]);
        CellStats {
            fill: primes.clone().map(|i| counts.get(2 * i)).sum::<u64>() as f64 / self.num_cells as f64,
            fpr: if self.members <= self.zone && !has_stopped { 0.0 } else { primes.map(share).product() },
            ..CellStats::default()
        }
    }

    fn writes(&self, hashes: &[u64], word: &mut dyn FnMut(usize, usize)) -> bool {
        for number in hashes.iter().filter_map(|&hash| self.number(hash)) {
            let places = Self::places(&self.primes, number);
            places.flat_map(|place| self.packed.words_of(place)).for_each(|at| word(0, at));
        }
        true
    }

    fn nbytes(&self) -> u64 {
        self.cells.len_bytes() as u64
    }

    fn container(&self) -> Container<'_> {
        let mut header = Header::new(ZONE, 0, &self.hasher);
        self.describe(&mut header);
        Container { header, sections: vec![Section::of(kind::RESTS, &self.cells)] }
    }

    fn try_clone(&self) -> Result<Self> {
        Ok(ZoneFilter { cells: self.cells.try_clone()?, primes: Arc::clone(&self.primes), ..*self })
    }

    fn same_as(&self, other: &Self) -> bool {
        let shape = |f: &Self| (f.zone, f.universe, f.packed.width());
        self.differences(other).check().is_ok()
            && shape(self) == shape(other)
            && self.cells.words() == other.cells.words()
    }
}

impl Addable for ZoneFilter {
    fn add_hash(&mut self, hash: u64) -> Result<bool> {
        let number = self.number(hash).ok_or_else(|| self.refusal())?;
        let new = !self.holds(number);
        self.put(number, true)?;
        self.members = self.members.saturating_add(u64::from(new || self.counting()));
        Ok(new)
    }

    write_methods!(cells);

    #[inline(always)]
    fn is_roomy(&self) -> bool {
        (self.members < self.zone || self.warned) && !self.is_read_only()
    }

    fn newly_overfull(&mut self) -> bool {
        let newly = self.members > self.zone && !self.warned;
        self.warned |= newly;
        newly
    }

    fn clear(&mut self) -> Result<()> {
        self.cells.writable()?.fill(0);
        (self.members, self.warned) = (0, false);
        Ok(())
    }
}

impl Removable for ZoneFilter {
    /// Of bits, nothing: each may be another member's, too.
    fn remove_hash(&mut self, hash: u64) -> Result<bool> {
        self.check_writable()?;
        let Some(number) = self.number(hash).filter(|&number| self.counting() && self.holds(number)) else {
            return Ok(false);
        };
        self.put(number, false)?;
        self.members = self.members.saturating_sub(1);
        Ok(true)
    }
}

impl Loadable for ZoneFilter {
    fn load(header: &Header, hasher: KeyHasher, memory: Sections<'_>) -> Result<Self> {
        check_public(&hasher).map_err(Error::as_format)?;
        Self::check_header(header, 0, 0)?;
        let Stored { zone, universe, members, counter_bits } = Stored::read(header)?;
        let shape = Shape::of(zone, universe, counter_bits).map_err(Error::as_format)?;
        let cells = memory(kind::RESTS, 0, shape.words())?;
        Ok(Self::of_shape(zone, universe, members.min(u64::MAX >> 1), shape, cells, hasher))
    }

    /// Each member has one remainder for each prime, so they all have as many; after the last cell there is nothing. Of bits
    /// each new member sets one at least. A counter that stopped is not counted, and what it held is not known.
    fn check_cells(&self) -> Result<()> {
        let wrong = |what: &str| Err(Error::format(format!("{what}; the file is damaged")));
        let words = self.cells.words();
        let end = self.num_cells * u64::from(self.packed.width());
        let mut rest = words.iter().skip((end / 64) as usize).map(|word| u64::from_le(*word));
        if rest.next().is_some_and(|word| word >> (end % 64) > 0) || rest.any(|word| word > 0) {
            return wrong("the file has remainders after those of the last prime");
        }
        let counting = self.counting();
        let stopped = |count: u64| counting && count == self.packed.max();
        let mut set = 0u64;
        for (i, &prime) in self.primes.iter().enumerate() {
            let (mut held, mut stops) = (0u64, false);
            for (rest, count) in (0..).zip(self.rests(i)) {
                if count > 0 && rest >= self.universe {
                    return wrong("the file holds a remainder of a number outside of its universe");
                }
                stops |= stopped(count);
                held += if stopped(count) { 0 } else { count };
            }
            set += held;
            let agree = match (counting, stops) {
                (true, false) => held == self.members,
                (true, true) => held <= self.members,
                (false, _) => (held > 0) == (self.members > 0) && held <= self.members,
            };
            if !agree {
                return wrong(&format!(
                    "the file states {} members, but prime {prime} has another number of them",
                    self.members
                ));
            }
        }
        if !counting && self.members > set {
            return wrong(&format!("the file says that it has {} members, more than it has bits", self.members));
        }
        Ok(())
    }
}
