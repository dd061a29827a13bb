//! [`AnyStage`]: every structure that a growing filter can be a chain of, and [`ScalableBloomFilter`].
//!
//! A structure can be a stage if it takes keys, is sized by a capacity and a rate, which is then fixed, and
//! forgets nothing by itself. A stage holds every key once, also where the structure could hold copies.

use crate::bloom::{BloomFilter, Layout, RetouchedBloomFilter, Shape};
use crate::cells::{LINE_WORDS, Memory};
use crate::container::{Container, Header, tag};
use crate::counting::{CountingBloomFilter, DeletableBloomFilter, SpectralFilter, VariableIncrementFilter};
use crate::error::{Error, Result};
use crate::growing::{self, Scalable, Stage};
use crate::key::KeyHasher;
use crate::labelled::LayeredBloomFilter;
use crate::registry::{self, BLOOM};
use crate::structure::batch;
use crate::structure::{Addable, Declared, Filter, Loadable, Sizable, Value};
use crate::table::{CuckooFilter, DLeftCountingFilter, PrefixFilter, QuotientFilter};

/// A filter without a fixed capacity.
pub type ScalableBloomFilter = Scalable<AnyStage>;

/// What its stages are made from.
pub type Plan = growing::Plan<Kind>;

/// The structure of all stages; for Bloom filters their layout, or `None` to choose anew for each
/// one's rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kind {
    variant: u16,
    layout: Option<Layout>,
}

impl Default for Kind {
    fn default() -> Self {
        Kind { variant: BLOOM, layout: None }
    }
}

impl Kind {
    /// The kind with this registry name; `layout` is for Bloom filters.
    pub fn new(name: &str, layout: Option<Layout>) -> Result<Self> {
        let found = VARIANTS.iter().copied().find(|&id| registry::by_id(id).is_some_and(|row| row.name == name));
        let Some(variant) = found else {
            let names: Vec<&str> = Kind::names().collect();
            return Err(Error::Parameter(format!("kind must be one of {}, got {name:?}", names.join(", "))));
        };
        if variant != BLOOM && layout.is_some() {
            return Err(Error::Parameter(format!("layout is for kind \"bloom\"; leave it out for kind {name:?}")));
        }
        Ok(Kind { variant, layout })
    }

    /// Registry names of all kinds.
    pub fn names() -> impl Iterator<Item = &'static str> {
        VARIANTS.iter().filter_map(|&id| registry::by_id(id)).map(|row| row.name)
    }

    /// The registry row of the stages.
    pub fn row(self) -> &'static registry::Variant {
        registry::by_id(self.variant).unwrap_or(&registry::VARIANTS[0])
    }

    /// Layout of all stages, if they are Bloom filters of one.
    pub fn layout(self) -> Option<Layout> {
        self.layout
    }

    fn bloom_shape(self, capacity: u64, fpr: f64) -> Result<Shape> {
        match self.layout {
            Some(layout) => Shape::for_capacity(layout, None, capacity, fpr),
            None => Shape::auto(capacity, fpr),
        }
    }
}

/// Estimate and variance of a structure that estimates from its cells.
fn estimated(filter: &impl Filter) -> (f64, f64) {
    let (items, sd) = filter.estimated().unwrap_or_default();
    (items, sd * sd)
}

/// The same of a structure that only counts what was new.
fn counted(filter: &impl Filter) -> (f64, f64) {
    (filter.num_added() as f64, 0.0)
}

