//! The shape of an index: rows of each rank, columns, and where a block holds which bit.

use crate::cells::LINE_WORDS;
use crate::error::{Error, Result};
use crate::sizing::signatures::{MOST_BITS, MOST_BITS_PER_TERM, Width};

use super::treatment::{MOST_RANKS, Treatment};

/// Documents of a line of rank 0.
pub const LINE_ROWS: u64 = 512;
/// The most documents of a block: a row of it is a page of 4 KiB.
pub const MOST_BLOCK_ROWS: u64 = 1 << 15;
/// The most columns.
pub const MOST_COLUMNS: usize = 1024;
/// The longest name of a column, in bytes.
pub const LONGEST_NAME: usize = 256;
/// The most private rows.
pub const MOST_PRIVATE: u64 = 1 << 20;

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Distinct bits that a value sets.
    pub bits: u64,
}

/// The shape of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    pub(super) ranks: Vec<Width>,
    pub(super) private: u64,
    pub(super) columns: Vec<Column>,
    pub(super) block_rows: u64,
}

impl Shape {
    /// Signatures with these bits at each rank. An index of columns has rank 0 only.
    ///
    /// `capacity`: expected rows, from which the rows of a block follow.
    pub fn new(ranks: Vec<Width>, columns: Vec<Column>, private: u64, capacity: u64) -> Result<Self> {
        let top = ranks.len().clamp(1, MOST_RANKS) - 1;
        let least = LINE_ROWS << top;
        let block_rows = capacity.clamp(least, MOST_BLOCK_ROWS).next_power_of_two();
        Self::with_block_rows(ranks, columns, private, block_rows)
    }

    /// [`Shape::new`] with blocks of `block_rows` documents.
    pub(super) fn with_block_rows(
        ranks: Vec<Width>,
        columns: Vec<Column>,
        private: u64,
        block_rows: u64,
    ) -> Result<Self> {
        if ranks.is_empty() || ranks.len() > MOST_RANKS {
            let why =
                format!("num_bits must have one number per rank, for 1 to {MOST_RANKS} ranks, got {}", ranks.len());
            return Err(Error::parameter(why));
        }
        for (rank, width) in ranks.iter().enumerate() {
            check_width(*width, rank)?;
        }
        check_columns(&columns, ranks[0].num_bits)?;
        if !columns.is_empty() && (ranks.len() > 1 || private > 0) {
            return Err(Error::parameter(
                "an index of columns has bits of rank 0 only; pass one num_bits, no frequencies",
            ));
        }
        if private > MOST_PRIVATE {
            return Err(Error::parameter(format!("at most {MOST_PRIVATE} terms can have private rows, got {private}")));
        }
        let least = LINE_ROWS << (ranks.len() - 1);
        if !block_rows.is_power_of_two() || !(least..=MOST_BLOCK_ROWS).contains(&block_rows) {
            return Err(Error::parameter(format!("blocks of {block_rows} rows are impossible")));
        }
        Ok(Shape { ranks, private, columns, block_rows })
    }

    /// Whether a listed term may have this treatment.
    pub(super) fn allows(&self, treatment: Treatment) -> bool {
        match treatment {
            Treatment::Private(row) => row < self.private,
            Treatment::Shared(bits) => bits.iter().enumerate().all(|(rank, bits)| {
                let most = self.ranks.get(rank).map_or(0, |width| width.num_bits.min(MOST_BITS_PER_TERM));
                u64::from(*bits) <= most
            }),
        }
    }

    /// Lines of a row of `rank` in a block.
    pub(super) fn lines(&self, rank: usize) -> u64 {
        (self.block_rows / LINE_ROWS) >> rank
    }

    /// Rows of `rank`, private ones among them.
    pub(super) fn rows(&self, rank: usize) -> u64 {
        self.ranks[rank].num_bits + if rank == 0 { self.private } else { 0 }
    }

    /// The first word of each rank in a block, and of the end.
    pub(super) fn starts(&self) -> [u64; MOST_RANKS + 1] {
        let (mut starts, mut at) = ([0; MOST_RANKS + 1], 0);
        for (rank, start) in starts.iter_mut().enumerate() {
            *start = at;
            if rank < self.ranks.len() {
                at += self.rows(rank) * self.lines(rank) * LINE_WORDS as u64;
            }
        }
        starts
    }

    /// The bits at each rank.
    pub fn ranks(&self) -> &[Width] {
        &self.ranks
    }

    /// The columns; none in an index of documents.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Rows that belong to one frequent term each.
    pub fn private(&self) -> u64 {
        self.private
    }

    /// Documents of a block.
    pub fn block_rows(&self) -> u64 {
        self.block_rows
    }
}

fn check_width(width: Width, rank: usize) -> Result<()> {
    let Width { num_bits, bits_per_term } = width;
    // Higher ranks may be left out.
    if rank > 0 && (num_bits, bits_per_term) == (0, 0) {
        return Ok(());
    }
    if num_bits == 0 || num_bits > MOST_BITS {
        return Err(Error::parameter(format!("num_bits must be from 1 to {MOST_BITS}, got {num_bits} at rank {rank}")));
    }
    check_bits("bits_per_term", bits_per_term, num_bits)
}

fn check_bits(name: &str, bits: u64, num_bits: u64) -> Result<()> {
    let most = num_bits.min(MOST_BITS_PER_TERM);
    if (1..=most).contains(&bits) {
        return Ok(());
    }
    Err(Error::parameter(format!("{name} must be from 1 to {most} in signatures of {num_bits} bits, got {bits}")))
}

fn check_columns(columns: &[Column], num_bits: u64) -> Result<()> {
    if columns.len() > MOST_COLUMNS {
        return Err(Error::parameter(format!("columns must be at most {MOST_COLUMNS}, got {}", columns.len())));
    }
    for (i, column) in columns.iter().enumerate() {
        let name = &column.name;
        if name.is_empty() || name.len() > LONGEST_NAME || name.contains('\0') {
            return Err(Error::parameter(format!(
                "columns must have names of 1 to {LONGEST_NAME} bytes without a zero byte, got {:?}",
                name.chars().take(40).collect::<String>()
            )));
        }
        if columns[..i].iter().any(|other| other.name == *name) {
            return Err(Error::parameter(format!("columns must have different names, got {name:?} twice")));
        }
        check_bits(&format!("the bits of column {name:?}"), column.bits, num_bits)?;
    }
    Ok(())
}
