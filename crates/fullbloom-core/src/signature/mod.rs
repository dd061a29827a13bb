//! Signatures of rows (superimposed codes), sliced by bits: which rows may have all these terms?
//!
//! Each term sets a few bits of its row's signature; a query ANDs the slices of its bits. The matrix is held by *rows* in
//! the sense of `BitFunnel`: row i is bit i of all signatures. A document that has the terms is always a candidate; others
//! are with the probability of a false drop ([`crate::sizing::signatures`]).
//!
//! * [`shape`]: rows of each rank, columns, blocks;
//! * `positions`: how a term selects rows; `terms`: frequent terms, which have fewer rows or a private one, as their
//!   [`treatment`] says;
//! * [`query`]: the AND, from the highest rank down; [`file`]: the index in a container.
//!
//! Papers: Mooers, "Zatocoding applied to mechanical organization of knowledge", American Documentation 2, 1951; Goodwin
//! et al., "`BitFunnel`: revisiting signatures for search", SIGIR 2017.

pub mod file;
mod positions;
pub mod query;
pub mod shape;
mod terms;
#[cfg(test)]
mod tests;
pub mod treatment;

use crate::cells::{Memory, bits};
use crate::error::{Error, Result};
use crate::key::{AddedDomains, KeyHasher};
use crate::sizing::signatures;

use query::{Query, Scan, each_document};
use shape::{LINE_ROWS, Shape};
use terms::Terms;
use treatment::{MOST_RANKS, Treatment};

/// Blocks are sections of a file, which has a table of them.
const MOST_BLOCKS: usize = 32_000;

/// An index of signatures.
pub struct SignatureIndex {
    hasher: KeyHasher,
    shape: Shape,
    starts: [u64; MOST_RANKS + 1],
    terms: Terms,
    len: u64,
    blocks: Vec<Memory>,
}

impl SignatureIndex {
    /// An empty index. `listed`: terms with a treatment of their own, by their hashes.
    pub fn new(shape: Shape, listed: Vec<(u64, Treatment)>, hasher: &KeyHasher) -> Result<Self> {
        if listed.iter().any(|(_, treatment)| !shape.allows(*treatment)) {
            return Err(Error::parameter("frequencies name rows that the signatures lack"));
        }
        let (starts, terms) = (shape.starts(), Terms::new(listed)?);
        let hasher = hasher.holding(AddedDomains::UNKNOWN);
        Ok(SignatureIndex { hasher, shape, starts, terms, len: 0, blocks: Vec::new() })
    }

    /// How terms become hashes.
    pub fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    /// Its shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Number of rows (documents).
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Terms with a treatment of their own.
    pub fn num_listed(&self) -> usize {
        self.terms.len()
    }

    /// Bytes of signatures and listed terms.
    pub fn nbytes(&self) -> u64 {
        let blocks = self.blocks.iter().map(|block| block.len_bytes() as u64).sum::<u64>();
        blocks + self.terms.memory.as_ref().map_or(0, |memory| memory.len_bytes() as u64)
    }

    /// True if nothing can be added.
    pub fn is_read_only(&self) -> bool {
        self.blocks.iter().any(Memory::is_read_only)
    }

    /// Appends a document with these terms; returns its number.
    pub fn add_document(&mut self, terms: &[u64]) -> Result<u64> {
        let (row, block) = self.append()?;
        let words = block_words(&mut self.blocks, block)?;
        let slot = row % self.shape.block_rows;
        for &term in terms {
            let (shape, starts) = (&self.shape, &self.starts);
            each_row_of(shape, &self.terms, term, &mut |rank, bit| set(words, starts, shape, rank, bit, slot));
        }
        Ok(row)
    }

    /// Appends a row of a table, a value a column: its hash, or `None` for a null; returns its number.
    pub fn add_values(&mut self, values: &[Option<u64>]) -> Result<u64> {
        if values.len() != self.shape.columns.len() {
            let (found, wanted) = (values.len(), self.shape.columns.len());
            return Err(Error::parameter(format!("a row must have a value for each of {wanted} columns, got {found}")));
        }
        let (row, block) = self.append()?;
        let words = block_words(&mut self.blocks, block)?;
        let slot = row % self.shape.block_rows;
        for (column, hash) in values.iter().enumerate().filter_map(|(i, value)| value.map(|hash| (i, hash))) {
            let (shape, starts) = (&self.shape, &self.starts);
            each_row_in(shape, column, hash, &mut |bit| set(words, starts, shape, 0, bit, slot));
        }
        Ok(row)
    }