/// The enumeration of all stages and the work that goes to the structure at hand.
macro_rules! stages {
    ($($Name:ident $id:ident $Filter:ident $estimate:ident;)*) => {
        /// One stage.
        pub enum AnyStage {
            $(#[doc = concat!("[`", stringify!($Filter), "`]")] $Name($Filter),)*
        }

        const VARIANTS: &[u16] = &[$(registry::$id,)*];

        /// Runs `$work` with the structure of `$stage` as `$f`.
        macro_rules! each {
            ($stage:expr, $f:ident => $work:expr) => {
                match $stage { $(AnyStage::$Name($f) => $work,)* }
            };
        }

        impl AnyStage {
            fn of(kind: Kind, capacity: u64, fpr: f64, hasher: KeyHasher) -> Result<Self> {
                match kind.variant {
                    $(registry::$id => $Filter::for_capacity(capacity, fpr, hasher).map(AnyStage::$Name),)*
                    _ => Err(Error::format("the file names stages of an unknown kind; use a newer release")),
                }
            }

            fn bytes_of(kind: Kind, capacity: u64, fpr: f64) -> Result<u64> {
                match kind.variant {
                    $(registry::$id => $Filter::nbytes_for(capacity, fpr),)*
                    _ => Err(Error::parameter("stages of this kind are unknown")),
                }
            }

            fn copied(&self) -> Result<Self> {
                match self { $(AnyStage::$Name(f) => f.try_clone().map(AnyStage::$Name),)* }
            }

            fn equals(&self, other: &Self) -> bool {
                match (self, other) {
                    $((AnyStage::$Name(a), AnyStage::$Name(b)) => a.same_as(b),)*
                    _ => false,
                }
            }

            fn estimated(&self) -> (f64, f64) {
                match self { $(AnyStage::$Name(f) => $estimate(f),)* }
            }
        }

        impl Loadable for AnyStage {
            fn load(
                header: &Header,
                memory: &mut dyn FnMut(u32, u32, u64) -> Result<Memory>,
                secret: Option<&[u8; 16]>,
            ) -> Result<Self> {
                match header.variant {
                    $(registry::$id => $Filter::load(header, memory, secret).map(AnyStage::$Name),)*
                    _ => Err(Error::format("the file names stages of an unknown kind; use a newer release")),
                }
            }
        }

    };
}

stages! {
    Bloom BLOOM BloomFilter estimated;
    Counting COUNTING CountingBloomFilter estimated;
    Variable VARIABLE_INCREMENT VariableIncrementFilter estimated;
    Spectral SPECTRAL SpectralFilter estimated;
    DLeft D_LEFT DLeftCountingFilter counted;
    Deletable DELETABLE DeletableBloomFilter estimated;
    Retouched RETOUCHED RetouchedBloomFilter counted;
    Layered LAYERED LayeredBloomFilter estimated;
    Cuckoo CUCKOO CuckooFilter counted;
    Quotient QUOTIENT QuotientFilter counted;
    Prefix PREFIX PrefixFilter counted;
}

impl Filter for AnyStage {
    fn hasher(&self) -> &KeyHasher {
        each!(self, f => f.hasher())
    }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        each!(self, f => f.contains_hash(hash))
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut [u8]) {
        each!(self, f => f.contains_hashes(hashes, found))
    }

    fn capacity(&self) -> u64 {
        each!(self, f => f.capacity())
    }

    fn target_fpr(&self) -> f64 {
        each!(self, f => f.target_fpr())
    }

    fn num_added(&self) -> u64 {
        each!(self, f => f.num_added())
    }

    fn fpr(&self) -> f64 {
        each!(self, f => f.fpr())
    }

    fn fill(&self) -> f64 {
        each!(self, f => f.fill())
    }

    fn nbytes(&self) -> u64 {
        each!(self, f => f.nbytes())
    }

    fn facts(&self) -> Vec<(&'static str, Value)> {
        each!(self, f => f.info())
    }

    fn container(&self) -> Container<'_> {
        each!(self, f => f.container())
    }

    fn try_clone(&self) -> Result<Self> {
        self.copied()
    }

    fn same_as(&self, other: &Self) -> bool {
        self.equals(other)
    }
}

impl Addable for AnyStage {
    #[inline(always)]
    fn add_hash(&mut self, hash: u64) -> Result<bool> {
        each!(self, f => f.add_hash(hash))
    }

    fn add_hashes(&mut self, hashes: &[u64], new: Option<&mut [u8]>) -> Result<()> {
        each!(self, f => f.add_hashes(hashes, new))
    }

    fn expect_adds(&mut self, adds: usize) {
        each!(self, f => f.expect_adds(adds))
    }

    fn is_read_only(&self) -> bool {
        each!(self, f => f.is_read_only())
    }

    fn is_roomy(&self) -> bool {
        each!(self, f => f.is_roomy())
    }

    fn newly_overfull(&mut self) -> bool {
        each!(self, f => f.newly_overfull())
    }

    fn clear(&mut self) -> Result<()> {
        each!(self, f => f.clear())
    }
}

impl Stage for AnyStage {
    type Kind = Kind;

    fn fresh(kind: Kind, capacity: u64, fpr: f64, hasher: KeyHasher) -> Result<Self> {
        match kind.variant {
            BLOOM => BloomFilter::new(kind.bloom_shape(capacity, fpr)?, capacity, fpr, hasher, false).map(Self::Bloom),
            _ => AnyStage::of(kind, capacity, fpr, hasher),
        }
    }

    fn nbytes_of(kind: Kind, capacity: u64, fpr: f64) -> Result<u64> {
        match kind.variant {
            BLOOM => Ok(kind.bloom_shape(capacity, fpr)?.words().next_multiple_of(LINE_WORDS as u64) * 8),
            _ => AnyStage::bytes_of(kind, capacity, fpr),
        }
    }

    /// A layout for Bloom filters (0 for `None`), the registry number for all others.
    fn describe_kind(kind: Kind, header: &mut Header, index: u16) {
        match kind.variant {
            BLOOM => header.set(tag::LAYOUT, index, kind.layout.map_or(0, |layout| layout as u64)),
            variant => header.set(tag::STAGE_VARIANT, index, u64::from(variant)),
        }
    }

