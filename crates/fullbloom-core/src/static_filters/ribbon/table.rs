//! [`View`]: cells and the table of shards, for lookups; and the checks of a file's table.

use super::build::{ATTEMPTS, LAYERS, ROW, slack};
use super::layer::{Columns, Layer, position};
use crate::error::{Error, Result};
use crate::isa::prefetch;
use crate::scheme::ahead::answer_ahead;
use crate::sizing::ribbon::{WIDTH, rate};
use crate::static_filters::shards::shard_of;
use crate::structure::records::BUCKET_BITS;

/// Keys fetched ahead: two or three lines each.
pub const AHEAD: usize = 16;

/// Cells and table.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// Words of the table.
    pub table: &'a [u64],
    /// Words of the cells.
    pub cells: &'a [u64],
    /// Columns of the blocks.
    pub columns: Columns,
    /// Shards are 2^bits.
    pub bits: u32,
}

/// A row of the table.
#[inline(always)]
pub fn row(table: &[u64], shard: usize) -> [u64; ROW] {
    let row = table[shard * ROW..].first_chunk::<ROW>().copied().unwrap_or_default();
    row.map(u64::from_le)
}

/// Ribbon `number` of a row.
#[inline(always)]
pub fn layer(row: &[u64; ROW], number: usize) -> Layer {
    Layer { first: row[2 * number], blocks: row[2 * number + 1], passes: number + 1 < LAYERS }
}

impl View<'_> {
    /// Whether the parities of a hash are its result bits.
    #[inline(always)]
    pub fn look(self, hash: u64) -> bool {
        let row = row(self.table, shard_of(hash, self.bits));
        let first = layer(&row, 0);
        if first.blocks > 0
            && let Some(found) = first.look(self.cells, self.columns, position(hash, self.bits, 0))
        {
            return found;
        }
        self.look_behind(&row, hash)
    }

    /// The same in the ribbons after the first.
    fn look_behind(self, row: &[u64; ROW], hash: u64) -> bool {
        (1..LAYERS).find_map(|number| {
            let layer = layer(row, number);
            let attempt = if layer.passes { 0 } else { row[2 * LAYERS] };
            let position = position(hash, self.bits, number as u64 + attempt);
            if layer.blocks > 0 { layer.look(self.cells, self.columns, position) } else { None }
        }) == Some(true)
    }

    /// Prefetches the memory of a hash.
    #[inline(always)]
    pub fn fetch(self, hash: u64) {
        let row = row(self.table, shard_of(hash, self.bits));
        let first = layer(&row, 0);
        if first.blocks > 0 {
            let (from, to) = first.span(self.columns, position(hash, self.bits, 0));
            for word in (from..to).step_by(8).chain([to - 1]) {
                prefetch(self.cells.as_ptr().wrapping_add(word as usize));
            }
        }
    }

    /// One answer a hash.
    pub fn look_all(self, hashes: &[u64], found: &mut [u8]) {
        answer_ahead(AHEAD, hashes, found, |hash| self.fetch(hash), |hash| u8::from(self.look(hash)));
    }

    fn rows(self) -> impl Iterator<Item = [u64; ROW]> {
        (0..1usize << self.bits).map(move |shard| row(self.table, shard))
    }

    /// Slots of all ribbons.
    pub fn slots(self) -> u64 {
        let blocks = self.rows().flat_map(|row| (0..LAYERS).map(move |number| layer(&row, number).blocks));
        blocks.filter(|&blocks| blocks > 0).fold(0, |sum: u64, blocks| sum.saturating_add((blocks + 1) * WIDTH))
    }

    /// The rate: for each shard that of its first ribbon, and, for the share of keys that are passed on, that of the
    /// others.
    pub fn rate(self) -> f64 {
        let rate_of = |layer: Layer| match layer.blocks {
            0 => (0.0, 1.0),
            blocks => (
                rate(self.columns.low, layer.split(self.columns) as f64 / blocks as f64),
                layer.estimate_passed(self.cells),
            ),
        };
        let of_shard = |row: [u64; ROW]| {
            (0..LAYERS)
                .map(|number| rate_of(layer(&row, number)))
                .rfold(0.0, |behind, (rate, passed)| rate * (1.0 - passed) + behind * passed)
        };
        self.rows().map(of_shard).sum::<f64>() / (1u64 << self.bits) as f64
    }
}

/// Words and slots of the shards of a table; refuses an invalid one.
pub fn check(table: &[u64], bits: u32, columns: Columns) -> Result<(u64, u64)> {
    let wrong = |what: String| Error::Format(format!("the file's table of shards {what}; it is damaged"));
    let mut words = 0u64;
    for shard in 0..1usize << bits {
        let row = row(table, shard);
        if row[2 * LAYERS] >= ATTEMPTS || row[2 * LAYERS + 1] != 0 {
            return Err(wrong(format!("gives shard {shard} an impossible attempt")));
        }
        for number in 0..LAYERS {
            let layer = layer(&row, number);
            if layer.first != words || layer.blocks >= 1 << 34 {
                return Err(wrong(format!("does not say where shard {shard} lies")));
            }
            words = words.saturating_add(layer.words(columns));
        }
    }
    if table.iter().skip(ROW << bits).any(|&word| word != 0) {
        return Err(wrong("has too many rows".into()));
    }
    let slots = View { table, cells: &[], columns, bits }.slots();
    Ok((words.saturating_add(slack(columns)), slots))
}

/// Words of the table of 2^bits shards.
pub fn words(bits: u32) -> Result<u64> {
    if bits > BUCKET_BITS {
        return Err(Error::Format(format!(
            "the file has 2^{bits} shards, at most 2^{BUCKET_BITS} are possible; it is damaged"
        )));
    }
    Ok((ROW << bits) as u64)
}
