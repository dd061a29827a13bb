//! Peeling: a cell that holds one key gives it; taken out of its other cells, it leaves more of such.
//!
//! Eppstein, Goodrich, Uyeda and Varghese, "What's the difference?", SIGCOMM 2011. Cells are a sum of keys, so that what
//! a peer or a file made of nonsense holds can look as if it held keys. Then a key comes out that was never in: it is
//! taken back when it comes out again with the other sign, and no more keys come out than there are cells.

use std::collections::BTreeMap;

use super::cell::{Cell, check};
use crate::hash::splitmix;
use crate::scheme::fastrange;

/// Cells of a key, one in each sub-table. More need fewer small tables, fewer (3) 6 % less cells from 10,000 keys on, but
/// two of a hundred keys then share all their cells too often.
pub const PROBES: usize = 4;

/// What came out: ascending hashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// Keys that were added more often than taken out.
    pub mine: Vec<u64>,
    /// Keys that were taken out more often.
    pub theirs: Vec<u64>,
    /// True when nothing is left: these are all.
    pub complete: bool,
}

/// The cells of a key, in a table of 4 times `each`.
#[inline(always)]
pub fn places(hash: u64, each: u64) -> [usize; PROBES] {
    std::array::from_fn(|i| (i as u64 * each + fastrange(splitmix::at(hash, i as u64), each)) as usize)
}

/// Takes all keys out that come out; `cells` are 4 sub-tables, and hold what is left.
pub fn peel(cells: &mut [Cell]) -> Decoded {
    let each = (cells.len() / PROBES) as u64;
    let mut ready: Vec<usize> = (0..cells.len()).filter(|&i| cells[i].is_pure()).collect();
    let (mut net, mut taken) = (BTreeMap::<u64, i64>::new(), 0);
    while let Some(at) = ready.pop() {
        let Cell { count, key, .. } = cells[at];
        let places = places(key, each);
        // What only looks like one key mostly belongs elsewhere.
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
    Decoded { mine: of(1), theirs: of(-1), complete: once && cells.iter().all(|cell| cell.is_empty()) }
}
