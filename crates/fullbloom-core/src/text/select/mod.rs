//! Records with a chosen key: columns of CSV and TSV, dotted names of JSON lines, whole lines.
//!
//! The input is a block of whole records, the output the end of each record and the hash of its key. Records are never
//! built: cells before the last selected column are skipped 8 bytes at a time, the rest of a row by `memchr`, and JSON
//! is checked byte for byte but only the selected values are read.

mod canonical_json;
mod json;
mod key;
mod keyed;
mod number;
mod reason;
mod scan;
mod table;
#[cfg(test)]
mod tests;

use crate::error::{Error, Result};
use crate::foreign;
use crate::foreign::rules::Digest;
use crate::key::{KeyDomains, KeyHasher};
use json::{Names, Span};
pub use key::KeyType;
use key::{Key, Value, key_of, tuple_of};
pub use keyed::{KeyedRecords, LastOccurrences, fresh};
pub use reason::{MOST_DEPTH, Reason};
use scan::Scanner;
use table::Cell;
pub use table::Table;

/// Columns of a key, and parts of a dotted name.
const MOST_COLUMNS: usize = 64;

/// How records are written, and where their keys are.
#[derive(Clone, Debug)]
enum Format {
    /// A record is a line, and its own key.
    Lines,
    /// Rows of cells; the columns from 0, ascending, each with its place in the key.
    Rows(Table, Vec<(usize, usize)>),
    /// One object per line.
    Objects(Names),
}

/// How a filter hashes keys.
#[derive(Clone, Copy, Debug)]
pub enum Hashing {
    /// By the key rule, to 64 bits.
    Own(KeyHasher),
    /// By the rule of another program.
    Foreign(foreign::bits::Hashing),
}

/// Finds the keys of records and hashes them.
#[derive(Clone, Debug)]
pub struct Selection {
    hashing: Hashing,
    format: Format,
    types: Vec<KeyType>,
}

type Keyed<'a> = std::result::Result<Option<Key<'a>>, Reason>;

impl Selection {
    /// Whole lines, as keys of a type.
    pub fn lines(hashing: Hashing, kind: KeyType) -> Self {
        Selection { hashing, format: Format::Lines, types: vec![kind] }
    }

    /// Cells of `columns`, counted from 0; several make a tuple.
    pub fn rows(hashing: Hashing, table: Table, columns: &[usize], types: &[KeyType]) -> Result<Self> {
        if !table.delimiter.is_ascii() || matches!(table.delimiter, b'"' | b'\n' | b'\r') {
            return Err(Error::parameter("the delimiter must be one ASCII byte, and neither a quote nor a line end"));
        }
        let mut wanted: Vec<_> = columns.iter().enumerate().map(|(place, &column)| (column, place)).collect();
        wanted.sort_unstable();
        Self::of(hashing, Format::Rows(table, wanted), columns.len(), types)
    }

    /// Values of dotted names; several make a tuple.
    pub fn objects(hashing: Hashing, names: &[String], types: &[KeyType]) -> Result<Self> {
        if let Some(long) = names.iter().find(|name| name.split('.').count() > MOST_COLUMNS) {
            let parts = long.split('.').count();
            return Err(Error::parameter(format!("a dotted name has at most {MOST_COLUMNS} parts, got {parts}")));
        }
        Self::of(hashing, Format::Objects(Names::of(names)), names.len(), types)
    }

    fn of(hashing: Hashing, format: Format, columns: usize, types: &[KeyType]) -> Result<Self> {
        if columns == 0 || columns > MOST_COLUMNS {
            return Err(Error::parameter(format!("a key has 1 to {MOST_COLUMNS} columns, got {columns}")));
        }
        let types = match types {
            [one] => vec![*one; columns],
            types if types.len() == columns => types.to_vec(),
            types => {
                let message =
                    format!("give one type for all columns or one for each of {columns}, got {}", types.len());
                return Err(Error::parameter(message));
            }
        };
        Ok(Selection { hashing, format, types })
    }

    /// Behind the last whole record of `block`, which begins with a record; 0 where none ends.
    pub fn find_end(&self, block: &[u8]) -> usize {
        match &self.format {
            Format::Rows(table, _) => table.find_end(block),
            _ => memchr::memrchr(b'\n', block).map_or(0, |newline| newline + 1),
        }
    }

    /// The records of `block`, which holds whole ones; the last may lack its newline. A record that cannot be read ends
    /// the work, or where `skip` is marked and counted.
    pub fn read(&self, block: &[u8], skip: bool) -> Result<KeyedRecords> {
        let mut out = KeyedRecords::of_parts(self.parts());
        let (mut scanner, mut scratch) = (Scanner::new(block), self.scratch());
        // A block is checked at once, a line only where the block has one that is not UTF-8.
        let whole = !matches!(self.format, Format::Objects(_)) || std::str::from_utf8(block).is_ok();
        let mut start = 0;
        while start < block.len() {
            let (end, key) = self.record(block, start, whole, &mut scanner, &mut scratch);
            match key.and_then(|key| self.hash(key, &mut scratch)) {
                Ok(None) => out.push(end, None)?,
                Ok(Some(KeyHash::Own(hash, domains))) => out.push(end, Some((hash, domains)))?,
                Ok(Some(KeyHash::Foreign)) => out.push_digests(end, &scratch.digests)?,
                Err(reason) => {
                    out.push_fault(end, || (1 + memchr::memchr_iter(b'\n', &block[..start]).count() as u64, reason))?;
                    if !skip {
                        return Ok(out);
                    }
                }
            }
            start = end;
        }
        out.lines = memchr::memchr_iter(b'\n', block).count() as u64;
        Ok(out)
    }

