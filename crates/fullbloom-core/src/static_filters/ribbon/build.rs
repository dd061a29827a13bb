//! A shard of ribbons, and all shards: two that pass on keys that do not fit, and a last one that holds all.

use std::sync::Mutex;

use super::band;
use super::layer::{Columns, Layer, position};
use crate::cells::allocation::{reserve, zeroed};
use crate::cells::{LINE_WORDS, Memory};
use crate::error::{Error, Result};
use crate::parallel::workers::lock;
use crate::sizing::ribbon::{MOST_IN_LAST, PASSED_ON, last_blocks, passing_blocks};
use crate::static_filters::shards::{CellsAndTable, bits_for};
use crate::structure::Job;
use crate::structure::records::{Record, SortedRecords};

/// Words of the table that a shard has: first word and blocks of each ribbon, the attempt of the last, nothing.
pub const ROW: usize = 8;

/// Ribbons of a shard.
pub const LAYERS: usize = 3;

/// Attempts before the hashes count as not random.
pub const ATTEMPTS: u64 = 100;

/// The words of a solved shard and its row, the first words counted from its own.
struct ShardCells {
    words: Vec<u64>,
    row: [u64; ROW],
}

/// Expected blocks of the three ribbons for `keys` keys.
fn expect_layers(keys: u64) -> [Layer; LAYERS] {
    let (mut left, mut layers) = (keys, [Layer { first: 0, blocks: 0, passes: false }; LAYERS]);
    for layer in &mut layers[..LAYERS - 1] {
        if left > MOST_IN_LAST {
            *layer = Layer { first: 0, blocks: passing_blocks(left), passes: true };
            left = (left as f64 * PASSED_ON).ceil() as u64;
        }
    }
    layers[LAYERS - 1].blocks = last_blocks(left, 0);
    layers
}

/// Bytes of cells and table for `keys` keys whose hashes are spread evenly.
pub fn bytes(keys: u64, columns: Columns) -> u64 {
    let bits = bits_for(keys);
    let shard = expect_layers(keys.div_ceil(1 << bits))
        .iter()
        .fold(0, |sum: u64, layer| sum.saturating_add(layer.words(columns)));
    let cells = shard.saturating_mul(1 << bits).saturating_add(slack(columns)).next_multiple_of(LINE_WORDS as u64);
    cells.saturating_add((ROW as u64) << bits).saturating_mul(8)
}

/// Words after the last: lookups read one column more than a block may have, in two blocks.
pub fn slack(columns: Columns) -> u64 {
    u64::from(columns.low) + 2
}

/// Refuses work that does not fit into the memory that was granted.
fn check_granted(keys: &SortedRecords<1>, bits: u32, columns: Columns, threads: usize) -> Result<()> {
    let largest = (0..1 << bits).map(|shard| keys.count(bits, shard)).max().unwrap_or(0);
    // All cells twice, in shards and joined; keys twice, equations, and the keys that a shard passes on.
    let needed = bytes(keys.len(), columns).saturating_mul(2).saturating_add(32 * largest * threads as u64);
    match keys.memory_limit() {
        Some(granted) if granted < needed => Err(Error::Memory(format!(
            "{} keys need {needed} bytes of memory on {threads} threads, got memory={granted}; raise it, or use fewer threads",
            keys.len()
        ))),
        _ => Ok(()),
    }
}

