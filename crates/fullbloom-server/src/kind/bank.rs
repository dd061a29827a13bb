//! A bank of filters as a [`Kind`]: its keys are pairs of an owner and a key, two words each. It has no row in the
//! registry, because structures of the registry take one word.

use std::any::Any;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use fullbloom_core::bank::{FilterBank, Plan, plan::Stage};
use fullbloom_core::container::file::OpenFile;
use fullbloom_core::container::{BANK, Container, Verify, kind};
use fullbloom_core::growth::Growth;
use fullbloom_core::key::{Domain, KeyDomains, KeyHasher};
use fullbloom_core::registry::Variant;
use fullbloom_core::structure::opening::OpenOptions;
use fullbloom_core::structure::{CellCounts, CellStats, Value};

use super::foreign::rows as foreign;
use super::keying::Keying;
use super::sections::{bytes_of, count_ones};
use super::spec::Spec;
use super::traits::Kind;
use crate::fault::{Code, Fault, Result};

/// The row of banks, in the form of the registry.
pub static ROW: Variant = Variant {
    id: BANK,
    name: "bank",
    class: "FilterBank",
    adds: "owner and key",
    entry: &["owner", "key"],
    capabilities: &["add", "merge", "grow"],
    ..foreign::ROW
};

/// Name, type and default of each parameter, in the form of the registry.
pub const PARAMETERS: [(&str, &str, Option<&str>); 5] = [
    ("capacity", "int", None),
    ("fpr", "float", Some("0.01")),
    ("max_fpr", "float | None", Some("None")),
    ("growth", "float", Some("2.0")),
    ("max_owners", "int | None", Some("None")),
];

/// The pairs that are split at once.
const CHUNK: usize = 1024;
/// The loads of a stage at which its rate is computed.
const LOADS: usize = 64;

/// The number given as an option; `None` if it is missing or "none".
fn number<T: std::str::FromStr>(spec: &Spec, name: &str, what: &str) -> Result<Option<T>> {
    let Some(text) = spec.option(name).filter(|text| *text != "none") else { return Ok(None) };
    let wrong = |_| Fault::invalid(format!("{name} must be {what}, got {text:?}"));
    text.parse().map(Some).map_err(wrong)
}

fn parse_options(spec: &Spec) -> Result<Plan> {
    spec.check_names(ROW.class, &PARAMETERS.map(|(name, ..)| name))?;
    spec.check()?;
    let [whole, real] = ["a whole number", "a number"];
    let capacity = number(spec, "capacity", whole)?
        .ok_or_else(|| Fault::invalid("capacity is missing; give the keys of an owner as capacity=..."))?;
    let most = number(spec, "max_owners", whole)?;
    if most == Some(0) {
        return Err(Fault::invalid("max_owners must be at least 1, got 0; leave it out for no limit"));
    }
    let (fpr, growth) = (number(spec, "fpr", real)?.unwrap_or(0.01), number(spec, "growth", real)?.unwrap_or(2.0));
    Ok(Plan::new(capacity, fpr, number(spec, "max_fpr", real)?, growth, most.unwrap_or(0)).check()?)
}

/// Creates an empty bank, if the kind is this one.
pub(super) fn create(spec: &Spec, hasher: KeyHasher) -> Option<Result<Box<dyn Kind>>> {
    let create = || Ok(Box::new(FilterBank::new(parse_options(spec)?, hasher)?) as Box<dyn Kind>);
    (spec.kind == ROW.name).then(create)
}

/// The bytes of cells that an empty one takes, if the kind is this one.
pub(super) fn nbytes_for(spec: &Spec) -> Option<Result<u64>> {
    (spec.kind == ROW.name).then(|| parse_options(spec).map(|_| 0))
}

/// Loads a bank from the bytes of a file, if `variant` is this kind.
pub(super) fn load(
    variant: u16,
    bytes: &[u8],
    secret: Option<[u8; 16]>,
    max_bytes: u64,
) -> Option<Result<Box<dyn Kind>>> {
    let wanted = OpenOptions { verify: Verify::Full, secret, max_bytes };
    let load = || Ok(Box::new(FilterBank::from_bytes(bytes, &wanted)?) as Box<dyn Kind>);
    (variant == BANK).then(load)
}

/// Loads the bank in a file into memory, if it is one.
pub(super) fn open(path: &Path, secret: Option<[u8; 16]>, max_bytes: u64) -> Option<Result<Box<dyn Kind>>> {
    let file = OpenFile::new(path).ok().filter(|file| file.parsed.header.variant == BANK)?;
    let wanted = OpenOptions { verify: Verify::Full, secret, max_bytes };
    Some(FilterBank::open(&file, path, &wanted).map_err(Fault::from).and_then(|mapped| Kind::duplicate(&mapped)))
}

