//! Queries: the AND of the rows of their terms, from the highest rank down.

use crate::cells::LINE_WORDS;

use super::shape::LINE_ROWS;
use super::treatment::MOST_RANKS;

type Line = [u64; LINE_WORDS];

/// The rows that a query reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Rows of each rank, ascending and distinct.
    pub(super) rows: [Vec<u64>; MOST_RANKS],
}

impl Query {
    /// Pairs of a rank and a row, those of rank 0 first.
    pub fn positions(&self) -> impl Iterator<Item = (usize, u64)> {
        self.rows.iter().enumerate().flat_map(|(rank, rows)| rows.iter().map(move |row| (rank, *row)))
    }

    /// True if it reads no rows, so that every document is a candidate.
    pub fn is_empty(&self) -> bool {
        self.rows.iter().all(Vec::is_empty)
    }

    pub(super) fn finish(&mut self) {
        for rows in &mut self.rows {
            rows.sort_unstable();
            rows.dedup();
        }
    }
}

/// The rows of a query in one block.
pub(super) struct Scan<'a> {
    words: &'a [u64],
    /// First words of the rows of each rank.
    rows: [Vec<usize>; MOST_RANKS],
    lines: usize,
    top: usize,
}

impl<'a> Scan<'a> {
    /// `starts`, `lines`: as of the shape.
    pub(super) fn new(words: &'a [u64], query: &Query, starts: &[u64], lines: u64) -> Self {
        let first = |rank: usize, row: &u64| (starts[rank] + row * (lines >> rank) * LINE_WORDS as u64) as usize;
        let rows: [Vec<usize>; MOST_RANKS] =
            std::array::from_fn(|rank| query.rows[rank].iter().map(|row| first(rank, row)).collect());
        let top = rows.iter().rposition(|rows| !rows.is_empty()).unwrap_or(0);
        Scan { words, rows, lines: lines as usize, top }
    }

    /// Calls `take` with each line of rank 0 that has a candidate, and its bits in storage order.
    pub(super) fn run(&self, take: &mut impl FnMut(usize, &Line)) {
        for line in 0..self.lines >> self.top {
            self.descend(self.top, line, [u64::MAX; LINE_WORDS], take);
        }
    }

    /// A line of `rank`, whose documents must be in `among`. A bit of rank r is set if one of 2^r documents, a line
    /// apart, has the term, so that a line that comes out empty spares 2^r lines of rank 0.
    fn descend(&self, rank: usize, line: usize, among: Line, take: &mut impl FnMut(usize, &Line)) {
        let Some(among) = self.and(rank, line, among) else { return };
        if rank == 0 {
            return take(line, &among);
        }
        self.descend(rank - 1, 2 * line, among, take);
        self.descend(rank - 1, 2 * line + 1, among, take);
    }

    /// The AND of the line in all rows of a rank; `None` as soon as it is empty.
    #[inline]
    fn and(&self, rank: usize, line: usize, mut among: Line) -> Option<Line> {
        for start in &self.rows[rank] {
            let at = start + line * LINE_WORDS;
            let row: &Line = self.words.get(at..at + LINE_WORDS)?.try_into().ok()?;
            let mut any = 0;
            for (among, row) in among.iter_mut().zip(row) {
                *among &= row;
                any |= *among;
            }
            if any == 0 {
                return None;
            }
        }
        Some(among)
    }
}

/// Calls `take` with the number in its block of each document of a line, below `end`.
pub(super) fn each_document(line: usize, bits: &Line, end: u64, take: &mut impl FnMut(u64)) {
    for (i, word) in bits.iter().enumerate() {
        let (first, mut word) = (line as u64 * LINE_ROWS + 64 * i as u64, u64::from_le(*word));
        while word != 0 {
            let document = first + u64::from(word.trailing_zeros());
            word &= word - 1;
            if document < end {
                take(document);
            }
        }
    }
}
