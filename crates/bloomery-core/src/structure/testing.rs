//! What tests of several families use.

use super::Loadable;
use crate::cells::Memory;

/// A well-mixed hash of a counter.
pub(crate) fn hash(i: u64) -> u64 {
    crate::hash::splitmix::at(0, i)
}

/// The structure as it comes back from its file of one section.
pub(crate) fn reload<F: Loadable>(filter: &F) -> F {
    let container = filter.container();
    let mut memory = |_: u32, _: u32, words: u64| {
        let mut memory = Memory::zeroed(words)?;
        memory.copy_from_bytes(container.sections[0].bytes)?;
        Ok(memory)
    };
    F::load(&container.header, &mut memory, None).unwrap()
}
