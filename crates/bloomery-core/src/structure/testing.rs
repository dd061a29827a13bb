//! What tests of several families use.

use super::Loadable;
use crate::cells::Memory;
use crate::container::{Parsed, Verify};

/// A well-mixed hash of a counter.
pub(crate) fn hash(i: u64) -> u64 {
    crate::hash::splitmix::at(0, i)
}

/// The structure as it comes back from its file.
pub(crate) fn reload<F: Loadable>(filter: &F) -> F {
    let mut bytes = Vec::new();
    filter.container().write_to(&mut bytes).unwrap();
    let parsed = Parsed::new(&bytes, Verify::Full).unwrap();
    let mut memory = |kind, index, words| {
        let span = parsed.section(kind, index)?;
        let mut memory = Memory::zeroed(words)?;
        memory.copy_from_bytes(&bytes[span.offset..span.offset + span.len])?;
        Ok(memory)
    };
    F::load(&parsed.header, *filter.hasher(), &mut memory).unwrap()
}
