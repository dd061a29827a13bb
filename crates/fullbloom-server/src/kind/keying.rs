//! [`Keying`]: how a text becomes the words by which a filter is asked, and its changes logged.

use std::ops::Range;

use fullbloom_core::key::DomainHasher;

/// Appends the words of a key.
pub type Words = fn(&[u8], &mut Vec<u64>);

/// See the head of this file.
#[derive(Clone, Copy)]
pub enum Keying {
    /// One word, the hash of the key rule.
    Own(DomainHasher),
    /// So many words, as another program has them.
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

    /// Words of a key.
    #[inline(always)]
    pub fn width(&self) -> usize {
        match self {
            Keying::Own(_) => 1,
            Keying::Foreign(width, _) => *width,
        }
    }

    /// Where the words of a key lie among those of several.
    #[inline(always)]
    pub fn words(&self, key: usize) -> Range<usize> {
        key * self.width()..(key + 1) * self.width()
    }

    /// True of the key rule: hashes that somebody else has computed may be handed in.
    pub fn is_own(&self) -> bool {
        matches!(self, Keying::Own(_))
    }
}
