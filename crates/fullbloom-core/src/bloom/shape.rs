//! Shapes: how many bits, how many probes, laid out how.

pub use super::layout::Layout;
use crate::cells::memory::ADDRESSABLE_BYTES;
use crate::error::{Error, Result};
pub use crate::key::BaseHash;
use crate::key::KeyHasher;
pub use crate::scheme::Scheme;
use crate::sizing::classic::{Classic, MAX_HASHES, optimal_bits};
use crate::sizing::derived::{Derivation, DerivedLaw};
use crate::sizing::lanes::Lanes;
use crate::sizing::lanes::Pairs;
use crate::sizing::{Law, check_reachable, check_sized, narrow, smallest};
use crate::structure::declaration::{choice, names, one_of};

names! {
    BaseHash, "hash":
    Xxh3 "xxh3", Xxh64 "xxh64", Murmur32 "murmur3-32", Murmur128 "murmur3-128", Fnv1a "fnv1a", Sha1 "sha1", Md5 "md5",
    Sha256 "sha256",
}

/// The hasher with the base hash of this name in the place of XXH3-64.
pub fn with_base_hash(hasher: KeyHasher, hash: &str) -> Result<KeyHasher> {
    let base = one_of("hash", hash, BaseHash::NAMES)?;
    match base {
        BaseHash::Xxh3 => Ok(hasher),
        _ if hasher.is_keyed() => Err(Error::Parameter(format!(
            "a secret has a hash of its own, SipHash-1-3, and takes no hash={hash:?}; leave one of the two out"
        ))),
        _ => Ok(KeyHasher::with_base(hasher.seed(), base)),
    }
}

/// 2^58 bits are 32 PiB, beyond any machine; below it all position arithmetic fits 64 bits.
const MAX_BITS: u64 = 1 << 58;
/// Space is no argument below a page.
const SMALL_BITS: u64 = 8 * 4096;

/// Bits, probes and their arrangement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Where probes may fall.
    pub layout: Layout,
    /// How the hash becomes positions.
    pub scheme: Scheme,
    /// m.
    pub num_bits: u64,
    /// k.
    pub num_hashes: u32,
}

impl Shape {
    /// The smallest shape of the layout with this name, or of the one that `auto` chooses, which is `classic` if a
    /// scheme is named. The shape compensates for the share of the rate that a narrow base hash uses up.
    pub fn from_names(layout: &str, scheme: Option<&str>, base: BaseHash, capacity: u64, fpr: f64) -> Result<Self> {
        let fpr = Self::rate_beside_hash(base, capacity, fpr)?;
        match (choice("layout", layout, Layout::NAMES)?, Self::scheme_named(scheme)?) {
            (None, None) => Self::auto(capacity, fpr),
            (layout, scheme) => Self::for_capacity(layout.unwrap_or(Layout::Classic), scheme, capacity, fpr),
        }
    }

    /// The rate left to the shape if keys share hashes of `base`.
    fn rate_beside_hash(base: BaseHash, capacity: u64, fpr: f64) -> Result<f64> {
        check_sized(capacity, fpr)?;
        if base.bits() == 64 {
            return Ok(fpr);
        }
        let floor = narrow::floor(capacity as f64, base.bits());
        if floor < fpr / 2.0 {
            return Ok((fpr - floor) / (1.0 - floor));
        }
        Err(Error::Parameter(format!(
            "fpr must be at least {:.1e} for a capacity of {capacity} and hash {:?}, in whose {} bits that many keys \
             meet, got {}; take another hash",
            2.0 * floor,
            base.name(),
            base.bits(),
            crate::sizing::format_rate(fpr)
        )))
    }

    /// The scheme of this name, if one is given.
    pub fn scheme_named(name: Option<&str>) -> Result<Option<Scheme>> {
        name.map(|name| one_of("scheme", name, Scheme::NAMES)).transpose()
    }

    /// The smallest shape of `layout` with a rate of at most `fpr` at `capacity` keys.
    pub fn for_capacity(layout: Layout, scheme: Option<Scheme>, capacity: u64, fpr: f64) -> Result<Self> {
        check_sized(capacity, fpr)?;
        Self::check_possible(capacity, fpr)?;
        check_reachable(capacity, fpr)?;
        let scheme = Self::check_scheme(layout, scheme)?;
        let sized = layout.candidate_hashes(fpr).into_iter().filter_map(|num_hashes| {
            let granule = layout.granule(num_hashes);
            let shape = |units: u64| Shape { layout, scheme, num_bits: units * granule, num_hashes };
            smallest(MAX_BITS / granule, fpr, |units| shape(units).sizing_fpr(capacity as f64)).map(shape)
        });
        let best = sized.min_by_key(|shape| (shape.num_bits, shape.num_hashes));
        best.ok_or_else(|| Self::impossible(capacity, fpr))?.check()
    }

    /// Refuses early a rate whose information bound, log2(1/p) bits per key, exceeds memory.
    fn check_possible(capacity: u64, fpr: f64) -> Result<()> {
        if capacity as f64 * -fpr.log2() / 8.0 > ADDRESSABLE_BYTES as f64 {
            return Err(Self::impossible(capacity, fpr));
        }
        Ok(())
    }

