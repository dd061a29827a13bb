//! Records of a text stream: split at newlines, hash, look up, keep or drop.
//!
//! This is the loop of the command line's `dedup`, `seen`, `build` and `check`. A record ends before a newline; a
//! carriage return before it is not part of the key. The key of a record is text, so a filter built here finds the same
//! strings in Python.

use std::ops::AddAssign;

use crate::cells::allocation::reserve;
use crate::error::Result;
use crate::key::{Domain, KeyDomains, KeyHasher};
use crate::structure::batch::CHUNK;
use crate::structure::{Addable, Filter};

/// The outcome of a block of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of records.
    pub records: u64,
    /// Records that were new (adding), found (checking) or kept (verifying).
    pub selected: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, more: Tally) {
        self.records += more.records;
        self.selected += more.selected;
    }
}

/// One record in a block: its start, the end of its key, the start of the next.
#[derive(Clone, Copy, Default)]
pub(super) struct Record {
    start: usize,
    key_end: usize,
    end: usize,
}

impl Record {
    /// The key of the record in its block.
    pub(super) fn key(self, block: &[u8]) -> &[u8] {
        &block[self.start..self.key_end]
    }
}

/// The records of a block, in order.
fn records_of(block: &[u8]) -> impl Iterator<Item = Record> {
    let (mut newlines, mut start) = (memchr::memchr_iter(b'\n', block), 0);
    std::iter::from_fn(move || {
        if start >= block.len() {
            return None;
        }
        let newline = newlines.next().unwrap_or(block.len());
        let cr = newline > start && block[newline - 1] == b'\r';
        let record = Record { start, key_end: newline - usize::from(cr), end: (newline + 1).min(block.len()) };
        start = record.end;
        Some(record)
    })
}

/// Marks records, given with the hashes of their keys, that are selected.
pub(super) type Answer<'a> = dyn FnMut(&[Record], &[u64], &mut [u8]) -> Result<()> + 'a;

/// Runs `answer` over all records of `block`, a chunk at a time; copies those selected to `kept` and the rest to
/// `dropped`, both in order. Runs of neighbours are copied together. Compiled once, as a call costs nothing compared
/// with a chunk.
pub(super) fn partition(
    hasher: &KeyHasher,
    block: &[u8],
    mut kept: Option<&mut Vec<u8>>,
    mut dropped: Option<&mut Vec<u8>>,
    answer: &mut Answer<'_>,
) -> Result<Tally> {
    let mut records = [Record::default(); CHUNK];
    let (mut hashes, mut mask) = ([0u64; CHUNK], [0u8; CHUNK]);
    let mut source = records_of(block);
    let mut tally = Tally::default();
    loop {
        let mut n = 0;
        for ((slot, hash), record) in records.iter_mut().zip(&mut hashes).zip(&mut source) {
            (*slot, *hash) = (record, hasher.text(record.key(block)));
            n += 1;
        }
        if n == 0 {
            return Ok(tally);
        }
        answer(&records[..n], &hashes[..n], &mut mask[..n])?;
        let mut start = 0;
        for run in mask[..n].chunk_by(|a, b| a == b) {
            let (selected, end) = (run[0], start + run.len());
            let out = if selected != 0 { kept.as_deref_mut() } else { dropped.as_deref_mut() };
            if let Some(out) = out {
                let text = &block[records[start].start..records[end - 1].end];
                reserve(out, text.len())?;
                out.extend_from_slice(text);
            }
            tally.selected += u64::from(selected) * run.len() as u64;
            start = end;
        }
        tally.records += n as u64;
    }
}

/// The domain of lines.
pub const LINES: KeyDomains = KeyDomains::of(Domain::Text);

/// Adds every record of `block`; new ones are copied to `kept`, the others to `dropped`.
pub fn add<F: Addable>(
    filter: &mut F,
    block: &[u8],
    kept: Option<&mut Vec<u8>>,
    dropped: Option<&mut Vec<u8>>,
) -> Result<Tally> {
    let hasher = *filter.hasher();
    partition(&hasher, block, kept, dropped, &mut |_, hashes, mask| {
        let added = filter.add_hashes(hashes, Some(mask));
        filter.record_domains(LINES, added)
    })
}

/// Passes the hashes of the records of `block` to `take`, some at a time; returns their number.
pub fn hash_records(hasher: &KeyHasher, block: &[u8], mut take: impl FnMut(&[u64]) -> Result<()>) -> Result<u64> {
    partition(hasher, block, None, None, &mut |_, hashes, _| take(hashes)).map(|tally| tally.records)
}

/// Checks every record of `block`; found ones are copied to `found`, the others to `absent`.
pub fn check<F: Filter>(
    filter: &F,
    block: &[u8],
    found: Option<&mut Vec<u8>>,
    absent: Option<&mut Vec<u8>>,
) -> Result<Tally> {
    partition(filter.hasher(), block, found, absent, &mut |_, hashes, mask| {
        filter.contains_hashes(hashes, mask);
        Ok(())
    })
}

/// Adds `hashes`, marking those that were new. With `once`, known ones are not added again: for structures in which
/// copies take slots.
#[inline(never)]
pub fn add_marked<F: Addable>(filter: &mut F, hashes: &[u64], mask: &mut [u8], once: bool) -> Result<()> {
    if !once {
        return filter.add_hashes(hashes, Some(mask));
    }
    for (&hash, new) in hashes.iter().zip(mask) {
        *new = u8::from(!filter.contains_hash(hash) && filter.add_hash(hash)?);
    }
    Ok(())
}

/// Adds every record of `block` and returns the hashes of those that were not new. With `once`, those
/// are not added again: for structures in which copies take slots.
pub fn collect<F: Addable>(filter: &mut F, block: &[u8], once: bool) -> Result<(Tally, Vec<u64>)> {
    let hasher = *filter.hasher();
    let mut seen = Vec::new();
    let tally = partition(&hasher, block, None, None, &mut |_, hashes, mask| {
        let added = add_marked(filter, hashes, mask, once);
        filter.record_domains(LINES, added)?;
        reserve(&mut seen, hashes.len())?;
        seen.extend(hashes.iter().zip(mask.iter()).filter(|(_, new)| **new == 0).map(|(hash, _)| *hash));
        Ok(())
    })?;
    Ok((tally, seen))
}
