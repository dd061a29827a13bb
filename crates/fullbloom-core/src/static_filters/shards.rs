//! Shards: the parts of a static structure, solved independently on any number of threads.
//!
//! A shard has the keys whose hashes begin with its number. A table has four words per shard for lookups: the first word
//! of its cells, two numbers of its geometry, and the attempt that solved it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::peel::{self, Geometry, PeelBuffers};
use crate::cells::allocation::reserve;
use crate::cells::packed::PackedCells;
use crate::cells::{LINE_WORDS, Memory};
use crate::error::{Error, Result};
use crate::hash::splitmix;
use crate::parallel::workers;
use crate::structure::Job;
use crate::structure::records::{BUCKET_BITS, Lot, Record, lot};

/// Keys of a shard, at most twice as many: its 20 MB of work fit the last-level cache (10 million keys in a binary fuse
/// filter: 35 ns per key; one shard took 88, in a xor filter 338).
const KEYS_A_SHARD: u64 = 1 << 20;

/// Words of the table that a shard has.
pub const ROW: usize = 4;

/// Attempts before the hashes count as not random.
const ATTEMPTS: u64 = 100;

/// Spreads products over the lower bits: 2^64 over the golden ratio, odd.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Bits of a hash that the first attempt leaves in order.
const IN_ORDER: u32 = 24;

/// How many bits of the hash choose the shard of `keys` keys.
pub fn bits_for(keys: u64) -> u32 {
    (keys / KEYS_A_SHARD).max(1).ilog2().min(BUCKET_BITS)
}

/// The number of the shard of a hash.
#[inline(always)]
pub fn shard_of(hash: u64, bits: u32) -> usize {
    (hash >> 1 >> (63 - bits)) as usize
}

/// The hash as a shard uses it: the first attempt leaves keys in order, so that neighbours in memory are processed one
/// after the other; later ones mix all bits.
#[inline(always)]
pub fn spread(hash: u64, bits: u32, attempt: u64) -> u64 {
    if attempt == 0 {
        let high = (hash << bits) & (u64::MAX << (64 - IN_ORDER));
        return high | hash.wrapping_mul(ODD) >> IN_ORDER;
    }
    splitmix::mix(hash.wrapping_add(attempt.wrapping_mul(ODD)))
}

/// The geometry of a shard as two words.
pub trait Shape<const K: usize>: Geometry<K> {
    /// For `keys` keys, at least one.
    fn for_keys(keys: u64) -> Self;
    /// The words.
    fn words(self) -> [u64; 2];
    /// From words of a file; `None` for those that no geometry has.
    fn from_words(words: [u64; 2]) -> Option<Self>;
    /// Of words that [`Shape::checked`] took.
    fn of(words: [u64; 2]) -> Self;
}

/// Cells and table of a structure.
pub struct CellsAndTable {
    /// The cells of all shards, joined.
    pub cells: Memory,
    /// Their table.
    pub table: Memory,
    /// The number of shards is 2^bits.
    pub bits: u32,
    /// Distinct keys.
    pub keys: u64,
}

/// Words of cells for `keys` keys.
fn words_of<const K: usize, S: Shape<K>>(keys: u64, cells: PackedCells) -> u64 {
    if keys == 0 { 0 } else { cells.words(S::for_keys(keys).cells()).unwrap_or(u64::MAX >> 8) }
}

/// Bytes of cells of a structure for `keys` keys whose hashes are spread evenly.
pub fn cell_bytes<const K: usize, S: Shape<K>>(keys: u64, cells: PackedCells) -> u64 {
    let bits = bits_for(keys);
    let words = words_of::<K, S>(keys.div_ceil(1 << bits), cells) << bits;
    (words + 1).next_multiple_of(LINE_WORDS as u64).saturating_mul(8)
}

/// Bytes for solving a shard besides its cells; records are copied if they are in a file, or to look for repeated ones.
fn work_bytes<const K: usize, const W: usize, S: Shape<K>>(keys: u64, copied: bool) -> u64 {
    u64::from(copied) * keys * 8 * W as u64 + PeelBuffers::<W>::bytes(keys, S::for_keys(keys).cells())
}

/// Refuses work that does not fit into the memory that was granted.
fn check_granted<const K: usize, const W: usize, S: Shape<K>>(
    lot: &Lot<W>,
    bits: u32,
    words: u64,
    threads: usize,
) -> Result<()> {
    let largest = (0..1 << bits).map(|shard| lot.count(bits, shard)).max().unwrap_or(0);
    let copied = lot.is_spilled() || !lot.is_sorted();
    let needed = words.saturating_mul(8).saturating_add(work_bytes::<K, W, S>(largest, copied) * threads as u64);
    match lot.memory_limit() {
        Some(granted) if granted < needed => Err(Error::Memory(format!(
            "{} keys need {needed} bytes of memory on {threads} threads, got memory={granted}; raise it, or use fewer threads",
            lot.len()
        ))),
        _ => Ok(()),
    }
}

/// Memory that a thread reuses for the next shard.
struct Work<const W: usize> {
    read: Vec<Record<W>>,
    room: PeelBuffers<W>,
}

