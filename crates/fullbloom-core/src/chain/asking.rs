//! A batch of keys, stage by stage: each stage is asked about the keys that no stage before it answered for.

use crate::error::Result;
use crate::structure::Filter;
use crate::structure::batch::CHUNK;

/// Asks one stage after the other about those of `hashes` (at most [`CHUNK`]) for which none has said
/// 1 yet; `found` gets what was said.
pub(super) fn ask_in_turn<S>(
    stages: impl Iterator<Item = S>,
    hashes: &[u64],
    found: &mut [u8],
    mut ask: impl FnMut(S, &[u64], &mut [u8]) -> Result<()>,
) -> Result<()> {
    let (mut left, mut places, mut said) = ([0u64; CHUNK], [0u16; CHUNK], [0u8; CHUNK]);
    let mut count = hashes.len();
    left[..count].copy_from_slice(hashes);
    places.iter_mut().zip(0..).for_each(|(place, i)| *place = i);
    found.fill(0);
    for stage in stages {
        if count == 0 {
            break;
        }
        ask(stage, &left[..count], &mut said[..count])?;
        let mut kept = 0;
        for i in 0..count {
            found[usize::from(places[i])] = said[i];
            (left[kept], places[kept]) = (left[i], places[i]);
            kept += usize::from(said[i] == 0);
        }
        count = kept;
    }
    Ok(())
}

/// A batch look-up in one stage.
pub(super) fn look(stage: &impl Filter, hashes: &[u64], found: &mut [u8]) -> Result<()> {
    stage.contains_hashes(hashes, found);
    Ok(())
}
