//! Shapes of a counting filter: how many counters of how many bits, k, laid out how.

use crate::cells::memory::ADDRESSABLE_BYTES;
use crate::cells::{LINE_BYTES, PackedCells};
use crate::error::{Error, Result};
use crate::sizing::classic::Classic;
pub use crate::sizing::classic::MAX_HASHES;
use crate::sizing::counters::{lane_threshold_fpr, threshold_fpr};
use crate::sizing::lanes::Lanes;
use crate::sizing::{Law, check_reachable, check_sized, format_rate, smallest};
use crate::structure::declaration::{choice, names, narrow};

/// Where the counters of a key may lie. Files contain the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Layout {
    /// k counters anywhere: least space, k cache misses.
    Classic = 1,
    /// All in one 64-byte line: one cache miss.
    Blocked = 2,
}

names! { Layout, "layout": Classic "classic", Blocked "blocked", }

/// Cells beyond any machine; below it all position arithmetic fits 64 bits.
pub const MAX_CELLS: u64 = 1 << 56;
/// The law is a sum of this many terms.
const MAX_THRESHOLD: u64 = 255;
/// Space is no argument below a page.
const SMALL_BITS: u64 = 8 * 4096;
/// `auto` chooses the blocked layout up to this multiple of the classic one's space.
const BLOCKED_MAY_COST: f64 = 1.6;

/// Counters, probes and their arrangement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Where counters lie.
    pub layout: Layout,
    /// w, bits of a counter.
    pub counter_bits: u32,
    /// m.
    pub num_cells: u64,
    /// k.
    pub num_hashes: u32,
    /// Number of occurrences to which the rate applies.
    pub threshold: u64,
}

/// The error for a size that no machine has.
pub(super) fn impossible(capacity: u64, fpr: f64) -> Error {
    Error::Memory(format!(
        "a capacity of {capacity} at fpr {} needs more bytes than any machine can give; \
         lower the capacity or raise the fpr",
        format_rate(fpr)
    ))
}

/// Refuses impossible parameters early: invalid ones, or more cells of `bits` bits than memory holds even at the
/// information bound.
pub(super) fn check_possible(capacity: u64, fpr: f64, bits: u32) -> Result<()> {
    check_sized(capacity, fpr)?;
    if capacity as f64 * f64::from(bits) / 8.0 > ADDRESSABLE_BYTES as f64 {
        return Err(impossible(capacity, fpr));
    }
    check_reachable(capacity, fpr)
}

impl Shape {
    /// The smallest shape of the layout with this name, or of the one that `auto` chooses.
    pub fn from_name(layout: &str, counter_bits: u64, threshold: u64, capacity: u64, fpr: f64) -> Result<Self> {
        match choice("layout", layout, Layout::NAMES)? {
            None => Self::auto(narrow(counter_bits), threshold, capacity, fpr),
            Some(layout) => Self::for_capacity(layout, narrow(counter_bits), threshold, capacity, fpr),
        }
    }

    fn check_cells(counter_bits: u32, threshold: u64) -> Result<PackedCells> {
        let packed = PackedCells::new(counter_bits).filter(|_| matches!(counter_bits, 2 | 3 | 4 | 8 | 16));
        let packed = packed
            .ok_or_else(|| Error::Parameter(format!("counter_bits must be 2, 3, 4, 8 or 16, got {counter_bits}")))?;
        let most = packed.max().min(MAX_THRESHOLD);
        if threshold == 0 || threshold > most {
            return Err(Error::Parameter(format!(
                "threshold must be between 1 and {most} with counters of {counter_bits} bits, got {threshold}"
            )));
        }
        Ok(packed)
    }

