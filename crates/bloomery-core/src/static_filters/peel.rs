//! Solving by peeling: cells such that the xor of the K cells of each key is a value.
//!
//! A key that is alone in one of its cells can be dealt with last: whatever the other cells hold, that one makes it
//! right. It is taken away, which leaves others alone, until no key is left; then cells are set in reverse. Whether
//! that ends well depends on how many cells there are, and little on luck: Majewski, Wormald, Havas, Czech, "A family
//! of perfect hashing methods", 1996.

use crate::cells::allocation::zeroed;
use crate::cells::packed::Packed;
use crate::error::Result;
use crate::structure::records::Record;

/// Where the K cells of a hash lie; all different.
pub trait Geometry<const K: usize>: Copy + Send + Sync {
    /// Cells in all.
    fn cells(self) -> u64;
    /// The cells of a hash.
    fn places(self, hash: u64) -> [u64; K];
}

/// One more key in the upper half of a cell's state; the lower half is the xor of the keys' numbers.
const ONE: u64 = 1 << 32;

/// The order in which cells are to be set, last first: key and cell. `None` when keys are left that are nowhere alone.
fn order<const K: usize, const W: usize, G: Geometry<K>>(
    geometry: G,
    records: &[Record<W>],
    spread: impl Fn(u64) -> u64,
) -> Result<Option<Vec<(u32, u32)>>> {
    let mut state = zeroed::<u64>(geometry.cells() as usize)?;
    for (i, record) in records.iter().enumerate() {
        for place in geometry.places(spread(record[0])) {
            let cell = &mut state[place as usize];
            *cell = (*cell ^ i as u64).wrapping_add(ONE);
        }
    }
    let mut order = zeroed::<(u32, u32)>(records.len())?;
    let mut alone: Vec<u32> = Vec::new();
    crate::cells::allocation::reserve(&mut alone, records.len())?;
    let mut taken = 0;
    // From the last cell down: what becomes alone lies near, and is dealt with while it is in the cache.
    for first in (0..state.len()).rev() {
        if state[first] >> 32 != 1 {
            continue;
        }
        alone.push(first as u32);
        while let Some(cell) = alone.pop() {
            if state[cell as usize] >> 32 != 1 {
                continue;
            }
            let key = state[cell as usize] as u32;
            let Some(slot) = order.get_mut(taken) else { return Ok(None) };
            *slot = (key, cell);
            taken += 1;
            for place in geometry.places(spread(records[key as usize][0])) {
                let other = &mut state[place as usize];
                *other = (*other ^ u64::from(key)).wrapping_sub(ONE);
                if *other >> 32 == 1 {
                    alone.push(place as u32);
                }
            }
        }
    }
    Ok((taken == records.len()).then_some(order))
}

/// Sets the cells of `words`, all 0, so that the xor of the cells of each record is `value(record, hash, own)`, `spread`
/// being the rule from the record's first word to that hash, and `own` the one of its cells that no other record has for
/// its own. False when this cannot be done with this rule.
pub fn solve<const K: usize, const W: usize, G: Geometry<K>>(
    geometry: G,
    records: &[Record<W>],
    spread: impl Fn(u64) -> u64,
    value: impl Fn(&Record<W>, u64, usize) -> u64,
    cells: Packed,
    words: &mut [u64],
) -> Result<bool> {
    let Some(order) = order(geometry, records, &spread)? else { return Ok(false) };
    for (key, cell) in order.into_iter().rev() {
        let record = &records[key as usize];
        let hash = spread(record[0]);
        let places = geometry.places(hash);
        let own = places.iter().position(|&at| at == u64::from(cell)).unwrap_or_default();
        let wanted = places.into_iter().fold(value(record, hash, own), |xor, at| xor ^ cells.get(words, at));
        cells.set(words, cell.into(), wanted & cells.max());
    }
    Ok(true)
}
