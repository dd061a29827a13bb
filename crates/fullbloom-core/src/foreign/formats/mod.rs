//! The formats of other programs' Bloom filters: one row each, from which opening, describing, converting,
//! documentation and tests derive.

mod guava;
mod parquet;
mod spark;

use std::f64::consts::LN_2;

use super::bits::BitFilter;
use super::key_type::KeyType;
use super::rules::Rule;
use crate::error::{Error, Result};

/// The order of the bytes of a word in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The highest first.
    Big,
    /// The lowest first.
    Little,
}

/// What the bytes before the bits state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Their number.
    pub len: usize,
    /// k.
    pub num_hashes: u32,
    /// Seed, 0 where there is none.
    pub seed: u32,
    /// m.
    pub num_bits: u64,
}

impl Head {
    /// The most bytes of a head.
    pub const MOST: usize = 32;
}

/// A format.
pub struct Format {
    /// Its number in files of ours, which never changes.
    pub number: u16,
    /// Its public name.
    pub name: &'static str,
    /// The program, or the specification.
    pub title: &'static str,
    /// Which bits a key sets.
    pub rule: Rule,
    /// The same for people.
    pub rule_in_words: &'static str,
    /// The types that keys can have. A file does not record which, unless there is only one.
    pub key_types: &'static [KeyType],
    /// What its program calls this choice.
    pub key_type_name: &'static str,
    /// True if its filters have a seed.
    pub is_seeded: bool,
    /// num_bits is a multiple of this.
    pub bits_step: u64,
    /// The most bits of a filter.
    pub most_bits: u64,
    /// The most hashes of a filter.
    pub most_hashes: u32,
    /// The order of bytes.
    pub order: Order,
    /// Reads the head from the first bytes, [`Head::MOST`] of them or all, of `len` in total; every length that it states is
    /// compared with `len`. Or which field is wrong.
    pub parse: fn(head: &[u8], len: u64) -> std::result::Result<Head, String>,
    /// The head of a filter.
    pub head: fn(&BitFilter) -> Vec<u8>,
    /// num_bits and num_hashes of a new filter; `None` beyond the largest.
    pub size: fn(capacity: u64, fpr: f64) -> Option<(u64, u32)>,
    /// How reading and writing were checked.
    pub verified: &'static str,
    /// What is not supported.
    pub limits: &'static str,
}

/// Bytes of the Parquet filter that begins with `head`, of [`Head::MOST`] bytes, with its header: some writers state them
/// nowhere else.
pub fn parquet_len(head: &[u8]) -> Result<u64> {
    let stated = parquet::stated_len(head).map_err(|why| parquet::SPLIT_BLOCK.refuse(why))?;
    Ok(stated.0 + stated.1 as u64)
}

/// All formats.
pub const ALL: &[&Format] = &[&spark::V2, &spark::V1, &guava::MITZ_64, &guava::MITZ_32, &parquet::SPLIT_BLOCK];

/// The format with this number.
pub fn numbered(number: u64) -> Option<&'static Format> {
    ALL.iter().copied().find(|format| u64::from(format.number) == number)
}

/// The format with this name.
pub fn named(name: &str) -> Result<&'static Format> {
    ALL.iter().copied().find(|format| format.name == name).ok_or_else(|| {
        let names: Vec<_> = ALL.iter().map(|format| format.name).collect();
        Error::parameter(format!("format must be one of {}, got {name:?}", names.join(", ")))
    })
}

/// The format of `len` bytes that begin with `head`, [`Head::MOST`] of them or all: the lengths that a file states fit in
/// one format at most.
pub fn detect(head: &[u8], len: u64) -> Option<&'static Format> {
    ALL.iter().copied().find(|format| (format.parse)(head, len).is_ok())
}

impl Format {
    /// The error for bytes of this format, which says what is wrong.
    pub fn refuse(&self, why: impl AsRef<str>) -> Error {
        Error::format(format!("these bytes are not a filter of format {:?}: {}", self.name, why.as_ref()))
    }