    /// The smallest shape of `layout` whose rate at `threshold` is at most `fpr` at `capacity` keys.
    pub fn for_capacity(layout: Layout, counter_bits: u32, threshold: u64, capacity: u64, fpr: f64) -> Result<Self> {
        Self::check_cells(counter_bits, threshold)?;
        check_possible(capacity, fpr, counter_bits)?;
        if layout == Layout::Blocked && counter_bits == 3 {
            return Err(Error::parameter(
                "counters of 3 bits do not fill a cache line; use counter_bits=4 or layout=\"classic\"",
            ));
        }
        let sized = |num_hashes| {
            let granule = Self::granule(layout, counter_bits);
            let shape = |units: u64| Shape { layout, counter_bits, num_cells: units * granule, num_hashes, threshold };
            let found = smallest(MAX_CELLS / granule, fpr, |units| shape(units).sizing_fpr(capacity as f64));
            found.map(shape)
        };
        let best = match (layout, threshold) {
            (Layout::Blocked, _) => [4, 8].into_iter().filter_map(sized).min_by_key(|shape| shape.num_cells),
            (Layout::Classic, 1) => Classic::for_capacity(MAX_CELLS, capacity, fpr).map(|found| {
                let (num_cells, num_hashes) = (found.num_bits, found.num_hashes);
                Shape { layout, counter_bits, num_cells, num_hashes, threshold }
            }),
            (Layout::Classic, _) => first_minimum((1..=MAX_HASHES).map_while(sized), |shape| shape.num_cells),
        };
        best.ok_or_else(|| impossible(capacity, fpr))?.check()
    }

    /// A shape of given numbers; "auto" means classic.
    pub fn explicit(layout: &str, counter_bits: u32, threshold: u64, num_cells: u64, num_hashes: u32) -> Result<Self> {
        let layout = choice("layout", layout, Layout::NAMES)?.unwrap_or(Layout::Classic);
        Self::check_cells(counter_bits, threshold)?;
        if !(1..=MAX_CELLS).contains(&num_cells) {
            return Err(Error::Parameter(format!("num_counters must be between 1 and {MAX_CELLS}, got {num_cells}")));
        }
        let num_cells = num_cells.next_multiple_of(Self::granule(layout, counter_bits));
        Shape { layout, counter_bits, num_cells, num_hashes, threshold }.check()
    }

    /// The choice of `auto`: `blocked` while it costs at most 1.6 times the space of `classic` or fits a page.
    pub fn auto(counter_bits: u32, threshold: u64, capacity: u64, fpr: f64) -> Result<Self> {
        let classic = Self::for_capacity(Layout::Classic, counter_bits, threshold, capacity, fpr)?;
        let Ok(blocked) = Self::for_capacity(Layout::Blocked, counter_bits, threshold, capacity, fpr) else {
            return Ok(classic);
        };
        let cheap = blocked.num_cells * u64::from(counter_bits) <= SMALL_BITS
            || blocked.num_cells as f64 <= BLOCKED_MAY_COST * classic.num_cells as f64;
        Ok(if cheap { blocked } else { classic })
    }

    /// Counters are a multiple of this.
    fn granule(layout: Layout, counter_bits: u32) -> u64 {
        match layout {
            Layout::Classic => 1,
            Layout::Blocked => LINE_BYTES as u64 * 8 / u64::from(counter_bits.max(1)),
        }
    }

    /// Refuses shapes that no constructor creates: the check for shapes read from files.
    pub fn check(self) -> Result<Self> {
        Self::check_cells(self.counter_bits, self.threshold)?;
        let hashes_fit = match self.layout {
            Layout::Classic => (1..=MAX_HASHES).contains(&self.num_hashes),
            Layout::Blocked => matches!(self.num_hashes, 4 | 8) && self.counter_bits != 3,
        };
        let granule = Self::granule(self.layout, self.counter_bits);
        let cells_fit = (1..=MAX_CELLS).contains(&self.num_cells) && self.num_cells.is_multiple_of(granule);
        if hashes_fit && cells_fit {
            return Ok(self);
        }
        Err(Error::Parameter(format!(
            "{} counters of {} bits with {} per key do not fit layout {:?}",
            self.num_cells,
            self.counter_bits,
            self.num_hashes,
            self.layout.name()
        )))
    }

    /// The law of membership, for which a counter is set or not.
    pub fn law(&self) -> Box<dyn Law> {
        let k = self.num_hashes;
        match self.layout {
            Layout::Classic => Box::new(Classic { num_bits: self.num_cells, num_hashes: k }),
            Layout::Blocked => {
                let (blocks, width) = self.blocks();
                Box::new(Lanes { blocks, lanes: k, width, per_lane: 1 })
            }
        }
    }

