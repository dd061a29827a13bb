//! Candidate duplicates: which of the records that a filter already held were true repetitions.
//!
//! A first pass collects the hashes of all records that were not new; every wrongly dropped record is among them, since
//! a filter has no false negatives. The second pass keeps a record immediately if its hash is not a candidate (it
//! occurs once), and compares the others byte for byte. Memory grows with the number of distinct repeated records, not
//! with the size of the input.

use std::collections::HashSet;

use crate::cells::allocation::short;
use crate::error::Result;
use crate::key::KeyHasher;
use crate::structure::batch::CHUNK;
use crate::text::Through;
use crate::text::records::{Tally, partition};
use crate::text::select::{KeyedRecords, Selection};

/// Bytes of a slot of a hash.
const HASH_BYTES: usize = 9;
/// Bytes of a slot of a text, besides the text.
const TEXT_BYTES: usize = 17;

/// Hashes of candidate duplicates, and the exact text of those seen in the second pass.
#[derive(Default)]
pub struct CandidateDuplicates {
    hasher: Option<KeyHasher>,
    hashes: HashSet<u64, Through>,
    met: HashSet<Box<[u8]>>,
    met_bytes: usize,
}

impl CandidateDuplicates {
    /// First pass: collects hashes computed by `hasher`.
    pub fn remember(&mut self, hasher: KeyHasher, hashes: &[u64]) -> Result<()> {
        self.hasher = Some(hasher);
        for hashes in hashes.chunks(CHUNK) {
            self.hashes.try_reserve(hashes.len()).map_err(|_| short(self.hashes.capacity() * 2 * HASH_BYTES))?;
            self.hashes.extend(hashes);
        }
        Ok(())
    }

    /// True if `key`, a candidate, was not seen before.
    fn meet(&mut self, key: &[u8]) -> Result<bool> {
        if self.met.contains(key) {
            return Ok(false);
        }
        let mut text = Vec::new();
        text.try_reserve_exact(key.len()).map_err(|_| short(key.len()))?;
        text.extend_from_slice(key);
        self.met.try_reserve(1).map_err(|_| short(self.met.capacity() * 2 * TEXT_BYTES))?;
        self.met_bytes += key.len();
        Ok(self.met.insert(text.into_boxed_slice()))
    }

    /// Second pass: copies first occurrences to `kept`, true repetitions to `dropped`.
    pub fn partition(&mut self, block: &[u8], kept: &mut Vec<u8>, dropped: Option<&mut Vec<u8>>) -> Result<Tally> {
        let hasher = self.hasher.unwrap_or(KeyHasher::seeded(0));
        partition(&hasher, block, Some(kept), dropped, &mut |records, hashes, mask| {
            for ((record, hash), keep) in records.iter().zip(hashes).zip(mask) {
                *keep = u8::from(!self.hashes.contains(hash) || self.meet(record.key(block))?);
            }
            Ok(())
        })
    }

    /// Second pass over records with a chosen key: marks first occurrences.
    pub fn mark(&mut self, selection: &Selection, block: &[u8], records: &KeyedRecords, mask: &mut [u8]) -> Result<()> {
        for (((_, start, end), hash), mark) in records.list_keyed().zip(records.hashes()).zip(mask) {
            *mark = u8::from(!self.hashes.contains(hash) || self.meet(&selection.exact(block, start, end))?);
        }
        Ok(())
    }

    /// Number of candidates, by hash.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// True if there is no candidate.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Memory in use, approximately: the slots, and the texts.
    pub fn nbytes(&self) -> usize {
        self.hashes.capacity() * HASH_BYTES + self.met.capacity() * TEXT_BYTES + self.met_bytes
    }
}
