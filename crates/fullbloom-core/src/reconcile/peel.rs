//! Peeling: a cell with a single key reveals it; removing the key from its other cells leaves more such cells.
//!
//! Eppstein, Goodrich, Uyeda and Varghese, "What's the difference?", SIGCOMM 2011. Cells are a sum of keys, so that the
//! nonsense of a peer or a file can look like keys. Then a key that was never added comes out: it is dropped if it
//! comes out again with the other sign, and at most as many keys come out as there are cells.

use std::collections::BTreeMap;

use super::cell::{Cell, check};
use crate::hash::splitmix;
use crate::scheme::fastrange;

/// Cells of a key, one in each sub-table. More need fewer small tables, fewer (3) 6 % less cells from 10,000 keys on, but
/// two of a hundred keys then share all their cells too often.
pub const PROBES: usize = 4;

/// The decoded keys: ascending hashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecodedKeys {
    /// Keys that were added more often than removed.
    pub mine: Vec<u64>,
    /// Keys that were removed more often than added.
    pub theirs: Vec<u64>,
    /// True if no cell is left, so that these are all.
    pub complete: bool,
}

/// The cells of a key, in a table of 4 times `each`.
#[inline(always)]
pub fn places(hash: u64, each: u64) -> [usize; PROBES] {
    std::array::from_fn(|i| (i as u64 * each + fastrange(splitmix::at(hash, i as u64), each)) as usize)
}

/// Removes all keys that can be decoded; `cells` are 4 sub-tables, and keep the rest.
pub fn peel(cells: &mut [Cell]) -> DecodedKeys {
    let each = (cells.len() / PROBES) as u64;
    let mut ready: Vec<usize> = (0..cells.len()).filter(|&i| cells[i].is_pure()).collect();
    let (mut net, mut taken) = (BTreeMap::<u64, i64>::new(), 0);
    while let Some(at) = ready.pop() {
        let Cell { count, key, .. } = cells[at];
        let places = places(key, each);
        // A cell that only looks like one key mostly belongs elsewhere.
        if !cells[at].is_pure() || !places.contains(&at) {
            continue;
        }
        taken += 1;
        if taken > cells.len() {
            break;
        }
        *net.entry(key).or_default() += count;
        for place in places {
            cells[place].put(key, check(key), -count);
            if cells[place].is_pure() {
                ready.push(place);
            }
        }
    }
    let of = |sign: i64| net.iter().filter(|(_, times)| **times == sign).map(|(&key, _)| key).collect();
    let once = net.values().all(|times| times.abs() <= 1);
    DecodedKeys { mine: of(1), theirs: of(-1), complete: once && cells.iter().all(|cell| cell.is_empty()) }
}
