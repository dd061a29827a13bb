//! The places of the filters of a Parquet file, from its footer.
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

/// The chunks of `column`, or of all columns, in a file of `file` bytes with this footer. No filter is outside of the bytes
/// before the footer.
pub fn chunks(footer: &[u8], file: u64, column: Option<&str>) -> Result<Vec<Chunk>> {
    let end = file.saturating_sub((footer.len() + TAIL) as u64);
    let chunks = read(footer, column).map_err(|why| refuse(&format!("its footer: {why}")))?;
    for chunk in &chunks {
        let Some(offset) = chunk.offset else { continue };
        let last = offset.checked_add(chunk.length.unwrap_or(1));
        if offset < MAGIC.len() as u64 || last.is_none_or(|last| last > end) {
            let (name, group) = (&chunk.column, chunk.row_group);
            return Err(refuse(&format!(
                "the filter of column {name:?} in row group {group} lies outside of the file"
            )));
        }
    }
    Ok(chunks)
}

fn read(footer: &[u8], column: Option<&str>) -> thrift::Result<Vec<Chunk>> {
    let (mut chunks, mut version, mut groups) = (Vec::new(), None, 0);
    Reader::new(footer).fields(|reader, id, of| match (id, of) {
        (1, kind::I32) => {
            version = Some(reader.number()?);
            Ok(true)
        }
        (4, kind::LIST) => {
            let (of, len) = reader.list()?;
            if of != kind::STRUCT && len > 0 {
                return Err("its row groups are no structs");
            }
            for _ in 0..len {
                read_group(reader, groups, column, &mut chunks)?;
                groups += 1;
            }
            Ok(true)
        }
        _ => Ok(false),
    })?;
    match version {
        Some(1 | 2) => Ok(chunks),
        Some(_) => Err("its version is neither 1 nor 2"),
        None => Err("it states no version"),
    }
}

fn read_group(
    reader: &mut Reader<'_>,
    row_group: usize,
    column: Option<&str>,
    chunks: &mut Vec<Chunk>,
) -> thrift::Result<()> {
    let (first, mut num_rows) = (chunks.len(), 0);
    reader.fields(|reader, id, of| match (id, of) {
        (1, kind::LIST) => {
            let (of, len) = reader.list()?;
            if of != kind::STRUCT && len > 0 {
                return Err("its columns are no structs");
            }
            for _ in 0..len {
                let chunk = read_chunk(reader)?;
                if column.is_none_or(|column| column == chunk.column) {
                    chunks.push(Chunk { row_group, ..chunk });
                }
            }
            Ok(true)
        }
        (3, kind::I64) => {
            num_rows = u64::try_from(reader.number()?).map_err(|_| "a row group has fewer than 0 rows")?;
            Ok(true)
        }
        _ => Ok(false),
    })?;
    chunks.iter_mut().skip(first).for_each(|chunk| chunk.num_rows = num_rows);
    Ok(())
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
    // A column of no bytes would take a hundred in memory.
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
        // Structs within structs, and lists that state more items than bytes.
        assert!(chunks(&[0x1c; 5000], 1 << 20, None).is_err());
        assert!(chunks(&[0x19, 0xf9, 0xff, 0xff, 0xff, 0xff, 0x0f], 1 << 20, None).is_err());
        assert!(chunks(&[0x18, 0xff, 0xff, 0xff, 0xff, 0x0f], 1 << 20, None).is_err());
        assert!(chunks(&[0x1b, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x11], 1 << 20, None).is_err());
    }
}
