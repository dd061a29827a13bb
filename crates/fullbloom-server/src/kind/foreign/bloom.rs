//! The Bloom filter of `RedisBloom` as a [`Kind`].

use std::any::Any;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use fullbloom_core::container::Container;
use fullbloom_core::foreign::redisbloom::bloom::{Chain, Layer, hash};
use fullbloom_core::growth::Growth;
use fullbloom_core::key::KeyHasher;
use fullbloom_core::registry::Variant;
use fullbloom_core::structure::parts::Parts;
use fullbloom_core::structure::{CellCounts, CellStats, Value};

use super::dump_format::DumpFormat;
use super::options::number;
use super::rows::ROWS;
use crate::fault::{Fault, Result};
use crate::kind::keying::Keying;
use crate::kind::sections::{bytes_of, count_ones};
use crate::kind::spec::Spec;
use crate::kind::traits::Kind;

/// The bytes that RedisBloom counts in addition to the cells.
const OVERHEAD: u64 = 32;
const LAYER_OVERHEAD: u64 = 64;
const MOST_EXPANSION: u64 = 32_768;

/// Capacity, rate, expansion, and whether it grows.
fn parse_options(spec: &Spec) -> Result<(u64, f64, u32, bool)> {
    spec.check_names(&spec.kind, &["capacity", "fpr", "expansion", "scaling"])?;
    let capacity = number(spec, "capacity", None, u64::MAX)?;
    let rate = spec.option("fpr").unwrap_or("0.01");
    let error = rate.parse().map_err(|_| Fault::invalid(format!("fpr must be a number, got {rate:?}")))?;
    let expansion = number(spec, "expansion", Some(2), MOST_EXPANSION)? as u32;
    let scaling = number(spec, "scaling", Some(1), 1)? == 1 && expansion > 0;
    Ok((capacity, error, expansion, scaling))
}

pub(super) fn create(spec: &Spec) -> Result<Chain> {
    let (capacity, error, expansion, scaling) = parse_options(spec)?;
    Ok(Chain::construct(capacity, error, expansion, scaling)?)
}

pub(super) fn nbytes(spec: &Spec) -> Result<u64> {
    let (capacity, error, _, scaling) = parse_options(spec)?;
    Ok(Chain::cell_bytes(capacity, error, scaling)?)
}

fn to_cell_stats((fill, fpr): (f64, f64)) -> CellStats {
    // The filter counts its keys itself.
    CellStats { fill, fpr, ..CellStats::default() }
}

fn line(layer: &Layer) -> String {
    let bytes = layer.cells().len() as u64;
    let (bits, hashes, entries, items, ratio) =
        (bytes * 8, layer.hashes, layer.entries, layer.items, general(layer.error));
    format!("bytes:{bytes} bits:{bits} hashes:{hashes} hashwidth:64 capacity:{entries} size:{items} ratio:{ratio}")
}

/// `%g`: a number with six digits, as C prints it.
fn general(number: f64) -> String {
    let scientific = format!("{number:.5e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let short = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    if (-4..6).contains(&exponent) {
        return short(&format!("{number:.*}", (5 - exponent).max(0) as usize));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", short(digits), exponent.unsigned_abs())
}

impl DumpFormat for Chain {
    foreign_dump!();
    fn tables(&self) -> u64 {
        self.layers().len() as u64
    }
    fn debug_lines(&self) -> Vec<String> {
        let first = format!("size:{}", self.items());
        std::iter::once(first).chain(self.layers().iter().map(line)).collect()
    }
}

impl Kind for Chain {
    foreign_kind!();
    fn variant(&self) -> &'static Variant {
        &ROWS[0]
    }
    fn keying(&self) -> Keying {
        Keying::Foreign(2, |key, words| words.extend_from_slice(&hash(key)))
    }
    fn capacity(&self) -> u64 {
        Chain::capacity(self)
    }
    fn cell_stats(&self) -> CellStats {
        to_cell_stats(self.fill_and_fpr())
    }
    fn count_steps(&self) -> Option<Vec<usize>> {
        Some(vec![1; self.layers().len()])
    }
    fn count_words(&self, section: usize, words: Range<usize>, counts: &mut CellCounts) {
        if let Some(layer) = self.container().sections.get(section) {
            counts.add(section, count_ones(bytes_of(layer.bytes, words)));
        }
    }
    fn stats_of(&self, counts: &CellCounts) -> CellStats {
        let ones: Vec<u64> = (0..self.layers().len()).map(|layer| counts.get(layer)).collect();
        to_cell_stats(self.fill_and_fpr_of(&ones))
    }
    fn info_with(&self, cells: CellStats) -> Vec<(&'static str, Value)> {
        let layers = self.layers().len() as u64;
        vec![
            ("capacity", Value::Number(Chain::capacity(self))),
            ("target_fpr", Value::Real(self.target())),
            ("num_added", Value::Number(self.items())),
            ("fpr", Value::Real(cells.fpr)),
            ("fill", Value::Real(cells.fill)),
            ("stages", Value::Number(layers)),
            ("nbytes", Value::Number(Chain::nbytes(self))),
            ("counted_bytes", Value::Number(OVERHEAD + LAYER_OVERHEAD * layers + Chain::nbytes(self))),
        ]
    }
    fn visit_written_words(&self, words: &[u64], word: &mut dyn FnMut(usize, usize)) -> bool {
        Chain::writes(self, words.as_chunks().0, word)
    }
    fn takes_parts(&self) -> bool {
        true
    }
    fn with_parts(&self, mut parts: Parts) -> Result<Box<dyn Kind>> {
        let cells = (0..self.layers().len() as u32).map(|layer| parts.take_foreign(layer));
        Ok(Box::new(self.with_cells(cells.collect::<fullbloom_core::Result<_>>()?)?))
    }
    fn contains(&self, words: &[u64], found: &mut [u8]) {
        self.contains_many(words.as_chunks().0, found);
    }
    fn add(&mut self, words: &[u64], new: Option<&mut [u8]>) -> Result<()> {
        Ok(self.add_many(words.as_chunks().0, new)?)
    }
}

#[cfg(test)]
mod tests {
    use super::general;

    #[test]
    fn numbers_print_as_in_c() {
        let rows = [(0.005, "0.005"), (0.0025, "0.0025"), (7.8125e-5, "7.8125e-05"), (1e-10, "1e-10"), (0.25, "0.25")];
        for (number, text) in rows.into_iter().chain([(123_456.7, "123457"), (1e6, "1e+06"), (0.0, "0")]) {
            assert_eq!(general(number), text);
        }
        assert_eq!(general(0.000_123_456_78), "0.000123457");
    }
}
