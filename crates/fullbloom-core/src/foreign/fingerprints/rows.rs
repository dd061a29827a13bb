//! [`FingerprintFormat`]: one row of the table.

use super::shape::{Family, Shape};
use crate::error::{Error, Result};
use crate::foreign::formats::KeyChoice;
use crate::foreign::key_type::KeyType;

/// A format.
pub struct FingerprintFormat {
    /// Its number in files of ours, which never changes; formats of Bloom filters have others.
    pub number: u16,
    /// Its public name.
    pub name: &'static str,
    /// The program.
    pub title: &'static str,
    /// Which cells a key has.
    pub(super) family: Family,
    /// Bits of a cell, 8 or 16.
    pub width: u32,
    /// Bytes behind the cells, which the program counts but never writes: zeros.
    pub(super) tail: usize,
    /// The cells of a key for people.
    pub rule_in_words: &'static str,
    /// How reading and writing were checked.
    pub verified: &'static str,
    /// What is not supported.
    pub limits: &'static str,
}

/// The types of keys of every format here.
pub const KEY_TYPES: &[KeyType] = &[KeyType::Printed, KeyType::Word];

const XOR8: FingerprintFormat = FingerprintFormat {
    number: 44,
    name: "xor8",
    title: "xor_singleheader xor8, pyfusefilter Xor8",
    family: Family::Xor,
    width: 8,
    tail: 0,
    rule_in_words: "Murmur3's finalizer of key and seed, three cells in three blocks",
    verified: "both directions against pyfusefilter 1.3",
    limits: "static: nothing can be added; seed and cells are ours, pyfusefilter's depend on fresh memory",
};
const XOR16: FingerprintFormat = FingerprintFormat {
    number: 45,
    name: "xor16",
    title: "xor_singleheader xor16, pyfusefilter Xor16",
    width: 16,
    ..XOR8
};
const FUSE8: FingerprintFormat = FingerprintFormat {
    number: 46,
    name: "fuse8",
    title: "xor_singleheader binary_fuse8, pyfusefilter Fuse8",
    family: Family::Fuse,
    rule_in_words: "Murmur3's finalizer of key and seed, three cells in three neighbouring segments",
    limits: "static: nothing can be added; packed dumps (binary_fuse8_pack) are not read",
    ..XOR8
};
const FUSE16: FingerprintFormat = FingerprintFormat {
    number: 47,
    name: "fuse16",
    title: "xor_singleheader binary_fuse16, pyfusefilter Fuse16",
    width: 16,
    tail: 4,
    limits: "static: nothing can be added; packed dumps (binary_fuse16_pack) are not read",
    ..FUSE8
};

/// All formats.
pub const ALL: &[&FingerprintFormat] = &[&XOR8, &XOR16, &FUSE8, &FUSE16];

/// The format with this number.
pub(super) fn numbered(number: u64) -> Option<&'static FingerprintFormat> {
    ALL.iter().copied().find(|format| u64::from(format.number) == number)
}

/// The format with this name.
pub fn named(name: &str) -> Result<&'static FingerprintFormat> {
    ALL.iter().copied().find(|format| format.name == name).ok_or_else(|| {
        let names: Vec<_> = ALL.iter().map(|format| format.name).collect();
        Error::parameter(format!("format must be one of {}, got {name:?}", names.join(", ")))
    })
}

/// The format of `len` bytes that begin with `head`: see [`detect`](crate::foreign::formats::detect).
pub fn detect(head: &[u8], len: u64) -> Option<&'static FingerprintFormat> {
    ALL.iter().copied().find(|format| format.parse(head, len).is_ok())
}

impl FingerprintFormat {
    /// The seed and the shape that the first bytes of `len` state; or which field is wrong.
    pub(super) fn parse(&self, head: &[u8], len: u64) -> std::result::Result<(u64, Shape), String> {
        let (seed, shape) = self.family.parse(head)?;
        let (cells, head_len) = (shape.num_cells(), self.family.head_len() as u64);
        let wanted = cells * u64::from(self.width / 8) + self.tail as u64;
        let present = len.saturating_sub(head_len);
        if wanted != present {
            return Err(format!("it states {cells} cells, {wanted} bytes, and {present} bytes follow its header"));
        }
        Ok((seed, shape))
    }

    /// The error for bytes of this format, which says what is wrong.
    pub fn refuse(&self, why: impl AsRef<str>) -> Error {
        Error::format(format!("these bytes are not a filter of format {:?}: {}", self.name, why.as_ref()))
    }

    /// The types of its keys.
    pub fn keys(&self) -> KeyChoice {
        KeyChoice { format: self.name, types: KEY_TYPES, called: "key_type" }
    }
}
