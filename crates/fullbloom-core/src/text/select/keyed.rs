//! Records of a block with the hashes of their keys, and the answers of filters about them.

use std::collections::HashMap;

use crate::cells::allocation::{reserve, short, zeroed};
use crate::error::Result;
use crate::foreign::rules::Digest;
use crate::key::KeyDomains;
use crate::structure::Filter;
use crate::structure::batch::CHUNK;
use crate::text::Through;
use crate::text::select::reason::Reason;

/// Bytes of a slot of a hash and a number.
const SLOT_BYTES: usize = 17;

/// The state of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Has {
    /// A key.
    Key,
    /// No key: always kept.
    NoKey,
    /// Unreadable: neither kept nor dropped.
    Fault,
}

/// The ends of the records of a block, and the hashes of their keys.
#[derive(Debug, Default)]
pub struct KeyedRecords {
    ends: Vec<(usize, Has)>,
    hashes: Vec<u64>,
    /// Of keys that are hashed by the rule of another program, `parts` a key; other keys have none.
    digests: Vec<Digest>,
    parts: usize,
    domains: KeyDomains,
    faults: u64,
    first_fault: Option<(u64, Reason)>,
    pub(super) lines: u64,
}

impl KeyedRecords {
    /// Without records, whose keys will have so many digests; 0 for hashes of 64 bits.
    pub fn of_parts(parts: usize) -> Self {
        KeyedRecords { parts, ..Self::default() }
    }

    /// Rows outside of the block, each a record of `width` bytes; the key of those that `keyed` marks has the hash at
    /// their place.
    pub fn of_rows(width: usize, keyed: &[u8], hashes: &[u64], domains: KeyDomains) -> Result<Self> {
        let mut out = Self::default();
        let mut hashes = hashes.iter();
        for (row, &has) in keyed.iter().enumerate() {
            let hash = hashes.next().filter(|_| has != 0);
            out.push((row + 1) * width, hash.map(|&hash| (hash, domains)))?;
        }
        Ok(out)
    }

    /// A record, with the hash and the domains of its key if it has one.
    pub fn push(&mut self, end: usize, hash: Option<(u64, KeyDomains)>) -> Result<()> {
        reserve(&mut self.ends, 1)?;
        self.ends.push((end, if hash.is_some() { Has::Key } else { Has::NoKey }));
        if let Some((hash, domains)) = hash {
            reserve(&mut self.hashes, 1)?;
            self.hashes.push(hash);
            self.domains = self.domains.with(domains);
        }
        Ok(())
    }

    /// A record whose key has these digests.
    pub fn push_digests(&mut self, end: usize, digests: &[Digest]) -> Result<()> {
        reserve(&mut self.ends, 1)?;
        self.ends.push((end, Has::Key));
        reserve(&mut self.digests, digests.len())?;
        self.digests.extend_from_slice(digests);
        Ok(())
    }

    /// A record that cannot be read; `why` gives its line, from 1, and the reason.
    #[cold]
    pub(super) fn push_fault(&mut self, end: usize, why: impl FnOnce() -> (u64, Reason)) -> Result<()> {
        reserve(&mut self.ends, 1)?;
        self.ends.push((end, Has::Fault));
        self.faults += 1;
        self.first_fault.get_or_insert_with(why);
        Ok(())
    }

    /// Number of records, including those without a key and unreadable ones.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there is no record.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Hashes of the keys, in order; records without one are passed over.
    pub fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    /// Digests of the keys, in order, by the rule of another program.
    pub fn digests(&self) -> &[Digest] {
        &self.digests
    }

    /// Number of keys.
    pub fn keys(&self) -> usize {
        self.digests.len().checked_div(self.parts).unwrap_or(self.hashes.len())
    }

    /// The domains of the keys.
    pub fn domains(&self) -> KeyDomains {
        self.domains
    }

    /// Number of records that cannot be read.
    pub fn faults(&self) -> u64 {
        self.faults
    }

    /// The first record that cannot be read: its line from 1 within the block, and why.
    pub fn first_fault(&self) -> Option<&(u64, Reason)> {
        self.first_fault.as_ref()
    }

    /// Number of records without a key.
    pub fn without_key(&self) -> usize {
        self.ends.len() - self.keys() - self.faults as usize
    }

