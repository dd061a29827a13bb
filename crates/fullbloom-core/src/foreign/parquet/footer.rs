//! The places of the filters of a Parquet file, from its footer, one after the other: a column of a dozen bytes takes ten
//! times as many in memory, and a hundred times as many as Python objects.
//!
//! ```text
//! file = "PAR1" ... footer, u32 length of the footer, "PAR1"       ("PARE" if the footer is encrypted)
//! footer = FileMetaData: 1 version, 4 row groups: 1 columns: 3 metadata: 1 type, 3 path, 5 values,
//!                        14 offset and 15 length of the filter; 8 of a column: its encryption
//! ```

use super::thrift::{self, Reader, kind};
use crate::error::{Error, Result};

/// Bytes behind the footer.
pub const TAIL: usize = 8;
/// Bytes before everything else.
const MAGIC: &[u8; 4] = b"PAR1";

/// The types of values, as the format numbers them.
const TYPES: [&str; 8] =
    ["BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"];

/// A column of a row group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Number of the row group.
    pub row_group: usize,
    /// Rows of the row group.
    pub num_rows: u64,
    /// Names from the root to the column, joined by dots.
    pub column: String,
    /// Type of the values.
    pub physical_type: &'static str,
    /// First byte of the filter, if there is one.
    pub offset: Option<u64>,
    /// Its bytes with its header, which older writers do not state.
    pub length: Option<u64>,
    /// True if the metadata of the column, or the column itself, is encrypted.
    pub encrypted: bool,
}

fn refuse(why: &str) -> Error {
    Error::format(format!("these bytes are not a Parquet file: {why}"))
}

/// Bytes of the footer of a file of `file` bytes that ends with `tail`.
pub fn footer_len(tail: &[u8], file: u64) -> Result<u64> {
    let [a, b, c, d, magic @ ..] = tail else { return Err(refuse("it has no tail")) };
    match magic {
        b"PARE" => return Err(refuse("its footer is encrypted, which is not supported")),
        magic if magic != MAGIC => return Err(refuse("it does not end with PAR1")),
        _ => {}
    }
    let len = u64::from(u32::from_le_bytes([*a, *b, *c, *d]));
    let most = file.saturating_sub((MAGIC.len() + TAIL) as u64);
    if len == 0 || len > most {
        return Err(refuse(&format!("its footer has {len} bytes, the file has {most} before its tail")));
    }
    Ok(len)
}

/// The chunks of a file, of one column or of all, in order; none has a filter outside of the bytes before the footer.
pub struct Chunks {
    footer: Vec<u8>,
    column: Option<String>,
    /// First byte of the footer in the file: filters end before it.
    pub end: u64,
    /// Row groups that have not been begun, and where the next one begins.
    groups: Items,
    /// Columns of the row group that have not been read.
    columns: Items,
    row_group: usize,
    num_rows: u64,
}

/// Items of a list that have not been read.
#[derive(Clone, Copy, Debug, Default)]
struct Items {
    at: usize,
    left: usize,
    read: usize,
}

impl Chunks {
    /// Those of a file of `file` bytes with this footer, which is checked as a whole first; that takes no memory.
    pub fn new(footer: Vec<u8>, file: u64, column: Option<String>) -> Result<Self> {
        let end = file.saturating_sub((footer.len() + TAIL) as u64);
        let groups = check(&footer).map_err(|why| refuse(&format!("its footer: {why}")))?;
        let mut chunks = Chunks { footer, column, end, groups, columns: Items::default(), row_group: 0, num_rows: 0 };
        while let Some(chunk) = chunks.advance() {
            let Some(offset) = chunk.offset else { continue };
            let last = offset.checked_add(chunk.length.unwrap_or(1));
            if offset < MAGIC.len() as u64 || last.is_none_or(|last| last > end) {
                let (name, group) = (&chunk.column, chunk.row_group);
                return Err(refuse(&format!(
                    "the filter of column {name:?} in row group {group} lies outside of the file"
                )));
            }
        }
        Ok(Chunks { groups, columns: Items::default(), ..chunks })
    }

    /// The next chunk of the column.
    fn advance(&mut self) -> Option<Chunk> {
        loop {
            while self.columns.left == 0 {
                self.groups.left = self.groups.left.checked_sub(1)?;
                let mut reader = Reader::new(self.footer.get(self.groups.at..)?);
                let (mut columns, num_rows) = read_group(&mut reader).ok()?;
                columns.at += self.groups.at;
                self.groups.at = self.footer.len() - reader.num_left();
                self.row_group = self.groups.read;
                self.groups.read += 1;
                (self.columns, self.num_rows) = (columns, num_rows);
            }
            self.columns.left -= 1;
            let mut reader = Reader::new(self.footer.get(self.columns.at..)?);
            let chunk = read_chunk(&mut reader).ok()?;
            self.columns.at = self.footer.len() - reader.num_left();
            if self.column.as_ref().is_none_or(|column| *column == chunk.column) {
                return Some(Chunk { row_group: self.row_group, num_rows: self.num_rows, ..chunk });
            }
        }
    }
}

