//! [`Record`]: one change in the log. It contains hashes, never keys.
//!
//! ```text
//! u32 length of what follows | u8 operation | u64 filter | body
//! ```
//! All numbers are little-endian. The body of an operation on keys is its hashes, 8 bytes each; if the keys are not texts,
//! the number of their types precedes the hashes. The body of a note is its expiry and the length of its settings (8 bytes
//! each), its settings, and its text.

use fullbloom_core::key::KeyDomains;

use crate::fault::{Code, Fault, Result};

/// One change of the filter with the number `id`, or of the catalogue.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // of fields: each variant says what it has
pub enum Record<'a> {
    /// Created a filter, replacing the owner of its name: its number, its settings as a line, the number of the file
    /// with its contents, if it has any, and its expiry, in milliseconds since 1970, if it has one.
    Create { id: u64, line: String, whole: Option<u64>, expires: Option<u64> },
    /// Dropped it.
    Drop { id: u64 },
    /// Renamed it, replacing the owner of the new name; and set its expiry, if any is given, 0 for never.
    Rename { id: u64, name: String, expires: Option<u64> },
    /// Set its expiry, in milliseconds since 1970; 0 means never.
    Expire { id: u64, at: u64 },
    /// Added keys of these domains.
    Add { id: u64, domains: KeyDomains, hashes: &'a [u64] },
    /// Removed keys.
    Remove { id: u64, hashes: &'a [u64] },
    /// Added keys of these domains with a value each.
    Pairs { id: u64, domains: KeyDomains, hashes: &'a [u64], values: &'a [u64] },
    /// Advanced the time.
    Advance { id: u64, now: f64 },
    /// Removed all keys.
    Clear { id: u64 },
    /// Replaced its contents by the file with this number.
    Replaced { id: u64, file: u64 },
    /// Loaded a chunk with this number.
    Piece { id: u64, number: i64, bytes: &'a [u8] },
    /// Freed the space of removed keys.
    Compact { id: u64 },
    /// Removed all keys of owners of a bank.
    ClearOwners { id: u64, owners: &'a [u64] },
    /// Removed owners of a bank with their keys.
    RemoveOwners { id: u64, owners: &'a [u64] },
    /// Set a note, replacing one of the same name: its settings as a line, its text, and its expiry, in milliseconds
    /// since 1970; 0 means never.
    Note { id: u64, expires: u64, line: &'a str, text: &'a [u8] },
}

/// A record read from the log.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRecord {
    /// The operation.
    pub op: u8,
    /// True if it was refused at one of its keys.
    pub refused: bool,
    /// The filter.
    pub id: u64,
    /// The body.
    pub body: Vec<u8>,
}

/// The numbers of operations.
pub mod op {
    #![allow(missing_docs)]
    pub const CREATE: u8 = 1;
    pub const DROP: u8 = 2;
    pub const RENAME: u8 = 3;
    pub const EXPIRE: u8 = 4;
    pub const ADD: u8 = 5;
    pub const REMOVE: u8 = 6;
    pub const PAIRS: u8 = 7;
    pub const ADVANCE: u8 = 8;
    pub const CLEAR: u8 = 9;
    pub const REPLACED: u8 = 10;
    pub const CREATE_WHOLE: u8 = 11;
    pub const PIECE: u8 = 12;
    pub const COMPACT: u8 = 13;
    pub const NOTE: u8 = 14;
    /// Marks an operation that was refused at one of its keys; the keys before that one were changed.
    pub const REFUSED: u8 = 0x80;
    /// [`CREATE`] or [`CREATE_WHOLE`] with an expiry: its time, the number of the file or 0, then the line.
    pub const CREATE_EXPIRING: u8 = 15;
    /// [`RENAME`] with an expiry: its time, 0 never, then the name.
    pub const RENAME_EXPIRING: u8 = 16;
    /// [`ADD`] of hashes, of keys of any domain.
    pub const ADD_HASHED: u8 = 17;
    pub const PAIRS_HASHED: u8 = 18;
    /// [`ADD`] of keys of some domains; the number of the domains precedes the hashes.
    pub const ADD_TYPED: u8 = 19;
    pub const PAIRS_TYPED: u8 = 20;
    pub const CLEAR_OWNERS: u8 = 21;
    pub const REMOVE_OWNERS: u8 = 22;

    /// True for operations on names, not on the contents of a filter.
    pub fn is_catalogue_op(op: u8) -> bool {
        matches!(op, CREATE | CREATE_WHOLE | CREATE_EXPIRING | DROP | RENAME | RENAME_EXPIRING | EXPIRE | NOTE)
    }
}

/// The bytes of length, operation and filter.
const HEAD: usize = 13;
/// The offset of the operation in a record.
pub(super) const OPERATION: usize = 4;

/// Selects the operation for keys of some domains: texts, any (hashes), or others, whose number it appends.
fn write_domains(out: &mut Vec<u8>, domains: KeyDomains, [text, hashed, typed]: [u8; 3]) -> u8 {
    match domains {
        KeyDomains::TEXT => text,
        KeyDomains::HASHED => hashed,
        _ => {
            out.extend_from_slice(&domains.number().to_le_bytes());
            typed
        }
    }
}

impl Record<'_> {
    /// Appends its bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; HEAD]);
        let words =
            |out: &mut Vec<u8>, words: &[u64]| words.iter().for_each(|w| out.extend_from_slice(&w.to_le_bytes()));
        let (op, id) = match self {
            Record::Create { id, line, whole, expires } => {
                let op = match expires {
                    Some(at) => {
                        words(out, &[*at, whole.unwrap_or(0)]);
                        op::CREATE_EXPIRING
                    }
                    None => {
                        words(out, whole.as_slice());
                        if whole.is_some() { op::CREATE_WHOLE } else { op::CREATE }
                    }
                };
                out.extend_from_slice(line.as_bytes());
                (op, *id)
            }
            Record::Drop { id } => (op::DROP, *id),
            Record::Rename { id, name, expires } => {
                words(out, expires.as_slice());
                out.extend_from_slice(name.as_bytes());
                (if expires.is_some() { op::RENAME_EXPIRING } else { op::RENAME }, *id)
            }
            Record::Expire { id, at } => {
                words(out, &[*at]);
                (op::EXPIRE, *id)
            }
            Record::Add { id, domains, hashes } => {
                let op = write_domains(out, *domains, [op::ADD, op::ADD_HASHED, op::ADD_TYPED]);
                words(out, hashes);
                (op, *id)
            }
            Record::Remove { id, hashes } => {
                words(out, hashes);
                (op::REMOVE, *id)
            }
            Record::Pairs { id, domains, hashes, values } => {
                let op = write_domains(out, *domains, [op::PAIRS, op::PAIRS_HASHED, op::PAIRS_TYPED]);
                words(out, hashes);
                words(out, values);
                (op, *id)
            }
            Record::Advance { id, now } => {
                words(out, &[now.to_bits()]);
                (op::ADVANCE, *id)
            }
            Record::Clear { id } => (op::CLEAR, *id),
            Record::Replaced { id, file } => {
                words(out, &[*file]);
                (op::REPLACED, *id)
            }
            Record::Piece { id, number, bytes } => {
                out.extend_from_slice(&number.to_le_bytes());
                out.extend_from_slice(bytes);
                (op::PIECE, *id)
            }
            Record::Compact { id } => (op::COMPACT, *id),
            Record::ClearOwners { id, owners } => {
                words(out, owners);
                (op::CLEAR_OWNERS, *id)
            }
            Record::RemoveOwners { id, owners } => {
                words(out, owners);
                (op::REMOVE_OWNERS, *id)
            }
            Record::Note { id, expires, line, text } => {
                words(out, &[*expires, line.len() as u64]);
                out.extend_from_slice(line.as_bytes());
                out.extend_from_slice(text);
                (op::NOTE, *id)
            }
        };
        let length = (out.len() - start - 4) as u32;
        out[start..start + 4].copy_from_slice(&length.to_le_bytes());
        out[start + 4] = op;
        out[start + 5..start + HEAD].copy_from_slice(&id.to_le_bytes());
    }
}

impl StoredRecord {
    /// Parses the next record of `bytes`; returns it with its length, or `None` at the end.
    pub fn next(bytes: &[u8]) -> Result<Option<(StoredRecord, usize)>> {
        let wrong = || Fault::new(Code::Format, "a record is cut short");
        let Some((length, rest)) = bytes.split_first_chunk::<4>() else {
            return if bytes.is_empty() { Ok(None) } else { Err(wrong()) };
        };
        let length = u32::from_le_bytes(*length) as usize;
        let record = rest.get(..length).ok_or_else(wrong)?;
        let (op, record) = record.split_first().ok_or_else(wrong)?;
        let (id, body) = record.split_first_chunk::<8>().ok_or_else(wrong)?;
        let (refused, op) = (op & op::REFUSED != 0, op & !op::REFUSED);
        Ok(Some((StoredRecord { op, refused, id: u64::from_le_bytes(*id), body: body.to_vec() }, 4 + length)))
    }

    /// The body as words.
    pub fn words(&self) -> Vec<u64> {
        self.body.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
    }

    /// The domains and hashes of added keys; values follow the hashes.
    pub fn keys(&self) -> Result<(KeyDomains, Vec<u64>)> {
        let mut words = self.words();
        let domains = match self.op {
            op::ADD_HASHED | op::PAIRS_HASHED => KeyDomains::HASHED,
            op::ADD_TYPED | op::PAIRS_TYPED if !words.is_empty() => KeyDomains::from_number(words.remove(0))
                .ok_or_else(|| Fault::new(Code::Format, "the log has keys of an unknown type; use a newer release"))?,
            _ => KeyDomains::TEXT,
        };
        Ok((domains, words))
    }

    /// The number of the file that the record names.
    pub fn file(&self) -> Option<u64> {
        match self.op {
            op::REPLACED | op::CREATE_WHOLE => self.word(0),
            op::CREATE_EXPIRING => self.word(1).filter(|&file| file != 0),
            _ => None,
        }
    }

    /// The expiry that the record sets, in milliseconds since 1970; `Some(None)` means never, `None` sets none.
    pub fn expires(&self) -> Option<Option<u64>> {
        let says = matches!(self.op, op::EXPIRE | op::CREATE_EXPIRING | op::RENAME_EXPIRING);
        says.then(|| self.word(0).filter(|&at| at != 0))
    }

    /// The text after the numbers: the settings of a new filter, or a new name.
    pub fn text(&self) -> Result<&str> {
        let words = match self.op {
            op::CREATE_EXPIRING => 2,
            op::CREATE_WHOLE | op::RENAME_EXPIRING => 1,
            _ => 0,
        };
        std::str::from_utf8(self.body.get(words * 8..).unwrap_or_default())
            .map_err(|_| Fault::new(Code::Format, "a record's text is not UTF-8"))
    }

    fn word(&self, at: usize) -> Option<u64> {
        self.body.as_chunks::<8>().0.get(at).map(|word| u64::from_le_bytes(*word))
    }

    /// The expiry, settings and text of a note.
    pub fn note(&self) -> Result<(u64, &str, &[u8])> {
        let wrong = || Fault::new(Code::Format, "a record of a note cannot be parsed");
        let (words, rest) = self.body.split_first_chunk::<16>().ok_or_else(wrong)?;
        let word = |at: usize| words[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        let length = usize::try_from(word(8)).map_err(|_| wrong())?;
        let (line, text) = rest.split_at_checked(length).ok_or_else(wrong)?;
        Ok((word(0), std::str::from_utf8(line).map_err(|_| wrong())?, text))
    }
}

#[cfg(test)]
mod tests {
    use fullbloom_core::key::Domain;

    use super::*;

    #[test]
    fn records_round_trip_and_truncated_ones_are_refused() -> Result<()> {
        let mut bytes = Vec::new();
        Record::Add { id: 7, domains: KeyDomains::TEXT, hashes: &[1, u64::MAX] }.write(&mut bytes);
        Record::Rename { id: 8, name: "x".into(), expires: None }.write(&mut bytes);
        let (first, length) = StoredRecord::next(&bytes)?.unwrap_or_else(|| unreachable!());
        assert_eq!((first.op, first.id, first.words()), (op::ADD, 7, vec![1, u64::MAX]));
        let (second, _) = StoredRecord::next(&bytes[length..])?.unwrap_or_else(|| unreachable!());
        assert_eq!((second.op, second.id, second.text()?), (op::RENAME, 8, "x"));
        for cut in 1..length {
            assert!(StoredRecord::next(&bytes[..cut]).is_err(), "{cut}");
        }
        let mut bytes = Vec::new();
        Record::Note { id: 9, expires: 5, line: "a line", text: b"a text" }.write(&mut bytes);
        let (mut note, _) = StoredRecord::next(&bytes)?.unwrap_or_else(|| unreachable!());
        assert_eq!((note.op, note.id, note.note()?), (op::NOTE, 9, (5, "a line", b"a text".as_slice())));
        note.body.truncate(21);
        assert!(note.note().is_err());
        Ok(())
    }

    #[test]
    fn domains_of_keys_round_trip() -> Result<()> {
        let (text, int) = (KeyDomains::TEXT, KeyDomains::of(Domain::Integer));
        for (domains, op) in
            [(int, op::ADD_TYPED), (int.with(text), op::ADD_TYPED), (KeyDomains::HASHED, op::ADD_HASHED)]
        {
            let mut bytes = Vec::new();
            Record::Add { id: 7, domains, hashes: &[1, 2] }.write(&mut bytes);
            let (read, _) = StoredRecord::next(&bytes)?.unwrap_or_else(|| unreachable!());
            assert_eq!((read.op, read.keys()?), (op, (domains, vec![1, 2])));
            let mut bytes = Vec::new();
            Record::Pairs { id: 7, domains, hashes: &[1], values: &[5] }.write(&mut bytes);
            let (read, _) = StoredRecord::next(&bytes)?.unwrap_or_else(|| unreachable!());
            assert_eq!((read.op, read.keys()?), (op + 1, (domains, vec![1, 5])));
        }
        let mut bytes = Vec::new();
        Record::Add { id: 7, domains: KeyDomains::TEXT, hashes: &[1, 2] }.write(&mut bytes);
        let (mut read, _) = StoredRecord::next(&bytes)?.unwrap_or_else(|| unreachable!());
        assert_eq!(read.keys()?, (text, vec![1, 2]));
        read.op = op::ADD_TYPED;
        read.body[7] = 255;
        assert!(read.keys().is_err());
        Ok(())
    }

    #[test]
    fn records_that_create_or_rename_contain_the_expiry() -> Result<()> {
        let line = || "a line".to_string();
        let name = || "a name".to_string();
        // The bytes of records in a log never change: the operation, then the body.
        type Known<'a> = (Record<'a>, u8, &'a [u64], Option<u64>, Option<Option<u64>>);
        let known: [Known<'_>; 6] = [
            (Record::Create { id: 1, line: line(), whole: None, expires: None }, 1, &[], None, None),
            (Record::Create { id: 1, line: line(), whole: Some(7), expires: None }, 11, &[7], Some(7), None),
            (Record::Create { id: 1, line: line(), whole: None, expires: Some(5) }, 15, &[5, 0], None, Some(Some(5))),
            (
                Record::Create { id: 1, line: line(), whole: Some(7), expires: Some(5) },
                15,
                &[5, 7],
                Some(7),
                Some(Some(5)),
            ),
            (Record::Rename { id: 1, name: name(), expires: None }, 3, &[], None, None),
            (Record::Rename { id: 1, name: name(), expires: Some(0) }, 16, &[0], None, Some(None)),
        ];
        for (record, op, words, file, expires) in known {
            let mut bytes = Vec::new();
            record.write(&mut bytes);
            let (read, _) = StoredRecord::next(&bytes)?.unwrap_or_else(|| unreachable!());
            let text = if matches!(record, Record::Create { .. }) { line() } else { name() };
            let body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).chain(text.bytes()).collect();
            assert_eq!((read.op, &read.body, read.file(), read.expires()), (op, &body, file, expires), "{record:?}");
            assert_eq!(read.text()?, text);
        }
        Ok(())
    }
}