    fn impossible(capacity: u64, fpr: f64) -> Error {
        let bytes = optimal_bits(capacity as f64, fpr) / 8.0;
        Error::Memory(format!(
            "a capacity of {capacity} at fpr {} needs at least {bytes:.2e} bytes, which no machine can give; \
             lower the capacity or raise the fpr",
            crate::sizing::format_rate(fpr)
        ))
    }

    /// The choice of `auto`: `blocked` while it costs at most 1.2 times the space of `classic` (that is down to 0.005
    /// %) or fits a page, `classic` below.
    pub fn auto(capacity: u64, fpr: f64) -> Result<Self> {
        let classic = Self::for_capacity(Layout::Classic, None, capacity, fpr)?;
        let Ok(blocked) = Self::for_capacity(Layout::Blocked, None, capacity, fpr) else {
            return Ok(classic);
        };
        let cheap = blocked.num_bits <= SMALL_BITS || blocked.num_bits as f64 <= 1.2 * classic.num_bits as f64;
        Ok(if cheap { blocked } else { classic })
    }

    /// A shape of given numbers; bits are rounded up to a multiple that the layout needs.
    pub fn explicit(layout: Layout, scheme: Option<Scheme>, num_bits: u64, num_hashes: u64) -> Result<Self> {
        let scheme = Self::check_scheme(layout, scheme)?;
        if num_bits == 0 || num_bits > MAX_BITS {
            return Err(Error::Parameter(format!("num_bits must be between 1 and {MAX_BITS}, got {num_bits}")));
        }
        let num_hashes = u32::try_from(num_hashes).ok().filter(|k| (1..=MAX_HASHES).contains(k)).ok_or_else(|| {
            Error::Parameter(format!("num_hashes must be between 1 and {MAX_HASHES}, got {num_hashes}"))
        })?;
        let num_bits = num_bits.next_multiple_of(layout.granule(num_hashes));
        Shape { layout, scheme, num_bits, num_hashes }.check()
    }

    /// The largest shape of at most `num_bits`, for every k that the layout can have.
    pub fn list_layouts(layout: Layout, num_bits: u64) -> Result<Vec<Self>> {
        let hashes = layout.hashes().into_iter().filter(|&k| num_bits >= layout.granule(k));
        hashes
            .map(|k| Self::explicit(layout, None, num_bits / layout.granule(k) * layout.granule(k), k.into()))
            .collect()
    }

    fn check_scheme(layout: Layout, scheme: Option<Scheme>) -> Result<Scheme> {
        let scheme = scheme.unwrap_or(layout.default_scheme());
        if layout.fits(scheme) {
            return Ok(scheme);
        }
        let fitting = Scheme::NAMES.iter().filter(|&&(scheme, _)| layout.fits(scheme));
        let names: Vec<&str> = fitting.map(|&(_, name)| name).collect();
        Err(Error::Parameter(format!(
            "scheme {:?} does not fit layout {:?}; choose from {}",
            scheme.name(),
            layout.name(),
            names.join(", ")
        )))
    }

    /// Refuses shapes that no constructor creates: the check for shapes read from files.
    pub fn check(self) -> Result<Self> {
        let Shape { layout, num_bits, num_hashes, .. } = self;
        Self::check_scheme(layout, Some(self.scheme))?;
        if !layout.hashes().contains(&num_hashes) {
            let wanted = match layout {
                Layout::Blocked => "4, 8 or 12",
                Layout::Split => "8",
                Layout::TwoBlock => "8, 16 or 24",
                _ => "between 1 and 64",
            };
            return Err(Error::Parameter(format!(
                "num_hashes of layout {:?} must be {wanted}, got {num_hashes}",
                layout.name()
            )));
        }
        // Parquet's rule selects a block by 32 bits of the hash.
        let most = if layout == Layout::Split { 256 << 32 } else { MAX_BITS };
        if !num_bits.is_multiple_of(layout.granule(num_hashes)) || num_bits == 0 || num_bits > most {
            return Err(Error::Parameter(format!("num_bits does not fit layout {:?}, got {num_bits}", layout.name())));
        }
        Ok(self)
    }

    /// The law of this shape.
    pub fn law(&self) -> Box<dyn Law> {
        match (self.layout, self.scheme.derivation()) {
            (Layout::Classic, None) => Box::new(self.classic()),
            (Layout::Classic, Some(derivation)) => Box::new(self.derive_law(self.classic(), derivation)),
            (Layout::TwoBlock, _) => Box::new(Pairs { half: self.lanes() }),
            (_, None) => Box::new(self.lanes()),
            (_, Some(derivation)) => Box::new(self.derive_law(self.lanes(), derivation)),
        }
    }

    /// The law of independent positions anywhere.
    fn classic(&self) -> Classic {
        Classic { num_bits: self.num_bits, num_hashes: self.num_hashes }
    }