    /// Refuses keys of a type that the format does not have.
    pub fn check_key_type(&self, key_type: KeyType) -> Result<()> {
        if self.key_types.contains(&key_type) {
            return Ok(());
        }
        let (name, of, got) = (self.name, self.key_type_names(), key_type.name());
        Err(Error::parameter(format!("{} must be one of {of} in format {name:?}, got {got:?}", self.key_type_name)))
    }

    /// The type with this name; without a name, the only one.
    pub fn key_type(&self, name: Option<&str>) -> Result<KeyType> {
        if let Some(name) = name {
            let key_type = KeyType::named(name)?;
            return self.check_key_type(key_type).map(|()| key_type);
        }
        if let [only] = self.key_types {
            return Ok(*only);
        }
        let (format, of) = (self.name, self.key_type_names());
        let why = format!("filters of format {format:?} do not record the type of their keys; say which");
        Err(Error::parameter(format!("{why}: {}= one of {of}", self.key_type_name)))
    }

    fn key_type_names(&self) -> String {
        self.key_types.iter().map(|of| of.name()).collect::<Vec<_>>().join(", ")
    }
}

/// A big-endian number of 4 bytes at `at`.
fn i32_at(head: &[u8], at: usize) -> std::result::Result<i32, String> {
    let bytes = head.get(at..).and_then(<[u8]>::first_chunk::<4>);
    bytes.map(|bytes| i32::from_be_bytes(*bytes)).ok_or_else(|| "it ends within its header".into())
}

/// The bits of a filter whose head of `len` bytes states `words` words, in a file of `file` bytes.
fn stated_bits(words: i32, len: usize, file: u64) -> std::result::Result<u64, String> {
    let Some(count) = u64::try_from(words).ok().filter(|count| *count > 0) else {
        return Err(format!("its number of words is {words}"));
    };
    let (wanted, present) = (count * 8, file.saturating_sub(len as u64));
    if wanted != present {
        return Err(format!("it states {words} words, {wanted} bytes, and {present} bytes follow its header"));
    }
    Ok(count * 64)
}

/// `-n ln p / (ln 2)^2` down to a whole number, the bits of Spark and Guava.
fn optimal_bits(capacity: u64, fpr: f64) -> u64 {
    (-(capacity as f64) * fpr.ln() / (LN_2 * LN_2)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_lead_back_and_lies_are_refused() -> Result<()> {
        for &format in ALL {
            assert!(std::ptr::eq(named(format.name)?, format));
            let seed = if format.is_seeded { 7 } else { 0 };
            let filter = BitFilter::sized(format, format.key_types[0], seed, 1000, 0.01)?;
            let (head, len) = ((format.head)(&filter), filter.len_written());
            let mut bytes = Vec::new();
            filter.write(&mut bytes).map_err(|error| Error::Io(error, "test".into()))?;
            assert_eq!(bytes.len() as u64, len);
            let first = &bytes[..Head::MOST];
            assert!(detect(first, len).is_some_and(|found| found.number == format.number), "{}", format.name);
            let read = BitFilter::read(format, filter.key_type(), &mut &bytes[..], len, u64::MAX)?;
            assert!(read.equals(&filter));
            for other in ALL.iter().filter(|other| other.number != format.number) {
                assert!((other.parse)(first, len).is_err(), "{} as {}", format.name, other.name);
            }
            for lie in [0, 1, head.len() as u64, len - 1, len + 1, len + 8, len * 2, u64::MAX] {
                assert!((format.parse)(first, lie).is_err(), "{} {lie}", format.name);
            }
            for cut in 0..head.len() {
                assert!((format.parse)(&first[..cut], cut as u64).is_err());
            }
            // Without the bits that the head states nothing is allocated that the input does not fill.
            assert!(BitFilter::read(format, filter.key_type(), &mut &bytes[..100], len, u64::MAX).is_err());
            assert!(matches!(
                BitFilter::read(format, filter.key_type(), &mut &bytes[..], len, 8),
                Err(Error::Memory(_))
            ));
        }
        Ok(())
    }
}