    /// Digests of a key: 0 of one that is hashed to 64 bits.
    fn parts(&self) -> usize {
        match &self.hashing {
            Hashing::Own(_) => 0,
            Hashing::Foreign(hashing) => hashing.parts(),
        }
    }

    /// The hash of a key; a key of a type that another program's filter does not have is a fault.
    #[inline]
    fn hash(&self, key: Option<Key<'_>>, scratch: &mut Scratch) -> std::result::Result<Option<KeyHash>, Reason> {
        let Some(key) = key else { return Ok(None) };
        let hashing = match &self.hashing {
            Hashing::Own(hasher) => return Ok(Some(KeyHash::Own(key.hash(hasher), key.domains()))),
            Hashing::Foreign(hashing) => hashing,
        };
        scratch.bytes.clear();
        let domain = key.write(&mut scratch.bytes);
        match hashing.digest_parts(domain, &scratch.bytes, &mut scratch.digests) {
            true => Ok(Some(KeyHash::Foreign)),
            false => Err(Reason::NotAccepted(hashing.describe())),
        }
    }

    /// Where the record at `start` ends, and its key.
    #[inline]
    fn record<'a>(
        &self,
        block: &'a [u8],
        start: usize,
        valid: bool,
        scanner: &mut Scanner<'a>,
        scratch: &mut Scratch,
    ) -> (usize, Keyed<'a>) {
        if let Format::Rows(table, columns) = &self.format {
            return self.row(block, start, (*table, columns), &mut scratch.cells);
        }
        let end = memchr::memchr(b'\n', &block[start..]).map_or(block.len(), |more| start + more + 1);
        let line = block[start..end].strip_suffix(b"\n").unwrap_or(&block[start..end]);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Format::Objects(names) = &self.format else {
            return match self.types[..] {
                [KeyType::Auto] => (end, Ok(Some(Key::Text(line.into())))),
                _ => (end, self.key(|_| Ok(Value::Text(line.into())))),
            };
        };
        if !valid && let Err(error) = std::str::from_utf8(line) {
            return (end, Err(Reason::NotJson("no UTF-8", error.valid_up_to() + 1)));
        }
        scanner.line(start, start + line.len());
        let key = match names.of_line(scanner, &mut scratch.spans) {
            Ok(true) => self.key(|place| match scratch.spans[place] {
                Some((from, to)) => json::value(&block[from..to]),
                None => Ok(Value::Absent),
            }),
            Ok(false) => Ok(None),
            Err(reason) => Err(reason),
        };
        (end, key)
    }

    /// The key whose parts `value` gives by their places.
    #[inline]
    fn key<'a>(&self, mut value: impl FnMut(usize) -> std::result::Result<Value<'a>, Reason>) -> Keyed<'a> {
        match *self.types.as_slice() {
            [kind] => key_of(value(0)?, kind),
            ref types => tuple_of(types.iter().enumerate().map(|(place, &kind)| key_of(value(place)?, kind))),
        }
    }

    #[inline]
    fn row<'a>(
        &self,
        block: &'a [u8],
        start: usize,
        (table, columns): (Table, &[(usize, usize)]),
        cells: &mut [Cell],
    ) -> (usize, Keyed<'a>) {
        if matches!(block[start..], [b'\n', ..] | [b'\r', b'\n', ..] | [b'\r']) {
            return (table.end_of_line(block, start), Ok(None));
        }
        match table.cells(block, start, columns, cells) {
            Ok(end) => (end, self.key(|place| Ok(Value::Text(cells[place].text(block))))),
            Err((at, reason)) => (table.end_of_bad(block, at, &reason), Err(reason)),
        }
    }

    /// What two keys share exactly when they are one key: the domain and the canonical bytes of the key of the record
    /// at `start..end`.
    pub(in crate::text) fn exact(&self, block: &[u8], start: usize, end: usize) -> Vec<u8> {
        let block = &block[..end];
        let (mut scanner, mut scratch) = (Scanner::new(block), self.scratch());
        let mut out = vec![0];
        if let (_, Ok(Some(key))) = self.record(block, start, false, &mut scanner, &mut scratch) {
            out[0] = key.write(&mut out) as u8;
        }
        out
    }

    fn scratch(&self) -> Scratch {
        Scratch {
            spans: vec![None; self.types.len()],
            cells: vec![Cell::default(); self.types.len()],
            bytes: Vec::new(),
            digests: vec![[0; 2]; self.parts()],
        }
    }
}

/// The hash of a key.
enum KeyHash {
    /// With the domains of the key.
    Own(u64, KeyDomains),
    /// The digests are in the scratch.
    Foreign,
}

/// The places of the parts of a key.
struct Scratch {
    spans: Vec<Span>,
    cells: Vec<Cell>,
    /// Canonical bytes of a key, and its digests by the rule of another program.
    bytes: Vec<u8>,
    digests: Vec<Digest>,
}