    /// The law of independent positions in lanes; for two lines, that of one half.
    fn lanes(&self) -> Lanes {
        let (m, k) = (self.num_bits, self.num_hashes);
        match self.layout {
            Layout::Blocked => Lanes { blocks: m / 512, lanes: 4, width: 128, per_lane: k / 4 },
            Layout::Split => Lanes { blocks: m / 256, lanes: 8, width: 32, per_lane: 1 },
            Layout::TwoBlock => Lanes { blocks: m / 1024, lanes: 4, width: 128, per_lane: k / 8 },
            _ => Lanes { blocks: 1, lanes: k, width: (m / u64::from(k)).max(1), per_lane: 1 },
        }
    }

    fn derive_law<L: Law>(&self, ideal: L, derivation: Derivation) -> DerivedLaw<L> {
        let slices = self.layout == Layout::Partitioned;
        let range = if slices { self.num_bits / u64::from(self.num_hashes) } else { self.num_bits };
        DerivedLaw { ideal, derivation, range, num_hashes: self.num_hashes, slices }
    }

    /// The rate used for sizing: never below the true one.
    fn sizing_fpr(&self, items: f64) -> f64 {
        let classic = self.layout == Layout::Classic;
        let ideal = match self.layout {
            Layout::Classic => self.classic().safe_fpr(items),
            Layout::TwoBlock => self.law().fpr(items),
            _ => self.lanes().fpr(items),
        };
        match self.scheme.derivation() {
            None => ideal,
            Some(derivation) if classic => self.derive_law(self.classic(), derivation).bound(ideal, items),
            Some(derivation) => self.derive_law(self.lanes(), derivation).bound(ideal, items),
        }
    }

    /// The rate at `items` keys that a file states of a shape given outright: as it was from the first file on.
    pub(super) fn stated_fpr(&self, items: f64) -> f64 {
        match (self.layout, self.scheme.derivation()) {
            (Layout::Classic, None) => self.classic().second_order(items),
            _ => self.law().fpr(items),
        }
    }

    /// 64-bit words in use (memory may round up to a line).
    pub fn words(&self) -> u64 {
        self.num_bits.div_ceil(64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bloom::BloomFilter;
    use crate::structure::{Addable, Filter};

    #[test]
    fn only_the_k_of_a_layout_give_a_filter_of_one_granule() {
        for &(layout, name) in Layout::NAMES {
            for num_hashes in 1..=70 {
                let bits = layout.granule(num_hashes);
                let hasher = KeyHasher::seeded(0);
                let made = BloomFilter::with_shape(bits, num_hashes.into(), None, name, (None, "xxh3"), false, hasher);
                assert_eq!(made.is_ok(), layout.hashes().contains(&num_hashes), "{name} {num_hashes}");
                let Ok(mut filter) = made else { continue };
                assert!(filter.add_hash(1 << 63 | 12345).unwrap() && filter.contains_hash(1 << 63 | 12345));
                let set = if layout == Layout::Classic { 1 } else { num_hashes };
                assert_eq!((filter.num_bits(), filter.ones()), (bits, set.into()), "{name} {num_hashes}");
            }
        }
    }

    #[test]
    fn a_sized_shape_honours_its_rate_and_wastes_little() {
        for &(layout, _) in Layout::NAMES {
            for fpr in [0.5, 0.1, 0.01, 1e-3, 1e-6, 1e-9] {
                for capacity in [1u64, 10, 1000, 1_000_000, 1_000_000_000] {
                    let shape = Shape::for_capacity(layout, None, capacity, fpr).unwrap();
                    let rate = shape.law().fpr(capacity as f64);
                    assert!(rate <= fpr, "{shape:?} {rate}");
                    assert!(capacity < 10_000 || rate > 0.8 * fpr || fpr > 0.2, "{shape:?} {rate} for {fpr}");
                }
            }
        }
    }

    #[test]
    fn shapes_within_are_the_largest_of_each_k() {
        for &(layout, _) in Layout::NAMES {
            for limit in [1, 63, 511, 512, 100_000] {
                let shapes = Shape::list_layouts(layout, limit).unwrap();
                for k in 1..=MAX_HASHES {
                    let fits = |bits| {
                        Shape { layout, scheme: layout.default_scheme(), num_bits: bits, num_hashes: k }.check().is_ok()
                    };
                    let largest = (1..=limit).rev().take(1024).find(|&bits| fits(bits));
                    let found = shapes.iter().find(|shape| shape.num_hashes == k).map(|shape| shape.num_bits);
                    assert_eq!(found, largest, "{layout:?} {limit} {k}");
                }
            }
        }
    }

    #[test]
    fn the_default_layout_keeps_its_space_promise() {
        for (fpr, limit) in [(0.01, 10.1), (0.001, 15.8), (0.0001, 22.0)] {
            let shape = Shape::auto(1_000_000, fpr).unwrap();
            assert_eq!(shape.layout, Layout::Blocked);
            assert!(shape.num_bits as f64 / 1e6 <= limit, "{shape:?}");
        }
        assert_eq!(Shape::auto(1_000_000, 1e-6).unwrap().layout, Layout::Classic);
    }
}