    /// Newlines of the block.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Copies the records whose keys `mask` marks, and those without key, to `kept`, the others to `dropped`, both in
    /// order. Neighbours are copied together.
    pub fn part(
        &self,
        block: &[u8],
        mask: &[u8],
        mut kept: Option<&mut Vec<u8>>,
        mut dropped: Option<&mut Vec<u8>>,
    ) -> Result<()> {
        let mut marks = mask.iter();
        let (mut start, mut end, mut run) = (0, 0, Some(true));
        let mut copy = |run, text: &[u8]| {
            let out = match run {
                Some(true) => kept.as_deref_mut(),
                Some(false) => dropped.as_deref_mut(),
                None => None,
            };
            out.map_or(Ok(()), |out| reserve(out, text.len()).map(|()| out.extend_from_slice(text)))
        };
        for &(next, has) in &self.ends {
            let here = match has {
                Has::Key => Some(marks.next().is_some_and(|&mark| mark != 0)),
                Has::NoKey => Some(true),
                Has::Fault => None,
            };
            if here != run {
                copy(run, &block[start..end])?;
                (start, run) = (end, here);
            }
            end = next;
        }
        copy(run, &block[start..end])
    }

    /// All readable records, in order: those whose keys `mask` marks, and those without key, after `new`, the others
    /// after `old`.
    pub fn mark_records(&self, block: &[u8], mask: &[u8], new: &[u8], old: &[u8]) -> Result<Vec<u8>> {
        let (mut marks, mut start, mut out) = (mask.iter(), 0, Vec::new());
        reserve(&mut out, block.len() + self.ends.len() * new.len().max(old.len()))?;
        for &(end, has) in &self.ends {
            let known = has == Has::Key && marks.next().is_some_and(|&mark| mark == 0);
            if has != Has::Fault {
                out.extend_from_slice(if known { old } else { new });
                out.extend_from_slice(&block[start..end]);
            }
            start = end;
        }
        Ok(out)
    }

    /// Clears marks of records beyond the first `bytes` bytes of those that `mask` keeps.
    pub fn limit(&self, mask: &mut [u8], bytes: usize) {
        let (mut marks, mut start, mut out) = (mask.iter_mut(), 0, 0usize);
        for &(end, has) in &self.ends {
            let mark = if has == Has::Key { marks.next() } else { None };
            let kept = match (&mark, has) {
                (Some(mark), _) => **mark != 0,
                (None, has) => has == Has::NoKey,
            };
            out += if kept { end - start } else { 0 };
            if let Some(mark) = mark
                && out > bytes
            {
                *mark = 0;
            }
            start = end;
        }
    }

    /// The numbers of the records with a key, and where each begins.
    pub(in crate::text) fn list_keyed(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|&(end, _)| end));
        let all = starts.zip(&self.ends).enumerate();
        all.filter(|(_, (_, (_, has)))| *has == Has::Key).map(|(number, (start, &(end, _)))| (number, start, end))
    }
}

/// Marks `hashes` that `filter` does not hold, each the first time only.
pub fn fresh<F: Filter>(filter: &F, hashes: &[u64]) -> Result<Vec<u8>> {
    let mut mask = zeroed(hashes.len())?;
    for (hashes, mask) in hashes.chunks(CHUNK).zip(mask.chunks_mut(CHUNK)) {
        filter.contains_hashes(hashes, mask);
    }
    mark_first(hashes, &mut mask)?;
    Ok(mask)
}

/// Marks the first of each of `hashes` that `mask` does not mark, and no others.
fn mark_first(hashes: &[u64], mask: &mut [u8]) -> Result<()> {
    let mut met: std::collections::HashSet<u64, Through> = Default::default();
    met.try_reserve(mask.iter().filter(|held| **held == 0).count()).map_err(|_| short(hashes.len() * SLOT_BYTES))?;
    for (&hash, mark) in hashes.iter().zip(mask) {
        *mark = u8::from(*mark == 0 && met.insert(hash));
    }
    Ok(())
}

/// The last record of each key that occurs more than once, for `--keep last`: a first pass notes where keys that a
/// filter already holds occur, a second checks whether a record is the last of its key.
///
/// Two keys with one hash count as one, with probability 2^-64 a pair. Memory grows with the number of distinct
/// repeated keys.
#[derive(Debug, Default)]
pub struct LastOccurrences {
    last: HashMap<u64, u64, Through>,
    noted: u64,
    asked: u64,
}

impl LastOccurrences {
    /// First pass: notes the keys of `hashes` that `mask` does not mark as new.
    pub fn note(&mut self, hashes: &[u64], mask: &[u8]) -> Result<()> {
        for (&hash, &new) in hashes.iter().zip(mask) {
            if new == 0 {
                self.last.try_reserve(1).map_err(|_| short(self.nbytes() * 2))?;
                self.last.insert(hash, self.noted);
            }
            self.noted += 1;
        }
        Ok(())
    }

    /// Second pass, over the same hashes: marks those that are the last of their key.
    pub fn mark(&mut self, hashes: &[u64], mask: &mut [u8]) {
        for (hash, mark) in hashes.iter().zip(mask) {
            *mark = u8::from(self.last.get(hash).is_none_or(|&last| last == self.asked));
            self.asked += 1;
        }
    }

    /// Memory in use, approximately.
    pub fn nbytes(&self) -> usize {
        self.last.capacity() * SLOT_BYTES
    }
}
