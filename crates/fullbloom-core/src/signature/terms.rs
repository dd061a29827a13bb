//! Terms with a treatment of their own: those that are so frequent that fewer rows, or one private row, suffice.

use crate::cells::Memory;
use crate::error::{Error, Result};

use super::shape::Shape;
use super::treatment::Treatment;

/// Listed terms, ordered by their hashes: two words each.
pub(super) struct Terms {
    pub(super) memory: Option<Memory>,
    len: usize,
}

impl Terms {
    /// Without terms.
    pub(super) fn none() -> Self {
        Terms { memory: None, len: 0 }
    }

    /// Of these terms; of equal ones the first counts.
    pub(super) fn new(mut listed: Vec<(u64, Treatment)>) -> Result<Self> {
        listed.sort_by_key(|(hash, _)| *hash);
        listed.dedup_by_key(|(hash, _)| *hash);
        if listed.is_empty() {
            return Ok(Self::none());
        }
        let mut memory = Memory::zeroed(2 * listed.len() as u64)?;
        for (pair, (hash, treatment)) in memory.writable()?.chunks_exact_mut(2).zip(&listed) {
            pair.copy_from_slice(&[hash.to_le(), treatment.encode().to_le()]);
        }
        Ok(Terms { memory: Some(memory), len: listed.len() })
    }

    /// Those in `memory`, the section of a file, all of which are checked against `shape`.
    pub(super) fn load(memory: Option<Memory>, len: u64, shape: &Shape) -> Result<Self> {
        let damaged = |what: &str| Error::format(format!("the file's listed terms {what}; the file is damaged"));
        let Some(memory) = memory else {
            return if len == 0 { Ok(Self::none()) } else { Err(damaged("are missing")) };
        };
        let words = memory.words();
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        if len == 0 || len.checked_mul(2).is_none_or(|count| count.next_multiple_of(8) != words.len()) {
            return Err(damaged("have another number"));
        }
        if words[2 * len..].iter().any(|word| *word != 0) {
            return Err(damaged("are followed by others"));
        }
        let mut last = None;
        for pair in words[..2 * len].chunks_exact(2) {
            let hash = u64::from_le(pair[0]);
            if last.is_some_and(|last| last >= hash) {
                return Err(damaged("are out of order"));
            }
            last = Some(hash);
            let treatment = Treatment::decode(u64::from_le(pair[1]));
            if treatment.encode() != u64::from_le(pair[1]) || !shape.allows(treatment) {
                return Err(damaged("name rows that its signatures lack"));
            }
        }
        Ok(Terms { memory: Some(memory), len })
    }

    /// Number of terms.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The treatment of a term, if it is listed.
    #[inline]
    pub(super) fn find(&self, hash: u64) -> Option<Treatment> {
        let words = &self.memory.as_ref()?.words()[..2 * self.len];
        let pairs = words.as_chunks::<2>().0;
        let at = pairs.binary_search_by_key(&hash, |pair| u64::from_le(pair[0])).ok()?;
        Some(Treatment::decode(u64::from_le(pairs[at][1])))
    }

    pub(super) fn try_clone(&self) -> Result<Self> {
        Ok(Terms { memory: self.memory.as_ref().map(Memory::try_clone).transpose()?, len: self.len })
    }
}
