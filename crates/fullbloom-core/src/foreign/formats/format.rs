//! [`Format`]: one row of the table.

use super::frame::Frame;
use super::head::{Head, Shape};
use super::order::Order;
use crate::error::{Error, Result};
use crate::foreign::key_type::KeyType;
use crate::foreign::rules::{Range, Rule, Seed};

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
    /// The head of a filter of this shape.
    pub head: fn(&Shape) -> Vec<u8>,
    /// What is behind the bits, and what may be done with such bytes.
    pub frame: Frame,
    /// num_bits and num_hashes of a new filter; `None` beyond the largest.
    pub size: fn(capacity: u64, fpr: f64) -> Option<(u64, u32)>,
    /// How reading and writing were checked.
    pub verified: &'static str,
    /// What is not supported.
    pub limits: &'static str,
}

impl Format {
    /// The error for bytes of this format, which says what is wrong.
    pub fn refuse(&self, why: impl AsRef<str>) -> Error {
        Error::format(format!("these bytes are not a filter of format {:?}: {}", self.name, why.as_ref()))
    }

    /// The types of its keys.
    pub fn keys(&self) -> KeyChoice {
        KeyChoice { format: self.name, types: self.key_types, called: self.key_type_name }
    }

    /// The head of a filter of this shape in `len` bytes, which state none: those of a bare format.
    pub(in crate::foreign) fn head_of(&self, shape: Range, len: u64) -> Result<Head> {
        let Range { num_bits, num_hashes } = shape;
        if !self.rule.is_bare() {
            let why = "num_bits and num_hashes are for formats of bits alone";
            return Err(Error::parameter(format!("{why}; bytes of format {:?} state them", self.name)));
        }
        if !num_bits.is_multiple_of(self.bits_step) {
            return Err(self.refuse(format!("num_bits is {num_bits}, not a multiple of {}", self.bits_step)));
        }
        if num_bits.div_ceil(8) != len {
            let wanted = num_bits.div_ceil(8);
            return Err(self.refuse(format!("{num_bits} bits take {wanted} bytes, and there are {len}")));
        }
        Ok(Head { len: 0, num_hashes, seed: Seed::NONE, num_bits })
    }

    /// Refuses keys of a type that the format does not have.
    pub fn check_key_type(&self, key_type: KeyType) -> Result<()> {
        self.keys().check(key_type)
    }

    /// The type with this name; without a name, the only one.
    pub fn key_type(&self, name: Option<&str>) -> Result<KeyType> {
        self.keys().named(name)
    }
}

/// The types that the keys of a format can have.
#[derive(Clone, Copy)]
pub struct KeyChoice {
    /// Name of the format.
    pub format: &'static str,
    /// The types.
    pub types: &'static [KeyType],
    /// What the program calls the choice.
    pub called: &'static str,
}

impl KeyChoice {
    /// Refuses another type.
    pub fn check(self, key_type: KeyType) -> Result<()> {
        if self.types.contains(&key_type) {
            return Ok(());
        }
        let (name, of, got) = (self.format, self.names(), key_type.name());
        Err(Error::parameter(format!("{} must be one of {of} in format {name:?}, got {got:?}", self.called)))
    }

    /// The type with this name; without a name, the only one.
    pub fn named(self, name: Option<&str>) -> Result<KeyType> {
        if let Some(name) = name {
            let key_type = KeyType::named(name)?;
            return self.check(key_type).map(|()| key_type);
        }
        if let [only] = self.types {
            return Ok(*only);
        }
        let (format, of) = (self.format, self.names());
        let why = format!("filters of format {format:?} do not record the type of their keys; say which");
        Err(Error::parameter(format!("{why}: {}= one of {of}", self.called)))
    }

    fn names(self) -> String {
        self.types.iter().map(|of| of.name()).collect::<Vec<_>>().join(", ")
    }
}