impl Iterator for Chunks {
    type Item = Chunk;

    fn next(&mut self) -> Option<Chunk> {
        self.advance()
    }
}

/// The row groups of a footer, all of which is checked.
fn check(footer: &[u8]) -> thrift::Result<Items> {
    let (mut version, mut groups) = (None, None);
    let mut whole = Reader::new(footer);
    whole.fields(|reader, id, of| match (id, of) {
        (1, kind::I32) => {
            version = Some(reader.number()?);
            Ok(true)
        }
        (4, kind::LIST) if groups.is_none() => {
            let (of, left) = reader.list()?;
            if of != kind::STRUCT && left > 0 {
                return Err("its row groups are no structs");
            }
            groups = Some(Items { at: footer.len() - reader.num_left(), left, read: 0 });
            for _ in 0..left {
                let before = reader.rest();
                let (columns, _) = read_group(reader)?;
                let mut items = Reader::new(before.get(columns.at..).unwrap_or_default());
                (0..columns.left).try_for_each(|_| read_chunk(&mut items).map(drop))?;
            }
            Ok(true)
        }
        (4, kind::LIST) => Err("it has two lists of row groups"),
        _ => Ok(false),
    })?;
    match version {
        Some(1 | 2) => Ok(groups.unwrap_or_default()),
        Some(_) => Err("its version is neither 1 nor 2"),
        None => Err("it states no version"),
    }
}

/// The columns of a row group, from its first byte on, and its rows.
fn read_group(reader: &mut Reader<'_>) -> thrift::Result<(Items, u64)> {
    let (start, mut columns, mut num_rows) = (reader.num_left(), None, 0);
    reader.fields(|reader, id, of| match (id, of) {
        (1, kind::LIST) if columns.is_none() => {
            let (of, left) = reader.list()?;
            if of != kind::STRUCT && left > 0 {
                return Err("its columns are no structs");
            }
            columns = Some(Items { at: start - reader.num_left(), left, read: 0 });
            (0..left).try_for_each(|_| reader.skip_struct())?;
            Ok(true)
        }
        (1, kind::LIST) => Err("a row group has two lists of columns"),
        (3, kind::I64) => {
            num_rows = u64::try_from(reader.number()?).map_err(|_| "a row group has fewer than 0 rows")?;
            Ok(true)
        }
        _ => Ok(false),
    })?;
    Ok((columns.unwrap_or_default(), num_rows))
}

fn read_chunk(reader: &mut Reader<'_>) -> thrift::Result<Chunk> {
    let (mut chunk, mut path) = (Chunk { physical_type: "unknown", ..Chunk::default() }, None);
    reader.fields(|reader, id, of| match (id, of) {
        (3, kind::STRUCT) => read_metadata(reader, &mut chunk, &mut path).map(|()| true),
        // The path of an encrypted column is in its key's metadata.
        (8, kind::STRUCT) => {
            chunk.encrypted = true;
            reader.fields(|reader, id, of| match (id, of) {
                (2, kind::STRUCT) => {
                    reader.fields(|reader, id, of| match (id, of) {
                        (1, kind::LIST) => {
                            path = Some(read_path(reader)?);
                            Ok(true)
                        }
                        _ => Ok(false),
                    })?;
                    Ok(true)
                }
                _ => Ok(false),
            })?;
            Ok(true)
        }
        _ => Ok(false),
    })?;
    chunk.column = path.ok_or("a column has no path")?;
    Ok(chunk)
}

fn read_metadata(reader: &mut Reader<'_>, chunk: &mut Chunk, path: &mut Option<String>) -> thrift::Result<()> {
    let at_least_0 = |number: i64| u64::try_from(number).map_err(|_| "a filter's offset or length is below 0");
    reader.fields(|reader, id, of| {
        match (id, of) {
            (1, kind::I32) => {
                let number = usize::try_from(reader.number()?).ok();
                chunk.physical_type = number.and_then(|number| TYPES.get(number)).copied().unwrap_or("unknown");
            }
            (3, kind::LIST) => *path = Some(read_path(reader)?),
            (14, kind::I64) => chunk.offset = Some(at_least_0(reader.number()?)?),
            (15, kind::I32) => chunk.length = Some(at_least_0(reader.number()?)?),
            _ => return Ok(false),
        }
        Ok(true)
    })
}

