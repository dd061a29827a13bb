//! Helpers for the tests of several families.
#![cfg(test)]

use std::sync::Arc;

use proptest::prelude::ProptestConfig;
use proptest::test_runner::RngSeed;

use super::declaration::Parameter;
use super::{CellCounts, Declared, Loadable, Value};
use crate::cells::Memory;
use crate::container::{ContainerIndex, Header, Verify};
use crate::error::{Error, Result};
use crate::registry::VARIANTS;

/// A well-mixed hash of a counter.
pub(crate) fn hash(i: u64) -> u64 {
    crate::hash::splitmix::at(0, i)
}

/// As many cases as usual, the same in every run. `PROPTEST_CASES=100000` tries more.
pub(crate) fn fixed_cases() -> ProptestConfig {
    ProptestConfig { rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() }
}

/// No choice, and each choice among names for one of the parameters.
pub(crate) fn choices(parameters: &[Parameter]) -> Vec<Vec<(&'static str, &'static str)>> {
    let kinds = VARIANTS.iter().filter(|row| row.stage).map(|row| ("kind", row.name));
    let layouts = VARIANTS[0].layouts.iter().map(|&layout| ("layout", layout));
    let others = [("lattice", "min"), ("lattice", "or"), ("mode", "minimum-selection"), ("mode", "recurring-minimum")];
    let choices = kinds.chain(layouts).chain(others).filter(|(name, _)| parameters.iter().any(|p| p.name == *name));
    std::iter::once(vec![]).chain(choices.map(|choice| vec![choice])).collect()
}

/// The file of the structure.
pub(crate) fn bytes<F: Loadable>(filter: &F) -> Vec<u8> {
    let mut bytes = Vec::new();
    let container = filter.container();
    container.write_with(&container.head().unwrap(), &mut bytes).unwrap();
    bytes
}

/// The structure, restored from its file.
pub(crate) fn reload<F: Loadable>(filter: &F) -> F {
    let again = reload_changed(filter, |_, _| {}).unwrap();
    again.check_cells().unwrap();
    again
}

/// The structure, restored from its file after `change` has changed header and cells.
pub(crate) fn reload_changed<F: Loadable>(
    filter: &F,
    mut change: impl FnMut(&mut Header, &mut Vec<Vec<u8>>),
) -> Result<F> {
    rebuilt(filter, &mut change, &|bytes| {
        let mut memory = Memory::zeroed(bytes.len() as u64 / 8)?;
        memory.copy_from_bytes(bytes)?;
        Ok(memory)
    })
}

/// The structure over a read-only mapping of its cells.
pub(crate) fn map_filter<F: Loadable>(filter: &F) -> F {
    let map = |bytes: &[u8]| {
        let mut map = memmap2::MmapMut::map_anon(bytes.len()).unwrap();
        map.copy_from_slice(bytes);
        Memory::from_map(&Arc::new(map.make_read_only().unwrap()), 0, bytes.len() / 8, None)
    };
    rebuilt(filter, &mut |_, _| {}, &map).unwrap()
}

/// Compiled once a structure, whatever the change.
fn rebuilt<F: Loadable>(
    filter: &F,
    change: &mut dyn FnMut(&mut Header, &mut Vec<Vec<u8>>),
    memory: &dyn Fn(&[u8]) -> Result<Memory>,
) -> Result<F> {
    let (file, sections) = (bytes(filter), filter.container().sections);
    let parsed = ContainerIndex::new(&file, Verify::Full).unwrap();
    let spans = sections.iter().map(|s| parsed.section(s.kind, s.index).unwrap());
    let mut cells: Vec<_> = spans.map(|span| file[span.offset..span.offset + span.len].to_vec()).collect();
    let mut header = parsed.header.clone();
    change(&mut header, &mut cells);
    let mut section = |kind, index, words: u64| {
        let at = sections.iter().position(|s| (s.kind, s.index) == (kind, index));
        let cells = at.and_then(|at| cells.get(at)).ok_or_else(|| Error::format("no such section"))?;
        // Memory comes in lines.
        if words.max(1).div_ceil(8) != cells.len() as u64 / 64 {
            return Err(Error::format("another length"));
        }
        memory(cells)
    };
    let hasher = filter.hasher().holding(header.added_domains()?);
    F::load(&header, hasher, &mut section)
}

/// What one count of the cells says, and one in slices, is what each method says.
pub(crate) fn one_count_suffices<F: Declared>(filter: &F) {
    let stats = filter.cell_stats();
    assert_eq!((stats.fill, stats.fpr, stats.estimated), (filter.fill(), filter.fpr(), filter.estimate_count()));
    assert!(stats.counted.iter().all(|(name, value)| {
        filter.attribute(name).as_ref() == Some(value)
            || filter.estimate_missed().map(Value::Real).as_ref() == Some(value)
    }));
    if let Some(steps) = filter.count_steps() {
        let (mut counts, sections) = (CellCounts::default(), filter.container().sections);
        for (at, (section, step)) in sections.iter().zip(steps).enumerate().filter(|(_, (_, step))| *step > 0) {
            let words = section.bytes.len().div_ceil(8);
            (0..words).step_by(3 * step).for_each(|start| {
                filter.count_words(at, start..words.min(start + 3 * step), &mut counts);
            });
        }
        assert_eq!(filter.stats_of(&counts), stats);
    }
    assert!(filter.attributes().into_iter().all(|(name, value)| filter.attribute(name) == Some(value)));
    assert_eq!(filter.attribute("no attribute"), None);
}
