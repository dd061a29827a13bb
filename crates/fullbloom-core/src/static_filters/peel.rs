//! Solving by peeling: cells such that the xor of the K cells of each key is a value.
//!
//! A key that is alone in one of its cells can be solved last: that cell can make its xor right whatever the other
//! cells hold. Removing it leaves others alone, until no key is left; then cells are set in reverse. Success depends on
//! the number of cells, and little on chance: Majewski, Wormald, Havas, Czech, "A family of perfect hashing methods",
//! 1996.

use crate::cells::allocation::reserve;
use crate::cells::packed::PackedCells;
use crate::error::Result;
use crate::structure::records::Record;

/// The K cells of a hash; all different.
pub trait Geometry<const K: usize>: Copy + Send + Sync {
    /// Cells in all.
    fn cells(self) -> u64;
    /// The cells of a hash.
    fn places(self, hash: u64) -> [u64; K];
}

/// Memory of the solver besides the cells; reused for the next shard, as fresh pages cost 9 ns per key.
#[derive(Default)]
pub struct PeelBuffers<const W: usize> {
    /// For each cell the xor of its records, with their spread hashes: for a single record, the record itself.
    xors: Vec<Record<W>>,
    /// For each cell four times the number of its records, and in the lower bits the xor of which of their cells it is.
    counts: Vec<u8>,
    /// The cells that records had alone when they were removed, first to last; these records are still in them.
    order: Vec<u32>,
    /// Cells that became alone and were not processed yet.
    alone: Vec<u32>,
}

/// One more record in a cell's count.
const ONE: u8 = 4;

/// Replaces the contents of `vec` by `len` copies of `value`.
fn refill<T: Copy>(vec: &mut Vec<T>, len: usize, value: T) -> Result<()> {
    vec.clear();
    reserve(vec, len)?;
    vec.resize(len, value);
    Ok(())
}

/// Ensures at least `len` values.
fn grow<T: Copy>(vec: &mut Vec<T>, len: usize, value: T) -> Result<()> {
    reserve(vec, len.saturating_sub(vec.len()))?;
    vec.resize(len.max(vec.len()), value);
    Ok(())
}

impl<const W: usize> PeelBuffers<W> {
    /// Bytes for `records` records in `cells` cells.
    pub fn bytes(records: u64, cells: u64) -> u64 {
        let record = size_of::<Record<W>>() as u64;
        cells * (record + 1 + 4) + records * 4
    }

    /// Counts the records of each cell; false when one has more than can be counted.
    #[inline(never)]
    fn count<const K: usize, G: Geometry<K>>(
        &mut self,
        geometry: G,
        pieces: &[&[Record<W>]],
        spread: impl Fn(u64) -> u64,
    ) -> Result<bool> {
        let cells = geometry.cells() as usize;
        refill(&mut self.xors, cells, [0; W])?;
        refill(&mut self.counts, cells, 0)?;
        let (xors, counts, mut sound) = (&mut self.xors[..cells], &mut self.counts[..cells], true);
        for record in pieces.iter().copied().flatten() {
            let mut record = *record;
            record[0] = spread(record[0]);
            for (which, place) in geometry.places(record[0]).into_iter().enumerate() {
                let place = place as usize;
                xor(&mut xors[place], &record);
                let count = counts[place].wrapping_add(ONE) ^ which as u8;
                counts[place] = count;
                sound &= count >= ONE;
            }
        }
        Ok(sound)
    }

    /// Removes records that are alone until none is; returns how many.
    #[inline(never)]
    fn take<const K: usize, G: Geometry<K>>(&mut self, geometry: G, records: usize) -> Result<usize> {
        let cells = geometry.cells() as usize;
        // Neither needs to be empty, as only written entries are read.
        grow(&mut self.order, records, 0)?;
        grow(&mut self.alone, cells + K, 0)?;
        let (xors, counts, alone) = (&mut self.xors[..cells], &mut self.counts[..cells], &mut self.alone[..]);
        let order = &mut self.order[..records];
        // Whether a cell is alone is unpredictable: no branches.
        let mut waiting = 0;
        for (cell, count) in (0..).zip(&*counts) {
            alone[waiting] = cell;
            waiting += usize::from(count / ONE == 1);
        }
        let mut taken = 0;
        // From the last cell down: cells that become alone are near, and processed while they are in the cache.
        while waiting > 0 {
            waiting -= 1;
            let cell = alone[waiting] as usize;
            let (record, count) = (xors[cell], counts[cell]);
            if count / ONE != 1 {
                continue;
            }
            order[taken] = cell as u32;
            taken += 1;
            // Of no record any more; which of its cells it was stays.
            counts[cell] = count - ONE;
            let (places, mine) = (geometry.places(record[0]), usize::from(count % ONE));
            // The others, in order.
            for i in 0..K - 1 {
                let (which, place) = if mine <= i { (i + 1, places[i + 1]) } else { (i, places[i]) };
                let at = place as usize;
                xor(&mut xors[at], &record);
                let count = counts[at].wrapping_sub(ONE) ^ which as u8;
                counts[at] = count;
                alone[waiting] = place as u32;
                waiting += usize::from(count / ONE == 1);
            }
        }
        Ok(taken)
    }

    /// Sets cells, last first.
    #[inline(always)]
    fn set<const K: usize, G: Geometry<K>>(
        &self,
        geometry: G,
        records: usize,
        value: impl Fn(&Record<W>, usize) -> u64,
        (cells, words): (PackedCells, &mut [u64]),
    ) {
        for &cell in self.order[..records].iter().rev() {
            let (record, own) = (&self.xors[cell as usize], usize::from(self.counts[cell as usize]));
            let places = geometry.places(record[0]);
            let wanted = places.into_iter().fold(value(record, own), |xor, at| xor ^ cells.get(words, at));
            cells.set(words, cell.into(), wanted & cells.max());
        }
    }
}

/// `into` xor `record`.
#[inline(always)]
fn xor<const W: usize>(into: &mut Record<W>, record: &Record<W>) {
    for (into, word) in into.iter_mut().zip(record) {
        *into ^= word;
    }
}

/// Sets the cells of `words`, all 0, so that the xor of the cells of each record is `value(record, own)`, where the
/// record's first word is changed by the rule `spread`, and `own` is the one of its cells that no other record has for
/// its own. The order of records and their division into pieces do not change the cells. False if this rule cannot
/// solve them, as with a repeated record.
pub fn solve<const K: usize, const W: usize, G: Geometry<K>>(
    geometry: G,
    pieces: &[&[Record<W>]],
    spread: impl Fn(u64) -> u64,
    value: impl Fn(&Record<W>, usize) -> u64,
    (cells, words): (PackedCells, &mut [u64]),
    room: &mut PeelBuffers<W>,
) -> Result<bool> {
    let records = pieces.iter().map(|piece| piece.len()).sum();
    if !room.count(geometry, pieces, &spread)? || room.take(geometry, records)? < records {
        return Ok(false);
    }
    // With bytes, whose width the compiler then knows, half of the instructions are enough.
    match PackedCells::new(8) {
        Some(bytes) if cells == bytes => room.set(geometry, records, value, (bytes, words)),
        _ => room.set(geometry, records, value, (cells, words)),
    }
    Ok(true)
}