    /// The next row and its block, which exists afterwards.
    fn append(&mut self) -> Result<(u64, usize)> {
        if self.is_last_read_only() {
            return Err(Error::read_only());
        }
        let (row, block) = (self.len, (self.len / self.shape.block_rows) as usize);
        if block == self.blocks.len() {
            if block == MOST_BLOCKS {
                let (most, rows) = (MOST_BLOCKS, self.shape.block_rows);
                return Err(Error::Capacity(format!(
                    "the index has {most} blocks of {rows} rows, the most that a file takes; create one with a larger \
                     capacity"
                )));
            }
            self.blocks.push(Memory::zeroed(self.starts[MOST_RANKS])?);
        }
        self.len += 1;
        Ok((row, block))
    }

    /// Blocks are mapped all or not at all.
    fn is_last_read_only(&self) -> bool {
        self.blocks.last().is_some_and(Memory::is_read_only)
    }

    /// The rows that a document with all of `terms` has.
    pub fn query(&self, terms: &[u64]) -> Query {
        let mut query = Query::default();
        for &term in terms {
            let private = self.shape.ranks[0].num_bits;
            each_row_of(&self.shape, &self.terms, term, &mut |rank, bit| query.rows[rank].push(bit));
            debug_assert!(query.rows[0].iter().all(|row| *row < private + self.shape.private));
        }
        query.finish();
        query
    }

    /// The rows that a row of a table with these values has: pairs of a column and the hash of its value.
    pub fn query_columns(&self, values: &[(usize, u64)]) -> Query {
        let mut query = Query::default();
        for &(column, hash) in values.iter().filter(|(column, _)| *column < self.shape.columns.len()) {
            each_row_in(&self.shape, column, hash, &mut |bit| query.rows[0].push(bit));
        }
        query.finish();
        query
    }

    /// Calls `take` with the number of each candidate, in order.
    pub fn each_candidate(&self, query: &Query, mut take: impl FnMut(u64)) {
        let rows = self.shape.block_rows;
        for (i, block) in self.blocks.iter().enumerate() {
            let first = i as u64 * rows;
            let end = rows.min(self.len - first);
            let scan = Scan::new(block.words(), query, &self.starts, self.shape.lines(0));
            scan.run(&mut |line, bits| each_document(line, bits, end, &mut |document| take(first + document)));
        }
    }

    /// The share of rows that have each of the query's rows, and their product: the share of candidates if rows were
    /// independent.
    pub fn expected_share(&self, query: &Query) -> f64 {
        query.positions().map(|(rank, row)| self.density(rank, row)).product()
    }

    /// The share of set bits in a row.
    pub fn density(&self, rank: usize, row: u64) -> f64 {
        let (lines, len) = (self.shape.lines(rank), self.shape.lines(rank) * 8);
        let start = (self.starts[rank] + row * len) as usize;
        let set = |block: &Memory| bits::count_ones(&block.words()[start..start + len as usize]);
        let total: u64 = self.blocks.iter().map(set).sum();
        let groups = self.groups(rank, lines);
        if groups == 0 { 0.0 } else { total as f64 / groups as f64 }
    }

    /// The bits of a row of `rank` that documents use.
    fn groups(&self, rank: usize, lines: u64) -> u64 {
        let (whole, rest) = (self.len / self.shape.block_rows, self.len % self.shape.block_rows);
        let group = LINE_ROWS << rank;
        whole * lines * LINE_ROWS + rest / group * LINE_ROWS + (rest % group).min(LINE_ROWS)
    }

    /// The share of set bits among all shared rows of rank 0.
    pub fn fill(&self) -> f64 {
        let len = (self.shape.ranks[0].num_bits * self.shape.lines(0) * 8) as usize;
        let total: u64 = self.blocks.iter().map(|block| bits::count_ones(&block.words()[..len])).sum();
        let all = self.len as f64 * self.shape.ranks[0].num_bits as f64;
        if all == 0.0 { 0.0 } else { total as f64 / all }
    }

    /// An independent copy in memory of its own.
    pub fn try_clone(&self) -> Result<Self> {
        let blocks = self.blocks.iter().map(Memory::try_clone).collect::<Result<_>>()?;
        let terms = self.terms.try_clone()?;
        Ok(SignatureIndex { shape: self.shape.clone(), terms, blocks, ..*self })
    }