fn read_path(reader: &mut Reader<'_>) -> thrift::Result<String> {
    let (of, len) = reader.list()?;
    if of != kind::BINARY && len > 0 {
        return Err("a path must be a list of names");
    }
    let mut path = String::new();
    for i in 0..len {
        if i > 0 {
            path.push('.');
        }
        path.push_str(reader.text()?);
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A footer of one row group of one column `a.b` of INT64 with a filter at `offset` of `length` bytes.
    fn footer(offset: i64, length: i64) -> Vec<u8> {
        let zigzag = |number: i64| {
            let mut value = (number << 1 ^ number >> 63) as u64;
            let mut bytes = Vec::new();
            while value >= 0x80 {
                bytes.push(value as u8 | 0x80);
                value >>= 7;
            }
            bytes.push(value as u8);
            bytes
        };
        let mut bytes = vec![0x15, 4, 0x39, 0x1c]; // version 2; row groups, a list of one struct
        bytes.extend([0x19, 0x1c]); // columns, a list of one struct
        bytes.extend([0x3c, 0x15, 4, 0x29, 0x28, 1, b'a', 1, b'b']); // metadata: type, path
        bytes.push(0xb6); // field 14
        bytes.extend(zigzag(offset));
        bytes.push(0x15);
        bytes.extend(zigzag(length));
        bytes.extend([0, 0]); // ends of metadata and column
        bytes.extend([0x26, 20, 0]); // ten rows; end of the row group
        bytes.push(0);
        bytes
    }

    #[test]
    fn a_filter_is_found_and_none_outside_of_the_file() -> Result<()> {
        let bytes = footer(100, 47);
        let file = 147 + bytes.len() as u64 + 8;
        let chunks = |bytes: &[u8], file, column: Option<&str>| -> Result<Vec<Chunk>> {
            Ok(Chunks::new(bytes.to_vec(), file, column.map(str::to_owned))?.collect())
        };
        let found = chunks(&bytes, file, None)?;
        let wanted = Chunk {
            num_rows: 10,
            column: "a.b".into(),
            physical_type: "INT64",
            offset: Some(100),
            length: Some(47),
            ..Chunk::default()
        };
        assert_eq!(found, [wanted]);
        assert_eq!(chunks(&bytes, file, Some("a.b"))?, found);
        assert!(chunks(&bytes, file, Some("b"))?.is_empty());
        assert!(chunks(&bytes, file - 1, None).is_err());
        for (offset, length) in [(3, 40), (-1, 40), (100, -1), (i64::MAX, 40), (100, i64::from(i32::MAX))] {
            assert!(chunks(&footer(offset, length), file, None).is_err(), "{offset} {length}");
        }
        for len in 0..bytes.len() {
            assert!(chunks(&bytes[..len], file, None).is_err(), "{len}");
        }
        Ok(())
    }

    #[test]
    fn tails_that_lie_are_refused() {
        let tail = |len: u32, magic: &[u8; 4]| [&len.to_le_bytes()[..], magic].concat();
        assert_eq!(footer_len(&tail(10, b"PAR1"), 22).ok(), Some(10));
        assert!(footer_len(&tail(11, b"PAR1"), 22).is_err());
        assert!(footer_len(&tail(0, b"PAR1"), 22).is_err());
        assert!(footer_len(&tail(10, b"PAR2"), 22).is_err());
        assert!(footer_len(b"PAR1", 22).is_err());
        let encrypted = footer_len(&tail(10, b"PARE"), 22).map_err(|error| error.to_string());
        assert!(encrypted.is_err_and(|text| text.contains("encrypted")));
    }

    #[test]
    fn deep_and_long_values_are_refused() {
        let chunks = |bytes: &[u8]| Chunks::new(bytes.to_vec(), 1 << 20, None);
        // Structs within structs, and lists that state more items than bytes.
        assert!(chunks(&[0x1c; 5000]).is_err());
        assert!(chunks(&[0x19, 0xf9, 0xff, 0xff, 0xff, 0xff, 0x0f]).is_err());
        assert!(chunks(&[0x18, 0xff, 0xff, 0xff, 0xff, 0x0f]).is_err());
        assert!(chunks(&[0x1b, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x11]).is_err());
    }

    #[test]
    fn chunks_come_in_order_and_are_repeatable() -> Result<()> {
        // Three row groups of three columns each: a, b and a.
        let path = |name: u8| vec![0x3c, 0x15, 4, 0x29, 0x18, 1, name, 0, 0];
        let columns = [path(b'a'), path(b'b'), path(b'a')].concat();
        let group = |rows: u8| [&[0x19, 0x3c][..], &columns, &[0x26, 2 * rows, 0]].concat();
        let bytes = [&[0x15, 2, 0x39, 0x3c][..], &group(1), &group(2), &group(3), &[0]].concat();
        let read = |column: Option<&str>| -> Result<Vec<(usize, u64, String)>> {
            let chunks = Chunks::new(bytes.clone(), 1 << 20, column.map(str::to_owned))?;
            assert_eq!(chunks.end, (1 << 20) - bytes.len() as u64 - 8);
            Ok(chunks.map(|chunk| (chunk.row_group, chunk.num_rows, chunk.column)).collect())
        };
        let all = [0usize, 1, 2].map(|group| ["a", "b", "a"].map(|name| (group, group as u64 + 1, name.to_string())));
        assert_eq!(read(None)?, all.concat());
        assert_eq!(read(Some("b"))?, [0, 1, 2].map(|group| (group, group as u64 + 1, "b".into())));
        for len in 0..bytes.len() {
            assert!(Chunks::new(bytes[..len].to_vec(), 1 << 20, None).is_err(), "{len}");
        }
        Ok(())
    }
}
