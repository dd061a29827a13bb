//! [`Keying`]: how a text becomes the words that identify a key.

use std::ops::Range;

use fullbloom_core::key::DomainHasher;

/// Appends the words of a key.
pub type Words = fn(&[u8], &mut Vec<u64>);

/// How a text becomes the words that identify a key in a filter and in the log.
#[derive(Clone, Copy)]
pub enum Keying {
    /// One word, the hash of the key rule.
    Own(DomainHasher),
    /// Several words, as another program computes them.
    Foreign(usize, Words),
}

impl Keying {
    /// Appends the words of a key.
    #[inline(always)]
    pub fn push(&self, key: &[u8], words: &mut Vec<u64>) {
        match self {
            Keying::Own(hasher) => words.push(hasher.bytes(key)),
            Keying::Foreign(_, append) => append(key, words),
        }
    }

    /// The number of words per key.
    #[inline(always)]
    pub fn width(&self) -> usize {
        match self {
            Keying::Own(_) => 1,
            Keying::Foreign(width, _) => *width,
        }
    }

    /// The position of a key's words among those of several keys.
    #[inline(always)]
    pub fn words(&self, key: usize) -> Range<usize> {
        key * self.width()..(key + 1) * self.width()
    }

    /// True for the key rule: then clients may send hashes.
    pub fn is_own(&self) -> bool {
        matches!(self, Keying::Own(_))
    }
}