    /// Same parameters, same hash, same signatures.
    pub fn equals(&self, other: &Self) -> bool {
        let words = |terms: &Terms| terms.memory.as_ref().map(|memory| memory.words().to_vec());
        self.shape == other.shape
            && (self.len, self.hasher.seed(), self.hasher.secret_fingerprint())
                == (other.len, other.hasher.seed(), other.hasher.secret_fingerprint())
            && words(&self.terms) == words(&other.terms)
            && self.blocks.iter().map(Memory::words).eq(other.blocks.iter().map(Memory::words))
    }
}

/// Calls `take` with rank and row of each row that a term of documents sets.
#[inline]
fn each_row_of(shape: &Shape, terms: &Terms, term: u64, take: &mut impl FnMut(usize, u64)) {
    let bits: [u64; MOST_RANKS] = match terms.find(term) {
        Some(Treatment::Private(row)) => return take(0, shape.ranks[0].num_bits + row),
        Some(Treatment::Shared(bits)) => bits.map(u64::from),
        None => std::array::from_fn(|rank| shape.ranks.get(rank).map_or(0, |width| width.bits_per_term)),
    };
    for (rank, width) in shape.ranks.iter().enumerate() {
        positions::each_row(term, rank, width.num_bits, bits[rank], &mut |row| take(rank, row));
    }
}

/// Calls `take` with each row that a value of a column sets.
#[inline]
fn each_row_in(shape: &Shape, column: usize, hash: u64, take: &mut impl FnMut(u64)) {
    let term = positions::in_column(hash, column);
    positions::each_row(term, 0, shape.ranks[0].num_bits, shape.columns[column].bits, take);
}

/// Sets the bit of the document at `slot` of a block.
#[inline]
fn set(words: &mut [u64], starts: &[u64], shape: &Shape, rank: usize, row: u64, slot: u64) {
    let (line, bit) = ((slot / LINE_ROWS) >> rank, slot % LINE_ROWS);
    let word = starts[rank] + (row * shape.lines(rank) + line) * 8 + bit / 64;
    words[word as usize] |= bits::mask(bit);
}

fn block_words(blocks: &mut [Memory], block: usize) -> Result<&mut [u64]> {
    blocks.get_mut(block).ok_or_else(Error::read_only)?.writable()
}

/// A shape and treatments for documents of `terms` distinct terms, at most `fpr` false drops of one absent term.
///
/// `fill`: the share of set bits. `rank`: where all bits of a term but two go; 0 leaves all at rank 0. `frequencies`: share
/// of documents that have a term, by hash. `snr`: a listed term may have one false drop in that many true ones, so that
/// frequent terms have fewer bits; where they would fill more than a row, they get a private one.
pub fn size(
    terms: u64,
    fpr: f64,
    fill: f64,
    rank: u32,
    capacity: u64,
    frequencies: &[(u64, f64)],
    snr: f64,
) -> Result<(Shape, Vec<(u64, Treatment)>)> {
    if rank as usize >= MOST_RANKS {
        return Err(Error::parameter(format!("rank must be at most {}, got {rank}", MOST_RANKS - 1)));
    }
    if !(snr > 0.0 && snr.is_finite()) {
        return Err(Error::parameter(format!("snr must be positive and finite, got {snr}")));
    }
    let fpr = crate::sizing::check_fpr(fpr)?;
    let found = signatures::widths(terms, fpr, fill, rank)?;
    let mut widths = vec![signatures::Width { num_bits: 0, bits_per_term: 0 }; rank as usize + 1];
    widths[0] = found[0];
    if let Some(high) = found.get(1) {
        widths[rank as usize] = *high;
    } else {
        widths.truncate(1);
    }
    let (mut listed, mut private) = (Vec::new(), 0);
    for &(hash, frequency) in frequencies {
        if !(0.0..=1.0).contains(&frequency) {
            return Err(Error::parameter(format!("frequencies must be from 0 to 1, got {frequency}")));
        }
        let bits = signatures::bits_per_term(fpr.max(frequency / snr), fill);
        let treatment = if frequency * bits as f64 >= -(-fill).ln_1p() {
            private += 1;
            Treatment::Private(private - 1)
        } else {
            let low = bits.min(widths[0].bits_per_term);
            let mut shared = [0; MOST_RANKS];
            shared[0] = low as u8;
            if widths.len() > 1 {
                shared[rank as usize] = (bits - low).min(widths[rank as usize].bits_per_term) as u8;
            }
            Treatment::Shared(shared)
        };
        listed.push((hash, treatment));
    }
    Ok((Shape::new(widths, Vec::new(), private, capacity)?, listed))
}