    /// Lines, and counters in one of a key's lanes.
    fn blocks(&self) -> (u64, u64) {
        let line = Self::granule(Layout::Blocked, self.counter_bits);
        (self.num_cells / line, line / u64::from(self.num_hashes.max(1)))
    }

    /// Rate at which a key never added seems to have been added `threshold` times or more, after `items` keys were
    /// added once each.
    pub fn fpr(&self, items: f64, threshold: u64) -> f64 {
        if threshold <= 1 {
            return self.law().fpr(items);
        }
        match self.layout {
            Layout::Classic => threshold_fpr(items, self.num_cells as f64, self.num_hashes, threshold),
            Layout::Blocked => {
                let (blocks, width) = self.blocks();
                lane_threshold_fpr(items, blocks as f64, self.num_hashes, width as f64, threshold)
            }
        }
    }

    /// The rate used for sizing: never below the true one.
    fn sizing_fpr(&self, items: f64) -> f64 {
        match (self.layout, self.threshold) {
            (Layout::Classic, 1) => Classic { num_bits: self.num_cells, num_hashes: self.num_hashes }.safe_fpr(items),
            _ => self.fpr(items, self.threshold),
        }
    }

    /// 64-bit words in use (memory may round up to a line).
    pub fn words(&self) -> u64 {
        (self.num_cells * u64::from(self.counter_bits)).div_ceil(64)
    }
}

/// The first shape after which space only grows: for a given rate it falls with k, then rises.
pub(super) fn first_minimum<S>(shapes: impl Iterator<Item = S>, cells: impl Fn(&S) -> u64) -> Option<S> {
    let mut best: Option<S> = None;
    for shape in shapes {
        match best.as_ref().map(&cells) {
            Some(least) if cells(&shape) > least + least / 4 + 8 => break,
            Some(least) if cells(&shape) >= least => {}
            _ => best = Some(shape),
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sized_shape_honours_its_rate_and_wastes_little() {
        for layout in [Layout::Classic, Layout::Blocked] {
            for (bits, threshold) in [(4, 1), (2, 2), (4, 3), (8, 1), (16, 5)] {
                for fpr in [0.5, 0.1, 0.01, 1e-3, 1e-6] {
                    for capacity in [1u64, 10, 1000, 1_000_000, 1_000_000_000] {
                        let shape = Shape::for_capacity(layout, bits, threshold, capacity, fpr).unwrap();
                        let rate = shape.fpr(capacity as f64, threshold);
                        assert!(rate <= fpr, "{shape:?} {rate}");
                        assert!(capacity < 100_000 || rate > 0.7 * fpr || fpr > 0.2, "{shape:?} {rate} for {fpr}");
                    }
                }
            }
        }
    }

    #[test]
    fn space_is_four_times_that_of_bits_and_blocked_costs_a_fifth_more() {
        let classic = Shape::for_capacity(Layout::Classic, 4, 1, 1_000_000, 0.01).unwrap();
        let bits = classic.words() as f64 * 64.0 / 1e6;
        assert!((bits / 4.0 - 9.585).abs() < 0.02, "{bits}");
        let auto = Shape::auto(4, 1, 1_000_000, 0.01).unwrap();
        assert_eq!((auto.layout, auto.num_hashes), (Layout::Blocked, 8));
        assert!((auto.num_cells as f64 / 1e6 - 11.43).abs() < 0.02);
        assert_eq!(Shape::auto(16, 1, 1_000_000, 0.001).unwrap().layout, Layout::Classic);
    }

    #[test]
    fn a_threshold_above_one_saves_space() {
        let one = Shape::for_capacity(Layout::Classic, 4, 1, 100_000, 1e-4).unwrap();
        let three = Shape::for_capacity(Layout::Classic, 4, 3, 100_000, 1e-4).unwrap();
        assert!(three.num_cells * 2 < one.num_cells, "{three:?} {one:?}");
    }
}