/// The mean of the model rates of all owners, each at its number of keys. Rates are computed at 64 loads of each stage;
/// owners between two of them count with their mean.
fn mean_fpr(bank: &FilterBank) -> f64 {
    let stages = bank.stages();
    // Owners in each part of each stage, and their keys in that stage.
    let mut parts = vec![[(0_u64, 0_u64); LOADS]; stages.len()];
    for (_, keys) in bank.each_owner() {
        let at = stages.partition_point(|stage| stage.total < keys).min(stages.len() - 1);
        let Stage { capacity, total, .. } = stages[at];
        let inside = keys.saturating_sub(total - capacity);
        let part = &mut parts[at][(inside.saturating_mul(LOADS as u64) / capacity).min(LOADS as u64 - 1) as usize];
        *part = (part.0 + 1, part.1 + inside);
    }
    let (mut sum, mut before) = (0.0, 1.0);
    for (stage, parts) in stages.iter().zip(&parts) {
        let law = stage.shape.law();
        for &(owners, keys) in parts.iter().filter(|(owners, _)| *owners > 0) {
            sum += owners as f64 * (1.0 - before * (1.0 - law.fpr(keys as f64 / owners as f64)));
        }
        before *= 1.0 - law.fpr(stage.capacity as f64);
    }
    sum / bank.len().max(1) as f64
}

/// Fill and rate, if so many bits are set in the lines.
fn stats(bank: &FilterBank, set: u64) -> CellStats {
    let bits = 8 * bank.line_bytes();
    // Without a set bit there is no key.
    let fpr = if set == 0 { 0.0 } else { mean_fpr(bank) };
    CellStats { fill: if bits == 0 { 0.0 } else { set as f64 / bits as f64 }, fpr, ..CellStats::default() }
}

/// Calls `work` with the owners and the keys of some pairs at a time, and the position of the first.
fn each_chunk(words: &[u64], mut work: impl FnMut(usize, &[u64], &[u64]) -> Result<()>) -> Result<()> {
    let (mut owners, mut keys) = ([0; CHUNK], [0; CHUNK]);
    for (at, pairs) in words.as_chunks::<2>().0.chunks(CHUNK).enumerate() {
        for ((pair, owner), key) in pairs.iter().zip(&mut owners).zip(&mut keys) {
            [*owner, *key] = *pair;
        }
        work(at * CHUNK, &owners[..pairs.len()], &keys[..pairs.len()])?;
    }
    Ok(())
}

