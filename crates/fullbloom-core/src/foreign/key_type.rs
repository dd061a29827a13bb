//! [`KeyType`]: the keys that a filter of another program takes, and the bytes that its hash sees.

use std::io::Write;

use super::rules::Digest;
use crate::error::{Error, Result};
use crate::key::Domain;

/// The type of the keys of a filter. Most formats do not record it; files of ours contain the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum KeyType {
    /// Integers as 8 bytes, texts and bytes as they are.
    Any = 1,
    /// Integers as 8 little-endian bytes.
    Long = 2,
    /// Integers as 4 little-endian bytes.
    Int = 3,
    /// Texts as UTF-8, and bytes.
    Bytes = 4,
    /// Texts as UTF-16, little-endian.
    Utf16 = 5,
    /// Floats as the 4 bytes of IEEE 754.
    Float = 6,
    /// Floats as the 8 bytes of IEEE 754.
    Double = 7,
    /// Integers of up to 16 bytes: hashes that a function of the caller returned.
    Hash = 8,
    /// Texts as UTF-8, and integers as their decimal digits.
    Printed = 40,
    /// Integers as their lowest 64 bits.
    Word = 41,
}

/// Characters of the longest integer of 64 bits.
const DIGITS: usize = 20;
/// UTF-8 bytes of a text whose UTF-16 is written on the stack.
const SHORT: usize = 256;

impl KeyType {
    /// Every one.
    pub const ALL: [KeyType; 10] = [
        KeyType::Any,
        KeyType::Long,
        KeyType::Int,
        KeyType::Bytes,
        KeyType::Utf16,
        KeyType::Float,
        KeyType::Double,
        KeyType::Hash,
        KeyType::Printed,
        KeyType::Word,
    ];

