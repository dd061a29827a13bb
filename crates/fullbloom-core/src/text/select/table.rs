//! Rows of CSV and TSV: the ends of cells and records.

use std::borrow::Cow;

use crate::text::select::reason::Reason;

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// The byte between two cells.
    pub delimiter: u8,
    /// Whether a quote at the beginning of a cell opens a text that may hold delimiters and newlines: in CSV.
    pub quotes: bool,
}

/// A cell of a row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cell {
    start: usize,
    end: usize,
    /// The start of the next cell or, after a newline, of the next row.
    pub(super) next: usize,
    /// True for the last cell of its row.
    pub(super) last: bool,
    quoting: Quoting,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Quoting {
    #[default]
    None,
    /// Within quotes, and nothing else.
    Plain,
    /// With doubled quotes, or with text behind the closing one.
    Doubled,
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// High bits set at least at the first byte of `word` that equals `byte`.
#[inline(always)]
fn equal(word: u64, byte: u8) -> u64 {
    let word = word ^ (ONES * u64::from(byte));
    word.wrapping_sub(ONES) & !word & HIGHS
}

impl Table {
    /// The end of a cell without quotes that continues at `at`: a delimiter, newline, carriage return or the end.
    #[inline]
    fn end_of_bare(&self, block: &[u8], mut at: usize) -> usize {
        while let Some(word) = block[at..].first_chunk::<8>() {
            let word = u64::from_le_bytes(*word);
            let ends = equal(word, self.delimiter) | equal(word, b'\n') | equal(word, b'\r');
            if ends != 0 {
                return at + ends.trailing_zeros() as usize / 8;
            }
            at += 8;
        }
        let ends = |byte: &u8| *byte == self.delimiter || *byte == b'\n' || *byte == b'\r';
        block[at..].iter().position(ends).map_or(block.len(), |more| at + more)
    }

    /// The cell that begins at `start`.
    #[inline]
    pub(super) fn cell(&self, block: &[u8], start: usize) -> Result<Cell, Reason> {
        let mut cell = Cell { start, ..Cell::default() };
        let mut at = start;
        if self.quotes && block.get(start) == Some(&b'"') {
            let (close, doubled) = closing_quote(block, start + 1).ok_or(Reason::OpenQuote)?;
            at = close + 1;
            let ends = block.get(at).is_none_or(|&byte| byte == self.delimiter || byte == b'\n' || byte == b'\r');
            cell.quoting = if doubled || !ends { Quoting::Doubled } else { Quoting::Plain };
        }
        loop {
            at = self.end_of_bare(block, at);
            cell.end = at;
            match block.get(at) {
                Some(b'\r') => match block.get(at + 1) {
                    Some(b'\n') => (cell.next, cell.last) = (at + 2, true),
                    None => (cell.next, cell.last) = (at + 1, true),
                    // In TSV it is text.
                    Some(_) if !self.quotes => {
                        at += 1;
                        continue;
                    }
                    Some(_) => return Err(Reason::CarriageReturn),
                },
                Some(b'\n') | None => (cell.next, cell.last) = ((at + 1).min(block.len()), true),
                Some(_) => cell.next = at + 1,
            }
            return Ok(cell);
        }
    }

    /// The index after the row whose next cell begins at `at`. If `strict`, a carriage return must end a line or be
    /// quoted.
    #[inline]
    pub(super) fn end_of_row(&self, block: &[u8], mut at: usize, strict: bool) -> Result<usize, Reason> {
        if !self.quotes {
            return Ok(memchr::memchr(b'\n', &block[at..]).map_or(block.len(), |more| at + more + 1));
        }
        loop {
            let Some(more) = memchr::memchr3(b'\n', b'"', b'\r', &block[at..]) else { return Ok(block.len()) };
            at += more + 1;
            match block[at - 1] {
                b'\n' => return Ok(at),
                b'"' if self.opens(block, at - 1) => match closing_quote(block, at) {
                    Some((close, _)) => at = close + 1,
                    None if strict => return Err(Reason::OpenQuote),
                    None => return Ok(block.len()),
                },
                b'\r' if strict && block.get(at).is_some_and(|&next| next != b'\n') => {
                    return Err(Reason::CarriageReturn);
                }
                _ => {}
            }
        }
    }

    /// Finds the cells of `columns` in the row at `start`, each for its place; returns the index after the row. For an
    /// unreadable row, where and why.
    #[inline]
    pub(super) fn cells(
        &self,
        block: &[u8],
        start: usize,
        columns: &[(usize, usize)],
        cells: &mut [Cell],
    ) -> Result<usize, (usize, Reason)> {
        let (mut at, mut index, mut wanted) = (start, 0, columns);
        loop {
            let cell = self.cell(block, at).map_err(|reason| (at, reason))?;
            while let [(column, place), rest @ ..] = wanted
                && *column == index
            {
                cells[*place] = cell;
                wanted = rest;
            }
            index += 1;
            match wanted {
                [] if cell.last => return Ok(cell.next),
                [] => return self.end_of_row(block, cell.next, true).map_err(|reason| (cell.next, reason)),
                [(column, _), ..] if cell.last => {
                    return Err((at, Reason::ShortRow { cells: index, wanted: column + 1 }));
                }
                _ => at = cell.next,
            }
        }
    }

    /// The index after the line that continues at `at`.
    pub(super) fn end_of_line(&self, block: &[u8], at: usize) -> usize {
        memchr::memchr(b'\n', &block[at..]).map_or(block.len(), |more| at + more + 1)
    }

    /// The index after a row that failed in or after the cell at `at`: for a quote that is never closed, after its
    /// line.
    #[cold]
    pub(super) fn end_of_bad(&self, block: &[u8], at: usize, reason: &Reason) -> usize {
        match reason {
            Reason::OpenQuote => self.end_of_line(block, at),
            _ => self.end_of_row(block, at, false).unwrap_or(block.len()),
        }
    }

    /// Whether the quote at `at`, outside of a quoted text, opens one: it begins a cell.
    #[inline]
    fn opens(&self, block: &[u8], at: usize) -> bool {
        at == 0 || block[at - 1] == self.delimiter || block[at - 1] == b'\n'
    }

    /// The index after the last whole record of `block`, which begins with a record; 0 if none ends.
    pub(super) fn find_end(&self, block: &[u8]) -> usize {
        let newline = |text: &[u8]| memchr::memrchr(b'\n', text).map(|at| at + 1);
        if !self.quotes || memchr::memchr(b'"', block).is_none() {
            return newline(block).unwrap_or(0);
        }
        let (mut outside, mut cut) = (0, 0);
        let mut at = 0;
        while let Some(more) = memchr::memchr(b'"', &block[at..]) {
            let quote = at + more;
            at = quote + 1;
            if !self.opens(block, quote) {
                continue;
            }
            if let Some(end) = newline(&block[outside..quote]) {
                cut = outside + end;
            }
            match closing_quote(block, at) {
                Some((close, _)) => (at, outside) = (close + 1, close + 1),
                None => return cut,
            }
        }
        newline(&block[outside..]).map_or(cut, |end| outside + end)
    }
}

/// The closing quote of a text that continues at `at`, and whether doubled ones precede it.
#[inline]
fn closing_quote(block: &[u8], mut at: usize) -> Option<(usize, bool)> {
    let mut doubled = false;
    loop {
        let close = at + memchr::memchr(b'"', &block[at..])?;
        if block.get(close + 1) != Some(&b'"') {
            return Some((close, doubled));
        }
        (at, doubled) = (close + 2, true);
    }
}

impl Cell {
    /// The contents of the cell.
    #[inline]
    pub(super) fn text(self, block: &[u8]) -> Cow<'_, [u8]> {
        match self.quoting {
            Quoting::None => Cow::Borrowed(&block[self.start..self.end]),
            Quoting::Plain => Cow::Borrowed(&block[self.start + 1..self.end - 1]),
            Quoting::Doubled => Cow::Owned(unquote(&block[self.start + 1..self.end])),
        }
    }
}

/// The text after an opening quote: doubled quotes as one, and text after the closing one unchanged.
fn unquote(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'"', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        match rest.strip_prefix(b"\"") {
            Some(behind) => {
                out.push(b'"');
                rest = behind;
            }
            None => break,
        }
    }
    out.extend_from_slice(rest);
    out
}