impl Kind for FilterBank {
    fn variant(&self) -> &'static Variant {
        &ROW
    }
    fn hasher(&self) -> KeyHasher {
        *FilterBank::hasher(self)
    }
    fn keying(&self) -> Keying {
        Keying::Pairs(FilterBank::hasher(self).of(Domain::Text))
    }
    /// The keys that its owners were sized for, those of one owner if no owner has been added yet.
    fn capacity(&self) -> u64 {
        self.plan().capacity.saturating_mul(self.len().max(1))
    }
    fn target_fpr(&self) -> f64 {
        self.plan().fpr
    }
    fn num_added(&self) -> u64 {
        FilterBank::num_added(self)
    }
    fn fpr(&self) -> f64 {
        mean_fpr(self)
    }
    fn fpr_by_count(&self) -> Option<f64> {
        Some(mean_fpr(self))
    }
    fn fill(&self) -> f64 {
        self.cell_stats().fill
    }
    fn nbytes(&self) -> u64 {
        FilterBank::nbytes(self)
    }
    fn cell_stats(&self) -> CellStats {
        let sections = FilterBank::container(self).sections;
        let lines = sections.iter().filter(|section| section.kind == kind::BITS);
        stats(self, lines.map(|section| count_ones(section.bytes)).sum())
    }
    fn count_steps(&self) -> Option<Vec<usize>> {
        let sections = FilterBank::container(self).sections;
        Some(sections.iter().map(|section| usize::from(section.kind == kind::BITS)).collect())
    }
    fn count_words(&self, section: usize, words: Range<usize>, counts: &mut CellCounts) {
        if let Some(lines) = FilterBank::container(self).sections.get(section) {
            counts.add(0, count_ones(bytes_of(lines.bytes, words)));
        }
    }
    fn stats_of(&self, counts: &CellCounts) -> CellStats {
        stats(self, counts.get(0))
    }
    fn info_with(&self, cells: CellStats) -> Vec<(&'static str, Value)> {
        let &Plan { capacity, fpr, max_fpr, growth, max_owners } = self.plan();
        vec![
            ("capacity", Value::Number(capacity)),
            ("target_fpr", Value::Real(fpr)),
            ("max_fpr", Value::Real(max_fpr)),
            ("growth", Value::Real(growth)),
            ("max_owners", if max_owners == 0 { Value::Nothing } else { Value::Number(max_owners) }),
            ("owners", Value::Number(self.len())),
            ("later_stages", Value::Number(self.num_later())),
            ("num_added", Value::Number(FilterBank::num_added(self))),
            ("fpr", Value::Real(cells.fpr)),
            ("fill", Value::Real(cells.fill)),
            ("nbytes", Value::Number(FilterBank::nbytes(self))),
            ("line_bytes", Value::Number(self.line_bytes())),
            ("directory_bytes", Value::Number(self.directory_bytes())),
            ("key_domains", Value::Text(FilterBank::hasher(self).domains().to_string())),
        ]
    }
    fn container(&self) -> Container<'_> {
        FilterBank::container(self)
    }
    fn duplicate(&self) -> Result<Box<dyn Kind>> {
        Ok(Box::new(self.try_clone()?))
    }
    fn contains(&self, words: &[u64], found: &mut [u8]) {
        // Lookups do not fail.
        let _ = each_chunk(words, |at, owners, keys| {
            self.contains_pairs(owners, keys, &mut found[at..at + keys.len()]);
            Ok(())
        });
    }
    fn bound(&mut self, max_bytes: u64) {
        self.limit(max_bytes);
    }
    fn share(&mut self, growth: Arc<dyn Growth>) {
        FilterBank::share(self, growth);
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn bank(&self) -> Result<&FilterBank> {
        Ok(self)
    }
    fn bank_mut(&mut self) -> Result<&mut FilterBank> {
        Ok(self)
    }
    fn add(&mut self, words: &[u64], mut new: Option<&mut [u8]>) -> Result<()> {
        each_chunk(words, |at, owners, keys| {
            let new = new.as_deref_mut().and_then(|new| new.get_mut(at..at + keys.len()));
            Ok(FilterBank::add_pairs(self, owners, keys, new)?)
        })
    }
    fn record(&mut self, domains: KeyDomains) {
        self.hasher_mut().domains_mut().insert(domains);
    }
    fn clear(&mut self) -> Result<()> {
        Ok(FilterBank::clear(self)?)
    }
    fn merge(&mut self, other: &dyn Kind) -> Result<()> {
        match other.as_any().downcast_ref::<FilterBank>() {
            Some(other) => Ok(FilterBank::merge(self, other)?),
            None => {
                let text = format!("a {} cannot be merged with a {}", ROW.class, other.variant().class);
                Err(Fault::new(Code::Incompatible, text))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bank(capacity: u64, options: &[(&str, &str)]) -> Result<FilterBank> {
        let mut spec = Spec { kind: ROW.name.into(), ..Spec::default() }.with("capacity", capacity);
        options.iter().for_each(|(name, text)| spec.add(name, text));
        Ok(FilterBank::new(parse_options(&spec)?, KeyHasher::seeded(7))?)
    }

    /// Distinct words: a step of splitmix64.
    fn word(number: u64) -> u64 {
        let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z ^ (z >> 27)
    }

    #[test]
    fn batches_equal_single_pairs_of_the_core() -> Result<()> {
        let (mut ours, mut core) = (bank(20, &[])?, bank(20, &[])?);
        // More than a chunk, and owners that grow in the middle.
        let pairs: Vec<[u64; 2]> = (0..5000).map(|at| [word(at % 37), word(1000 + at / 2)]).collect();
        let mut new = vec![0; pairs.len()];
        Kind::add(&mut ours, pairs.as_flattened(), Some(&mut new))?;
        for ([owner, key], new) in pairs.iter().zip(new) {
            assert_eq!(core.add(*owner, *key)?, new == 1);
        }
        assert!(ours.same_as(&core));
        let mut found = vec![0; pairs.len()];
        Kind::contains(&ours, pairs.as_flattened(), &mut found);
        assert_eq!(found, vec![1; pairs.len()]);
        Ok(())
    }

    #[test]
    fn the_mean_rate_is_that_of_the_owners() -> Result<()> {
        for loads in [[1, 100, 200, 300, 400], [50, 900, 1000, 2500, 300], [0, 0, 0, 0, 500]] {
            let mut bank = bank(300, &[("fpr", "0.02")])?;
            for (owner, keys) in (0..).zip(loads) {
                (0..keys).try_for_each(|key| bank.add(word(owner), word(100 + key)).map(drop))?;
            }
            let rates = bank.each_owner().map(|(owner, _)| bank.owner_fpr(owner));
            let rates: Vec<f64> = rates.collect::<fullbloom_core::Result<_>>()?;
            let (mean, own) = (rates.iter().sum::<f64>() / rates.len() as f64, mean_fpr(&bank));
            // By the law of the stages' keys, and by their set bits: they differ by the bits' deviation.
            assert!((own / mean - 1.0).abs() < 0.1, "{own} {mean}");
        }
        assert_eq!(mean_fpr(&bank(300, &[])?), 0.0);
        Ok(())
    }

    #[test]
    fn parameters_are_those_of_the_class_and_others_are_refused() -> Result<()> {
        let options = [("fpr", "0.001"), ("max_fpr", "none"), ("growth", "3"), ("max_owners", "9")];
        assert_eq!(*bank(5, &options)?.plan(), Plan::new(5, 0.001, None, 3.0, 9));
        for (name, text) in [("fpr", "2"), ("fpr", "x"), ("max_owners", "0"), ("max_fpr", "1e-9"), ("layout", "split")]
        {
            assert!(bank(5, &[(name, text)]).is_err(), "{name} {text}");
        }
        assert!(bank(0, &[]).is_err() && bank(u64::MAX, &[]).is_err());
        Ok(())
    }
}