    /// Its public name.
    pub fn name(self) -> &'static str {
        match self {
            KeyType::Any => "any",
            KeyType::Long => "long",
            KeyType::Int => "int",
            KeyType::Bytes => "bytes",
            KeyType::Utf16 => "utf-16",
            KeyType::Float => "float",
            KeyType::Double => "double",
            KeyType::Hash => "hash",
            KeyType::Printed => "str",
            KeyType::Word => "uint64",
        }
    }

    /// The keys that it takes, for messages.
    pub fn describe(self) -> &'static str {
        match self {
            KeyType::Any => "str, bytes and int of 64 bits",
            KeyType::Long => "int of 64 bits",
            KeyType::Int => "int of 32 bits",
            KeyType::Bytes => "str, hashed as UTF-8, and bytes",
            KeyType::Utf16 => "str",
            KeyType::Float => "float that 32 bits represent",
            KeyType::Double => "float",
            KeyType::Hash => "int of 128 bits, the hash of a key",
            KeyType::Printed => "str, and int of 64 bits, hashed as its digits",
            KeyType::Word => "int from -2**63 to 2**64 - 1",
        }
    }

    /// The type with this number.
    pub fn from_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|of| *of as u64 == number)
    }

    /// The type with this name; "utf-8" is another name of "bytes".
    pub fn from_name(name: &str) -> Result<Self> {
        let name = if name == "utf-8" { KeyType::Bytes.name() } else { name };
        Self::ALL.into_iter().find(|of| of.name() == name).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|of| of.name()).collect();
            Error::parameter(format!("key_type must be one of {} or utf-8, got {name:?}", names.join(", ")))
        })
    }

    /// Passes the bytes of a key to `hash`; `None` if its type is another one. `bytes` are the key's canonical ones.
    #[inline(always)]
    pub fn feed(self, domain: Domain, bytes: &[u8], hash: impl Fn(&[u8]) -> Digest) -> Option<Digest> {
        match (self, domain) {
            (KeyType::Any | KeyType::Bytes | KeyType::Printed, Domain::Text) => Some(hash(bytes)),
            (KeyType::Any | KeyType::Long | KeyType::Word, Domain::Integer) if bytes.len() == 8 => Some(hash(bytes)),
            _ => self.feed_other(domain, bytes, &hash),
        }
    }

    #[inline(never)]
    fn feed_other(self, domain: Domain, bytes: &[u8], hash: &dyn Fn(&[u8]) -> Digest) -> Option<Digest> {
        let word = || bytes.try_into().ok().map(u64::from_le_bytes);
        match (self, domain) {
            (KeyType::Int, Domain::Integer) => {
                let int = i32::try_from(word()? as i64).ok()?;
                Some(hash(&int.to_le_bytes()))
            }
            (KeyType::Double, Domain::Float) => Some(hash(bytes)),
            (KeyType::Hash, Domain::Integer) if bytes.len() <= 16 => Some(hash(bytes)),
            (KeyType::Printed, Domain::Integer) => {
                let (mut digits, value) = ([0; DIGITS], word()? as i64);
                let mut left = &mut digits[..];
                write!(left, "{value}").ok()?;
                let unused = left.len();
                Some(hash(&digits[..DIGITS - unused]))
            }
            // From 2^63 on, integers take a ninth byte for their sign.
            (KeyType::Word, Domain::Integer) => match bytes.split_last_chunk::<1>()? {
                (word, [0]) if word.len() == 8 => Some(hash(word)),
                _ => None,
            },
            (KeyType::Float, Domain::Float) => {
                let double = f64::from_bits(word()?);
                let float = double as f32;
                (f64::from(float) == double || double.is_nan()).then(|| hash(&float.to_le_bytes()))
            }
            (KeyType::Utf16, Domain::Text) => {
                let text = str::from_utf8(bytes).ok()?;
                let (mut short, mut long) = ([0; 2 * SHORT], Vec::new());
                let units = text.encode_utf16().flat_map(u16::to_le_bytes);
                if text.len() > SHORT {
                    long.extend(units);
                    return Some(hash(&long));
                }
                // A text has no more UTF-16 units than UTF-8 bytes.
                let len = short.iter_mut().zip(units).map(|(at, byte)| *at = byte).count();
                Some(hash(&short[..len]))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed_key(of: KeyType, domain: Domain, bytes: &[u8]) -> Option<Vec<u8>> {
        let seen = std::cell::RefCell::new(Vec::new());
        let hash = |bytes: &[u8]| {
            *seen.borrow_mut() = bytes.to_vec();
            [0; 2]
        };
        of.feed(domain, bytes, hash).map(|_| seen.take())
    }

    #[test]
    fn keys_of_another_type_are_refused() {
        let (one, big) = (1i64.to_le_bytes(), (1i64 << 31).to_le_bytes());
        assert_eq!(feed_key(KeyType::Int, Domain::Integer, &one), Some(vec![1, 0, 0, 0]));
        assert_eq!(feed_key(KeyType::Int, Domain::Integer, &big), None);
        assert_eq!(feed_key(KeyType::Long, Domain::Integer, &big), Some(big.to_vec()));
        assert_eq!(feed_key(KeyType::Long, Domain::Integer, &[0; 9]), None);
        assert_eq!(feed_key(KeyType::Long, Domain::Text, &one), None);
        assert_eq!(feed_key(KeyType::Bytes, Domain::Integer, &one), None);
        assert_eq!(feed_key(KeyType::Any, Domain::Float, &one), None);
        assert_eq!(
            feed_key(KeyType::Printed, Domain::Integer, &i64::MIN.to_le_bytes()),
            Some(i64::MIN.to_string().into())
        );
        assert_eq!(feed_key(KeyType::Printed, Domain::Integer, &[0; 9]), None);
        assert_eq!(
            feed_key(KeyType::Word, Domain::Integer, &[255, 255, 255, 255, 255, 255, 255, 255, 0]),
            Some(vec![255; 8])
        );
        assert_eq!(feed_key(KeyType::Word, Domain::Integer, &[255; 9]), None);
        assert_eq!(feed_key(KeyType::Word, Domain::Text, &one), None);
        assert_eq!(feed_key(KeyType::Float, Domain::Float, &0.1f64.to_le_bytes()), None);
        assert_eq!(feed_key(KeyType::Float, Domain::Float, &0.5f64.to_le_bytes()), Some(0.5f32.to_le_bytes().to_vec()));
    }

    #[test]
    fn texts_of_any_length_are_written_as_utf16() {
        for text in ["", "a", "é日🔑", &"é".repeat(127), &"é".repeat(128), &"é".repeat(129), &"x".repeat(5000)] {
            let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            assert_eq!(feed_key(KeyType::Utf16, Domain::Text, text.as_bytes()), Some(units));
        }
        assert_eq!(feed_key(KeyType::Utf16, Domain::Text, b"\xff"), None);
    }

    #[test]
    fn names_and_numbers_lead_back() -> Result<()> {
        for of in KeyType::ALL {
            assert_eq!((KeyType::from_name(of.name())?, KeyType::from_number(of as u64)), (of, Some(of)));
        }
        assert_eq!(KeyType::from_name("utf-8")?, KeyType::Bytes);
        assert!(KeyType::from_name("string").is_err() && KeyType::from_number(0).is_none());
        Ok(())
    }
}
