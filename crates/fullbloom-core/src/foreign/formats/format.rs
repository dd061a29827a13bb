//! [`Format`]: one row of the table.

use super::contents::Contents;
use super::layout::BitLayout;
use crate::container::{FOREIGN, class_of};
use crate::error::{Error, Result};
use crate::foreign::key_type::KeyType;

/// A format.
pub struct Format {
    /// Its number in files of ours, which never changes.
    pub number: u16,
    /// Its public name.
    pub name: &'static str,
    /// The program whose formats these are, in one word.
    pub program: &'static str,
    /// The program and what writes it, or the specification.
    pub title: &'static str,
    /// What a key sets, for people.
    pub rule_in_words: &'static str,
    /// The types that keys can have. A file does not record which, unless there is only one.
    pub key_types: &'static [KeyType],
    /// What its program calls this choice.
    pub key_type_name: &'static str,
    /// What its bytes hold.
    pub contents: Contents,
    /// True if the first bytes and the length suffice to know such bytes.
    pub is_detected: bool,
    /// True if such bytes are written, too: a filter has all that its program records.
    pub is_written: bool,
    /// The layout and the hash of our own filter that sets the same bits for texts.
    pub own: Option<OwnLayout>,
    /// How reading and writing were checked.
    pub verified: &'static str,
    /// What is not supported.
    pub limits: &'static str,
}

/// The filter of ours that sets the same bits for texts.
pub struct OwnLayout {
    /// Its layout.
    pub layout: &'static str,
    /// Its hash, with seed 0.
    pub hash: &'static str,
}

impl Format {
    /// The most first bytes that tell a format: all of a filter of Bitcoin, and the longest header of a dump.
    pub const HEAD: usize = 64 << 10;

    /// The error for bytes of this format, which says what is wrong.
    pub fn refuse(&self, why: impl AsRef<str>) -> Error {
        Error::format(format!("these bytes are not a filter of format {:?}: {}", self.name, why.as_ref()))
    }

    /// The error for a filter of this format that cannot become one of another.
    pub fn refuse_conversion(&self, to: &Format) -> Error {
        Error::Incompatible(format!(
            "a filter of format {:?} cannot become one of {:?}: its keys set the bits of {}, the other's those of {}, and \
             a filter does not contain its keys; add them to a new one",
            self.name, to.name, self.rule_in_words, to.rule_in_words
        ))
    }

    /// The error for a filter of this format that has more bytes of cells than the caller allows.
    pub(in crate::foreign) fn check_size(&self, bytes: u64, max_bytes: u64) -> Result<()> {
        if bytes <= max_bytes {
            return Ok(());
        }
        Err(Error::Memory(format!(
            "the filter has {bytes} bytes, max_bytes is {max_bytes}; raise it if you trust the file"
        )))
    }

    /// True if `len` bytes that begin with `head`, [`Format::HEAD`] of them or all, are of this format.
    pub(super) fn may_hold(&self, head: &[u8], len: u64) -> bool {
        self.is_detected && self.contents.fit(head, len)
    }

    /// How its bits are laid out; an error for a format of another class.
    pub fn bits(&'static self) -> Result<&'static BitLayout> {
        match &self.contents {
            Contents::Bits(layout) => Ok(layout),
            _ => Err(self.class_error(class_of(FOREIGN))),
        }
    }

    /// Refuses a format whose filters are of another class than `class`.
    pub fn check_class(&self, class: &str) -> Result<()> {
        if self.contents.class() == class { Ok(()) } else { Err(self.class_error(class)) }
    }

    fn class_error(&self, class: &str) -> Error {
        let (name, own) = (self.name, self.contents.class());
        Error::parameter(format!("filters of format {name:?} are of class {own}, not {class}"))
    }

    /// True if its bytes are the bits alone, so that the caller says how many, and how many hashes.
    pub fn is_bare(&self) -> bool {
        matches!(&self.contents, Contents::Bits(layout) if layout.is_bare)
    }

    /// True if the hash of the block is needed to read its bytes.
    pub fn needs_block_hash(&self) -> bool {
        matches!(self.contents, Contents::GolombSet)
    }

    /// The type with this name; without a name, the only one.
    pub fn key_type(&self, name: Option<&str>) -> Result<KeyType> {
        if let Some(name) = name {
            let key_type = KeyType::from_name(name)?;
            return self.check_key_type(key_type).map(|()| key_type);
        }
        if let [only] = self.key_types {
            return Ok(*only);
        }
        let (format, of) = (self.name, self.name_key_types());
        let why = format!("filters of format {format:?} do not record the type of their keys; say which");
        Err(Error::parameter(format!("{why}: {}= one of {of}", self.key_type_name)))
    }

    /// Refuses keys of a type that the format does not have.
    pub fn check_key_type(&self, key_type: KeyType) -> Result<()> {
        if self.key_types.contains(&key_type) {
            return Ok(());
        }
        let (name, called, got) = (self.name, self.key_type_name, key_type.name());
        let of = if self.key_types.len() == 1 { String::new() } else { "one of ".into() } + &self.name_key_types();
        Err(Error::parameter(format!("{called} must be {of} in format {name:?}, got {got:?}")))
    }

    fn name_key_types(&self) -> String {
        self.key_types.iter().map(|of| of.name()).collect::<Vec<_>>().join(", ")
    }
}
