//! Solving by peeling, in the order of the program: the same keys give the cells of a binary fuse filter that it writes.
//!
//! A key that is alone in one of its cells is removed; that leaves others alone, until no key is left. Cells are set in
//! reverse, so that each key's own cell can still make its xor right.

use super::shape::{PLACES, Shape, fingerprint, hash};
use crate::cells::allocation::{reserve, zeroed};
use crate::error::{Error, Result};
use crate::hash::splitmix::SplitMix;

/// Attempts before it gives up, each with another seed.
const ATTEMPTS: usize = 100;
/// One more key in a cell's count; the bits below are the xor of which of their cells it is.
const ONE: u8 = 4;

/// Keys in the order in which they were removed.
pub(super) struct Solved {
    /// The seed that made it possible.
    pub(super) seed: u64,
    /// Each key's own cell.
    order: Vec<u32>,
    /// For each cell the hash of the key whose own it is.
    hashes: Vec<u64>,
    /// For each cell which of the three it is for that key.
    which: Vec<u8>,
}

/// Removes `keys`, all different, with the first seed of the generator that begins at `first` with which they can be.
pub(super) fn solve(shape: &Shape, first: u64, keys: &[u64]) -> Result<Solved> {
    let cells = usize::try_from(shape.num_cells()).map_err(|_| Error::parameter("too many keys"))?;
    let (mut hashes, mut which) = (zeroed::<u64>(cells)?, zeroed::<u8>(cells)?);
    let (mut alone, mut order) = (zeroed::<u32>(cells + PLACES)?, Vec::new());
    reserve(&mut order, keys.len())?;
    let mut seeds = SplitMix(first);
    for _ in 0..ATTEMPTS {
        let seed = seeds.next();
        if count(*shape, seed, keys, &mut hashes, &mut which) {
            remove(*shape, &mut hashes, &mut which, &mut alone, &mut order);
            if order.len() == keys.len() {
                return Ok(Solved { seed, order, hashes, which });
            }
        }
        order.clear();
        hashes.fill(0);
        which.fill(0);
    }
    Err(Error::parameter("these keys cannot be solved"))
}

/// Counts the keys of each cell; false when one has more than can be counted.
fn count(shape: Shape, seed: u64, keys: &[u64], hashes: &mut [u64], counts: &mut [u8]) -> bool {
    let mut sound = true;
    for &key in keys {
        let hash = hash(key, seed);
        for (which, place) in shape.places(hash).into_iter().enumerate() {
            hashes[place] ^= hash;
            counts[place] = counts[place].wrapping_add(ONE) ^ which as u8;
            sound &= counts[place] >= ONE;
        }
    }
    sound
}

/// Removes keys that are alone in a cell until none is.
fn remove(shape: Shape, hashes: &mut [u64], counts: &mut [u8], alone: &mut [u32], order: &mut Vec<u32>) {
    let mut waiting = 0;
    for (cell, count) in (0..).zip(&*counts) {
        alone[waiting] = cell;
        waiting += usize::from(count / ONE == 1);
    }
    while waiting > 0 {
        waiting -= 1;
        let cell = alone[waiting] as usize;
        if counts[cell] / ONE != 1 {
            continue;
        }
        let (hash, mine) = (hashes[cell], usize::from(counts[cell] % ONE));
        counts[cell] -= ONE;
        order.push(cell as u32);
        let places = shape.places(hash);
        for which in [(mine + 1) % PLACES, (mine + 2) % PLACES] {
            let place = places[which];
            hashes[place] ^= hash;
            counts[place] = counts[place].wrapping_sub(ONE) ^ which as u8;
            alone[waiting] = place as u32;
            waiting += usize::from(counts[place] / ONE == 1);
        }
    }
}

impl Solved {
    /// Sets `cells`, all 0, through `get` and `set`.
    #[inline(always)]
    pub(super) fn write<C: ?Sized>(
        &self,
        shape: &Shape,
        cells: &mut C,
        get: impl Fn(&C, usize) -> u16,
        set: impl Fn(&mut C, usize, u16),
    ) {
        for &cell in self.order.iter().rev() {
            let (cell, hash) = (cell as usize, self.hashes[cell as usize]);
            let (places, mine) = (shape.places(hash), usize::from(self.which[cell]));
            let others = get(cells, places[(mine + 1) % PLACES]) ^ get(cells, places[(mine + 2) % PLACES]);
            set(cells, cell, fingerprint(hash) ^ others);
        }
    }
}
