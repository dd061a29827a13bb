//! What tests of several families use.

use super::Loadable;
use crate::cells::Memory;
use crate::container::{Container, Header};
use crate::error::{Error, Result};

/// A well-mixed hash of a counter.
pub(crate) fn hash(i: u64) -> u64 {
    crate::hash::splitmix::at(0, i)
}

/// The structure as it comes back from its file.
pub(crate) fn reload<F: Loadable>(filter: &F) -> F {
    reload_changed(filter, |_, _| {}).unwrap()
}

/// The same with `change` made to the header and to the bytes of each section.
pub(crate) fn reload_changed<F: Loadable>(
    filter: &F,
    change: impl FnOnce(&mut Header, &mut Vec<Vec<u8>>),
) -> Result<F> {
    let Container { mut header, sections } = filter.container();
    let mut cells: Vec<_> = sections.iter().map(|section| section.bytes.to_vec()).collect();
    change(&mut header, &mut cells);
    let mut memory = |kind, index, words: u64| {
        let at = sections.iter().position(|section| (section.kind, section.index) == (kind, index));
        let bytes = at.and_then(|at| cells.get(at)).ok_or_else(|| Error::format("section"))?;
        // Memory comes in lines.
        if words.div_ceil(8) * 64 != bytes.len() as u64 {
            return Err(Error::format("length"));
        }
        let mut memory = Memory::zeroed(words)?;
        memory.copy_from_bytes(bytes)?;
        Ok(memory)
    };
    F::load(&header, *filter.hasher(), &mut memory)
}