/// Solves all shards.
pub fn build(keys: &SortedRecords<1>, columns: Columns, job: &Job<'_>) -> Result<CellsAndTable> {
    let bits = bits_for(keys.len());
    check_granted(keys, bits, columns, job.threads())?;
    let shards = 1usize << bits;
    let solved: Vec<Mutex<Option<ShardCells>>> = (0..shards).map(|_| Mutex::new(None)).collect();
    let rooms: Vec<_> = (0..job.threads()).map(|_| Mutex::new(Vec::new())).collect();
    job.run(solved.iter().enumerate(), |(shard, into)| {
        let mut own = Vec::new();
        let mut free = rooms.iter().find_map(|room| room.try_lock().ok());
        let records = free.as_deref_mut().unwrap_or(&mut own);
        keys.read(bits, shard, records)?;
        *lock(into) = Some(solve_shard(records, bits, columns)?);
        Ok(())
    })?;
    drop(rooms);
    let mut table = Memory::zeroed((ROW << bits) as u64)?;
    let words: u64 =
        solved.iter().filter_map(|shard| lock(shard).as_ref().map(|solved| solved.words.len() as u64)).sum();
    let mut cells = Memory::zeroed(words + slack(columns))?;
    let (mut rest, mut first) = (cells.writable()?, 0);
    for (row, shard) in table.writable()?.chunks_mut(ROW).zip(&solved) {
        let Some(ShardCells { words, row: own }) = lock(shard).take() else { continue };
        let (into, behind) = rest.split_at_mut(words.len());
        into.copy_from_slice(&words);
        rest = behind;
        for (i, (to, from)) in row.iter_mut().zip(own).enumerate() {
            *to = u64::to_le(if i < 2 * LAYERS && i % 2 == 0 { first + from } else { from });
        }
        first += words.len() as u64;
    }
    Ok(CellsAndTable { cells, table, bits, keys: keys.len() })
}

/// Solves one shard.
fn solve_shard(records: &[Record<1>], bits: u32, columns: Columns) -> Result<ShardCells> {
    let (mut words, mut row) = (Vec::new(), [0; ROW]);
    // Positions of the remaining keys, in order, with their hashes; the first ribbon reads the records themselves.
    let mut left: Option<Vec<(u64, u64)>> = None;
    for number in 0..LAYERS - 1 {
        let keys = left.as_ref().map_or(records.len(), Vec::len);
        row[2 * number] = words.len() as u64;
        if keys as u64 <= MOST_IN_LAST {
            continue;
        }
        let layer = Layer { first: 0, blocks: passing_blocks(keys as u64), passes: true };
        let start = words.len();
        grow(&mut words, layer.words(columns))?;
        let mut passed = Vec::new();
        let into = &mut words[start..];
        match &left {
            None => band::passing(layer, columns, |i| position(records[i][0], bits, 0), keys, into, &mut passed)?,
            Some(left) => band::passing(layer, columns, |i| left[i].0, keys, into, &mut passed)?,
        }
        row[2 * number + 1] = layer.blocks;
        let hash = |i: u32| left.as_ref().map_or_else(|| records[i as usize][0], |left| left[i as usize].1);
        let mut next = Vec::new();
        reserve(&mut next, passed.len())?;
        next.extend(passed.iter().map(|&i| (position(hash(i), bits, number as u64 + 1), hash(i))));
        next.sort_unstable();
        left = Some(next);
    }
    row[2 * LAYERS - 2] = words.len() as u64;
    let hashes: Vec<u64> = match left {
        None => records.iter().map(|record| record[0]).collect(),
        Some(left) => left.into_iter().map(|(_, hash)| hash).collect(),
    };
    if !hashes.is_empty() {
        let (blocks, attempt, solved) = last(&hashes, bits, columns)?;
        [row[2 * LAYERS - 1], row[2 * LAYERS]] = [blocks, attempt];
        reserve(&mut words, solved.len())?;
        words.extend(solved);
    }
    Ok(ShardCells { words, row })
}

/// Blocks, attempt and words of the last ribbon.
fn last(hashes: &[u64], bits: u32, columns: Columns) -> Result<(u64, u64, Vec<u64>)> {
    for attempt in 0..ATTEMPTS {
        let layer = Layer { first: 0, blocks: last_blocks(hashes.len() as u64, attempt), passes: false };
        let positions = hashes.iter().map(|&hash| position(hash, bits, LAYERS as u64 - 1 + attempt));
        let words = || zeroed(layer.words(columns) as usize);
        if let Some(words) = band::solve_all(layer, columns, positions, words)? {
            return Ok((layer.blocks, attempt, words));
        }
    }
    Err(Error::parameter(
        "the keys could not be placed in 100 attempts, which hashes of keys always can: ready hashes must be those of hash_many()",
    ))
}

/// Appends zeros.
fn grow(words: &mut Vec<u64>, more: u64) -> Result<()> {
    reserve(words, more as usize)?;
    words.resize(words.len() + more as usize, 0);
    Ok(())
}