/// Builds the cells and the table: the xor of the cells of each record will be `value(record, own)`, see
/// [`peel::solve`]. `None` if records are not sorted and one is repeated, or there may be too many of them.
pub fn build<const K: usize, const W: usize, S: Shape<K>>(
    lot: &Lot<W>,
    cells: PackedCells,
    job: &Job<'_>,
    value: impl Fn(&Record<W>, usize) -> u64 + Sync,
) -> Result<Option<CellsAndTable>> {
    let bits = bits_for(lot.len());
    let shards: Vec<u64> = (0..1 << bits).map(|shard| lot.count(bits, shard)).collect();
    let sizes: Vec<u64> = shards.iter().map(|&keys| words_of::<K, S>(keys, cells)).collect();
    let total: u64 = sizes.iter().sum();
    if let Err(error) = check_granted::<K, W, S>(lot, bits, total, job.threads().min(shards.len())) {
        return if lot.is_sorted() { Err(error) } else { Ok(None) };
    }
    // One word more: a cell is read together with the next word.
    let (mut memory, mut table) = (Memory::zeroed(total + 1)?, Memory::zeroed((shards.len() * ROW) as u64)?);
    let (mut rest, mut first, mut parts) = (memory.writable()?, 0, Vec::new());
    for ((shard, row), &size) in table.writable()?.chunks_mut(ROW).take(shards.len()).enumerate().zip(&sizes) {
        row[0] = u64::to_le(first);
        first += size;
        let (words, behind) = rest.split_at_mut(size as usize);
        rest = behind;
        parts.push((shard, row, words));
    }
    let (works, repeated) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    job.run(parts.into_iter(), |(shard, row, words)| {
        if lot.count(bits, shard) == 0 || repeated.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut work =
            workers::lock(&works).pop().unwrap_or_else(|| Work { read: Vec::new(), room: PeelBuffers::default() });
        let pieces = lot.pieces(bits, shard, &mut work.read)?;
        let solved =
            solve_shard::<K, W, S>(&pieces, (bits, lot.is_sorted()), cells, (row, words), &value, &mut work.room)?;
        repeated.fetch_or(!solved, Ordering::Relaxed);
        workers::lock(&works).push(work);
        Ok(())
    })?;
    Ok((!repeated.into_inner()).then_some(CellsAndTable { cells: memory, table, bits, keys: lot.len() }))
}

/// Solves one shard and writes the rest of its row; false if a hash is repeated.
fn solve_shard<const K: usize, const W: usize, S: Shape<K>>(
    pieces: &[&[Record<W>]],
    (bits, sorted): (u32, bool),
    cells: PackedCells,
    (row, words): (&mut [u64], &mut [u64]),
    value: impl Fn(&Record<W>, usize) -> u64,
    room: &mut PeelBuffers<W>,
) -> Result<bool> {
    let shape = S::for_keys(pieces.iter().map(|piece| piece.len() as u64).sum());
    for attempt in 0..ATTEMPTS {
        let into = (cells, &mut *words);
        let solved = match attempt {
            0 => peel::solve(shape, pieces, |hash| spread(hash, bits, 0), &value, into, room)?,
            _ => peel::solve(shape, pieces, |hash| spread(hash, bits, attempt), &value, into, room)?,
        };
        if solved {
            let [a, b] = shape.words();
            row[1..].copy_from_slice(&[a, b, attempt].map(u64::to_le));
            return Ok(true);
        }
        if !sorted && attempt == 0 && lot::repeats(&mut join(pieces)?) {
            return Ok(false);
        }
    }
    Err(Error::parameter(
        "the keys could not be placed in 100 attempts, which hashes of keys always can: ready hashes must be those of hash_many()",
    ))
}

/// The records of all pieces.
fn join<const W: usize>(pieces: &[&[Record<W>]]) -> Result<Vec<Record<W>>> {
    let mut all = Vec::new();
    reserve(&mut all, pieces.iter().map(|piece| piece.len()).sum())?;
    pieces.iter().for_each(|piece| all.extend_from_slice(piece));
    Ok(all)
}

/// A row of the table: first word, geometry, attempt.
#[inline(always)]
pub fn row(table: &[u64], shard: usize) -> [u64; ROW] {
    let row = table[shard * ROW..].first_chunk::<ROW>().copied().unwrap_or_default();
    row.map(u64::from_le)
}

/// Words and number of the cells that a table describes, shard after shard; refuses one that does not.
pub fn check_table<const K: usize, S: Shape<K>>(table: &[u64], bits: u32, cells: PackedCells) -> Result<(u64, u64)> {
    let wrong = |what: String| Error::Format(format!("the file's table of shards {what}; it is damaged"));
    let (mut words, mut number) = (0u64, 0u64);
    for shard in 0..1usize << bits {
        let [start, a, b, attempt] = row(table, shard);
        if start != words || attempt >= ATTEMPTS {
            return Err(wrong(format!("does not say where shard {shard} lies")));
        }
        if [a, b, attempt] == [0; 3] {
            continue;
        }
        let shape = S::from_words([a, b]).ok_or_else(|| wrong(format!("gives shard {shard} an impossible shape")))?;
        words = words.saturating_add(cells.words(shape.cells()).unwrap_or(u64::MAX >> 8));
        number = number.saturating_add(shape.cells());
    }
    if table.iter().skip(ROW << bits).any(|&word| word != 0) {
        return Err(wrong("has too many rows".into()));
    }
    // One word more: a cell is read together with the next word.
    Ok((words.saturating_add(1), number))
}

/// Words of the table of 2^bits shards.
pub fn table_words(bits: u32) -> Result<u64> {
    if bits > BUCKET_BITS {
        return Err(Error::Format(format!(
            "the file has 2^{bits} shards, at most 2^{BUCKET_BITS} are possible; it is damaged"
        )));
    }
    Ok((ROW << bits) as u64)
}