    fn restore_kind(header: &Header, index: u16) -> Result<Kind> {
        let Ok(variant) = header.get(tag::STAGE_VARIANT, index) else {
            let layout = match header.get(tag::LAYOUT, index)? {
                0 => None,
                id => Some(Layout::from_id(id).ok_or_else(|| Error::format("the file names an unknown layout"))?),
            };
            return Ok(Kind { layout, ..Kind::default() });
        };
        let known = VARIANTS.iter().copied().find(|&known| known != BLOOM && u64::from(known) == variant);
        known
            .map(|variant| Kind { variant, layout: None })
            .ok_or_else(|| Error::format("the file names stages of an unknown kind; use a newer release"))
    }

    fn variant(kind: Kind) -> u16 {
        kind.variant
    }

    fn of_fingerprints(kind: Kind) -> bool {
        matches!(kind.variant, registry::D_LEFT | registry::CUCKOO | registry::QUOTIENT | registry::PREFIX)
    }

    fn kind_facts(kind: Kind) -> Vec<(&'static str, Value)> {
        let mut facts = vec![("kind", Value::Text(kind.row().name.into()))];
        if kind.variant == BLOOM {
            facts.push(("layout", Value::Text(kind.layout.map_or("auto", Layout::name).into())));
        }
        facts
    }

    fn estimate(&self) -> (f64, f64) {
        self.estimated()
    }

    /// Bits of Bloom filters; of other structures, their share of used cells, weighed by bytes.
    fn cells(&self) -> (f64, f64) {
        match self {
            AnyStage::Bloom(f) => (f.ones() as f64, f.shape().num_bits as f64),
            stage => (stage.fill() * stage.nbytes() as f64, stage.nbytes() as f64),
        }
    }

    fn add_missing(&mut self, hashes: &[u64], new: &mut [u8]) -> Result<usize> {
        if let AnyStage::Bloom(f) = self {
            return f.add_hashes(hashes, Some(new)).map(|()| hashes.len());
        }
        each!(self, f => add_once(f, hashes, new))
    }
}

/// [`Stage::add_missing`] of a structure that would store a copy. The look at all keys beforehand also
/// fetches their cells.
fn add_once(filter: &mut impl Addable, hashes: &[u64], new: &mut [u8]) -> Result<usize> {
    let mut found = [0u8; batch::CHUNK];
    let found = &mut found[..hashes.len()];
    filter.contains_hashes(hashes, found);
    for (i, (&hash, &found)) in hashes.iter().zip(found.iter()).enumerate() {
        let missing = found == 0 && !filter.contains_hash(hash);
        if missing {
            match filter.add_hash(hash) {
                Ok(_) => {}
                // A fresh stage that takes nothing would be opened for ever.
                Err(Error::Capacity(_)) if filter.num_added() > 0 => return Ok(i),
                Err(error) => return Err(error),
            }
        }
        new[i] = u8::from(missing);
    }
    Ok(hashes.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::splitmix::mix;
    use crate::table::cuckoo::places::Places;

    /// Hashes for a table of `buckets` that all lie in its buckets 0 and 1, of different fingerprints.
    fn crowd(buckets: u64, width: u32) -> Vec<u64> {
        let places = Places::new(buckets, width);
        let mut fps = std::collections::HashSet::new();
        let hashes = (0..4_000_000u64).map(mix).filter(|&hash| {
            let spot = places.of(hash);
            spot.first < 2 && spot.second < 2 && fps.insert(spot.fp)
        });
        hashes.take(30).collect()
    }

    #[test]
    fn a_stage_without_room_is_closed_early_and_no_key_is_lost() {
        let plan = || Plan {
            initial_capacity: 100,
            fpr: 1e-4,
            growth: 1.0,
            tightening: 0.5,
            kind: Kind::new("cuckoo", None).unwrap(),
        };
        let mut single = Scalable::<AnyStage>::new(plan(), KeyHasher::seeded(0)).unwrap();
        let AnyStage::Cuckoo(first) = &single.stages()[0] else { panic!("not a cuckoo filter") };
        // 30 keys for 2 buckets of 4 and a stash: the stage refuses long before its 100 keys.
        let mut hashes = crowd(first.shape().buckets, first.shape().fingerprint_bits);
        hashes.extend((0..150).map(|i| mix(i << 32)));
        let news: Vec<u8> = hashes.iter().map(|&hash| u8::from(single.add_hash(hash).unwrap())).collect();
        assert!(single.stages()[0].num_added() < 30 && single.stages().len() > 1);
        assert!(hashes.iter().all(|&hash| single.contains_hash(hash)));
        let mut batch = Scalable::<AnyStage>::new(plan(), KeyHasher::seeded(0)).unwrap();
        let mut marks = vec![0; hashes.len()];
        batch.add_hashes(&hashes, Some(&mut marks)).unwrap();
        assert!(batch.same_as(&single) && marks == news);
    }

    #[test]
    fn every_kind_has_a_row_that_takes_keys() {
        for name in Kind::names() {
            let kind = Kind::new(name, None).unwrap();
            assert!(kind.row().capabilities.contains(&"add"), "{name}");
        }
        assert!(matches!(Kind::new("aging", None), Err(Error::Parameter(_))));
    }
}
