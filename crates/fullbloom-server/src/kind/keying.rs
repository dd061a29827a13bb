//! [`Keying`]: how a text becomes the words that identify a key.

use std::ops::Range;

use fullbloom_core::key::DomainHasher;

use crate::fault::{Fault, Result};

/// Appends the words of a key.
pub type Words = fn(&[u8], &mut Vec<u64>);

/// How a text becomes the words that identify a key in a filter and in the log.
#[derive(Clone, Copy)]
pub enum Keying {
    /// One word, the hash of the key rule.
    Own(DomainHasher),
    /// The key rule's hashes of an owner and of a key: each key is two texts.
    Pairs(DomainHasher),
    /// Several words, as another program computes them.
    Foreign(usize, Words),
}

impl Keying {
    /// Appends the words of a text.
    #[inline(always)]
    pub fn push(&self, text: &[u8], words: &mut Vec<u64>) {
        match self {
            Keying::Own(hasher) | Keying::Pairs(hasher) => words.push(hasher.bytes(text)),
            Keying::Foreign(_, append) => append(text, words),
        }
    }

    /// The number of words per key.
    #[inline(always)]
    pub fn width(&self) -> usize {
        match self {
            Keying::Own(_) => 1,
            Keying::Pairs(_) => 2,
            Keying::Foreign(width, _) => *width,
        }
    }

    /// The number of texts per key.
    #[inline(always)]
    pub fn texts(&self) -> usize {
        1 + usize::from(self.is_pairs())
    }

    /// True if each key comes with its owner.
    #[inline(always)]
    pub fn is_pairs(&self) -> bool {
        matches!(self, Keying::Pairs(_))
    }

    /// Refuses words of which some belong to no whole key.
    #[inline]
    pub fn check_whole(&self, words: usize) -> Result<()> {
        if words.is_multiple_of(self.width()) {
            return Ok(());
        }
        Err(Fault::invalid("a key of a bank is a pair: give the owner before each key"))
    }

    /// The position of a key's words among those of several keys.
    #[inline(always)]
    pub fn words(&self, key: usize) -> Range<usize> {
        key * self.width()..(key + 1) * self.width()
    }

    /// True for the key rule: then clients may send hashes.
    pub fn is_own(&self) -> bool {
        !matches!(self, Keying::Foreign(..))
    }
}
