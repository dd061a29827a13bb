//! [`SpatialBloomFilter`]: which of several areas a key is in; the higher label wins.
//!
//! Palmieri, Calderoni and Maio, "Spatial Bloom filters: enabling privacy in location-aware applications", 2014. Cells
//! hold labels 1 to s, and writing keeps the larger; a key's label is the smallest of its k cells, 0 if one of them is
//! empty. A key is never missed and never reported below its own label; it is reported above it if others have
//! overwritten all its cells.

use super::valued::{Cells, Kind, Lattice, Valued, valued};
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::registry::SPATIAL;
use crate::sizing::classic::label_rates;

valued! {
    /// A Bloom filter that returns the area of a key, out of several; when cells collide, the higher label
    /// wins, so a label may be too high, never too low.
    class SpatialBloomFilter;
    parameters {
        /// distinct keys of all areas together.
        capacity: "int";
        /// rate of false positives at capacity: a key of no area gets one.
        fpr: "float" = 0.01;
        *;
        /// labels are 1 to areas, at most 65535; give the most important areas the highest labels.
        areas: "int" = 255;
    }
    /// False negatives: never, and no label below the key's own (the highest added with it). Raises
    /// ParameterError, ParameterTypeError, FilterMemoryError; warns CapacityWarning past capacity. Cost:
    /// a cell of log2(areas + 1) bits for each bit of a Bloom filter: 77 bits per key at 1 % and 255 areas;
    /// num_hashes cache lines per key. Source: Palmieri, Calderoni, Maio, Inscrypt 2014;
    /// ``(1 - (1 - 1/m)**(k * keys_above))**k``.
    ///
    /// >>> from fullbloom import SpatialBloomFilter
    /// >>> f = SpatialBloomFilter(1000, areas=3)
    /// >>> f.update(["park", "square", "harbour"], [1, 2, 3])
    /// >>> f.label("square"), f.label("desert")
    /// (2, 0)
}

/// Labels.
pub enum Spatial {}

const MAX_AREAS: u64 = u16::MAX as u64;

fn width_of(areas: u64) -> u32 {
    64 - areas.leading_zeros()
}

fn checked_width(areas: u64) -> Result<u32> {
    if !(1..=MAX_AREAS).contains(&areas) {
        return Err(Error::Parameter(format!("areas must be between 1 and {MAX_AREAS}, got {areas}")));
    }
    Ok(width_of(areas))
}

impl Kind for Spatial {
    const VARIANT: u16 = SPATIAL;
    const WORD: &'static str = "label";

    fn allows(lattice: Lattice, width: u32, largest: u64) -> bool {
        lattice == Lattice::Max && (1..=MAX_AREAS).contains(&largest) && width == width_of(largest)
    }
}

/// A filter with a label for every key.
pub type SpatialBloomFilter = Valued<Spatial>;

impl SpatialBloomFilter {
    /// An empty filter for `capacity` keys of all areas together, labels 1 to `areas`.
    pub fn construct(capacity: u64, fpr: f64, areas: u64, hasher: KeyHasher) -> Result<Self> {
        Self::make(capacity, fpr, Lattice::Max, checked_width(areas)?, areas, hasher)
    }

    /// Bytes of cells of such a filter.
    pub fn cell_bytes(capacity: u64, fpr: f64, areas: u64) -> Result<u64> {
        Self::bytes(capacity, fpr, checked_width(areas)?)
    }

    /// Cells that hold each label, from label 1 on.
    pub fn label_cells(&self) -> Vec<u64> {
        let mut cells = vec![0; self.largest() as usize + 1];
        self.each_cell(|stored| cells[stored.min(self.largest()) as usize] += 1);
        cells.split_off(1)
    }

    /// Chance that a key of no area is reported in each, from the cells as they are, label 1 first:
    /// `p_i = (sum_(j>=i) c_j / m)^k - sum_(j>i) p_j`.
    pub fn label_rates(&self) -> Vec<f64> {
        label_rates(&self.label_cells(), self.num_cells(), self.num_hashes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::conformance::merging_is_adding_all;
    use crate::structure::testing::{hash, reload};
    use crate::structure::{Filter, Mergeable};

    #[test]
    fn errors_go_upward_only() {
        for areas in [1, 5, 300] {
            let mut filter = SpatialBloomFilter::construct(1000, 0.05, areas, KeyHasher::seeded(0)).unwrap();
            for i in 0..1000 {
                filter.put_hash(hash(i), 1 + hash(i << 20) % areas).unwrap();
            }
            assert!((0..1000).all(|i| filter.get_hash(hash(i)) > hash(i << 20) % areas));
            let sum: f64 = filter.label_rates().iter().sum();
            assert!((sum - filter.fill().powi(filter.num_hashes() as i32)).abs() < 1e-9);
            assert!(filter.label_cells().iter().sum::<u64>() <= filter.num_cells());
            assert!(filter.put_hash(1, 0).is_err() && filter.put_hash(1, areas + 1).is_err());
            assert!(reload(&filter).same_as(&filter));
        }
    }

    #[test]
    fn merging_is_adding_all_pairs() {
        let make = || SpatialBloomFilter::construct(500, 0.01, 9, KeyHasher::seeded(0)).unwrap();
        merging_is_adding_all(make, |f, i| assert!(f.put_hash(hash(i % 300), 1 + i % 9).is_ok()));
        let other = SpatialBloomFilter::construct(500, 0.01, 10, KeyHasher::seeded(0)).unwrap();
        assert!(make().merge(&other).is_err());
    }
}
