//! Pairs of owners and keys, a part at a time: the slots of owners are prefetched some pairs ahead of their turn, the line of
//! a key as soon as its owner is found. A batch leaves the bytes and gives the answers of one call a pair.
//!
//! Both columns are hashed into chunks that stay in the first-level cache. Reading them as they are from memory took 9 ns per
//! pair more: so many prefetches keep the processor from fetching columns ahead by itself.

use super::FilterBank;
use crate::cells::LINE_WORDS;
use crate::error::{Error, Result};
use crate::key::source::CHUNK;
use crate::parallel::workers;
use crate::scheme::columns::by_columns;
use crate::scheme::placed::{self, NOWHERE};
use crate::structure::HashSource;
use crate::structure::batch::{KEYS_A_PART, useful_threads};

/// Pairs whose lines are in flight: 16 KiB of them.
const PART: usize = 256;

/// The owners of a batch.
#[derive(Clone, Copy)]
pub enum Owners<'a> {
    /// One for all keys.
    One(u64),
    /// One per key: those from a position on.
    Each(&'a dyn HashSource, usize),
}

impl Owners<'_> {
    /// Writes the hashes of the owners of the keys from `start` on.
    fn fill(&self, start: usize, out: &mut [u64]) {
        match self {
            Owners::One(owner) => out.fill(*owner),
            Owners::Each(source, first) => source.fill(first + start, out),
        }
    }
}

/// The answers for the keys of a part so far, and those that only later stages can give.
struct Pending {
    /// Numbers of the pairs in the part.
    pairs: [u16; PART],
    /// The slots of the first later stages of their owners.
    slots: [usize; PART],
    len: usize,
}

/// Pairs, with the lines of the keys that have places in first stages.
#[derive(Clone, Copy)]
struct Placement<'a> {
    owners: &'a [u64],
    keys: &'a [u64],
    lines: &'a [u32],
    /// The slots of the owners when they were found.
    slots: &'a [usize; PART],
}

impl FilterBank {
    /// One answer (0 or 1) for each of the keys `start..start + found.len()`, on up to `threads` threads.
    pub fn contains_columns(
        &self,
        owners: Owners<'_>,
        keys: &dyn HashSource,
        start: usize,
        found: &mut [u8],
        threads: usize,
    ) {
        let ask = |start: usize, found: &mut [u8]| {
            let (mut some_owners, mut some_keys) = ([0; CHUNK], [0; CHUNK]);
            for (i, found) in found.chunks_mut(CHUNK).enumerate() {
                let (some_owners, some_keys) = (&mut some_owners[..found.len()], &mut some_keys[..found.len()]);
                owners.fill(start + i * CHUNK, some_owners);
                keys.fill(start + i * CHUNK, some_keys);
                self.contains_pairs(some_owners, some_keys, found);
            }
        };
        let threads = useful_threads(threads, found.len());
        if threads == 1 {
            return ask(start, found);
        }
        let parts = found.chunks_mut(KEYS_A_PART).enumerate();
        workers::queue(parts, threads, |(i, found)| ask(start + i * KEYS_A_PART, found));
    }

    /// Adds the keys `start..end`, as [`FilterBank::add_pairs`] does; `new`, if given, has a place for each.
    pub fn add_columns(
        &mut self,
        owners: Owners<'_>,
        keys: &dyn HashSource,
        (start, end): (usize, usize),
        mut new: Option<&mut [u8]>,
    ) -> Result<()> {
        let (mut some_owners, mut some_keys) = ([0; CHUNK], [0; CHUNK]);
        for at in (start..end).step_by(CHUNK) {
            let len = CHUNK.min(end - at);
            owners.fill(at, &mut some_owners[..len]);
            keys.fill(at, &mut some_keys[..len]);
            let new = new.as_deref_mut().map(|new| &mut new[at - start..][..len]);
            self.add_pairs(&some_owners[..len], &some_keys[..len], new)?;
        }
        Ok(())
    }

    /// One answer (0 or 1) a pair; the slices are equally long.
    pub fn contains_pairs(&self, owners: &[u64], keys: &[u64], found: &mut [u8]) {
        assert!(owners.len() == keys.len() && keys.len() == found.len());
        let pairs = owners.chunks(PART).zip(keys.chunks(PART));
        for ((owners, keys), found) in pairs.zip(found.chunks_mut(PART)) {
            self.contains_part(owners, keys, found);
        }
    }

    fn contains_part(&self, owners: &[u64], keys: &[u64], found: &mut [u8]) {
        let (first, mut lines, words) = (&self.stages[0], [NOWHERE; PART], self.pool.words());
        let mut grown = [0u16; PART];
        let mut num_grown = 0;
        self.owners.find_each(owners, |i, line, count| {
            lines[i] = Self::line(first, line, keys[i]);
            placed::fetch(words.as_ptr(), lines[i]);
            if u64::from(count) > first.capacity {
                grown[num_grown] = i as u16;
                num_grown += 1;
            }
        });
        let lines = &lines[..keys.len()];
        by_columns!(first.per_column(), S => placed::contains::<S>(words, lines, keys, found));
        if num_grown > 0 {
            self.contains_later(owners, keys, found, &grown[..num_grown]);
        }
    }

    /// Looks the pairs of `grown` owners that are not found up in the later stages, one stage after the other.
    fn contains_later(&self, owners: &[u64], keys: &[u64], found: &mut [u8], grown: &[u16]) {
        let missing = |&&pair: &&u16| found[usize::from(pair)] == 0;
        grown.iter().filter(missing).for_each(|&pair| self.later.fetch(owners[usize::from(pair)]));
        let mut pending = Pending { pairs: [0; PART], slots: [0; PART], len: 0 };
        for &pair in grown.iter().filter(missing) {
            if let Some(slot) = self.later.find(owners[usize::from(pair)]) {
                (pending.pairs[pending.len], pending.slots[pending.len]) = (pair, slot);
                pending.len += 1;
            }
        }
        let (mut lines, mut hashes, mut answers) = ([0; PART], [0; PART], [0; PART]);
        for (index, stage) in self.stages.iter().enumerate().skip(1) {
            let mut kept = 0;
            for i in 0..pending.len {
                let (pair, slot) = (usize::from(pending.pairs[i]), pending.slots[i]);
                let entry = self.later.entry(slot + index - 1).filter(|entry| entry.owner == owners[pair]);
                if let Some(entry) = entry {
                    (lines[kept], hashes[kept]) = (Self::line(stage, entry.line, keys[pair]), keys[pair]);
                    self.pool.fetch(lines[kept]);
                    (pending.pairs[kept], pending.slots[kept]) = (pair as u16, slot);
                    kept += 1;
                }
            }
            let (lines, hashes, answers) = (&lines[..kept], &hashes[..kept], &mut answers[..kept]);
            by_columns!(stage.per_column(), S => placed::contains::<S>(self.pool.words(), lines, hashes, answers));
            pending.len = 0;
            for i in 0..kept {
                found[usize::from(pending.pairs[i])] = answers[i];
                if answers[i] == 0 {
                    let at = pending.len;
                    (pending.pairs[at], pending.slots[at]) = (pending.pairs[i], pending.slots[i]);
                    pending.len += 1;
                }
            }
            if pending.len == 0 {
                return;
            }
        }
    }

    /// Adds pairs in order. `new`, if given, is as long as `owners` and gets 1 for each pair that was new. Pairs before one
    /// that is refused, or for which there is no memory, are added, and none behind it.
    pub fn add_pairs(&mut self, owners: &[u64], keys: &[u64], mut new: Option<&mut [u8]>) -> Result<()> {
        assert!(owners.len() == keys.len() && new.as_ref().is_none_or(|new| new.len() == keys.len()));
        self.check_writable()?;
        let mut fresh = [0; PART];
        let mut start = 0;
        while start < owners.len() {
            let end = owners.len().min(start + PART);
            let fresh = &mut fresh[..end - start];
            let (done, error) = self.add_part(&owners[start..end], &keys[start..end], fresh);
            if let Some(new) = &mut new {
                new[start..start + done].copy_from_slice(&fresh[..done]);
            }
            if let Some(error) = error {
                return Err(error);
            }
            start += done;
        }
        Ok(())
    }

    /// Adds pairs up to one that has to wait for those before it; returns how many were added, and why no more can be.
    fn add_part(&mut self, owners: &[u64], keys: &[u64], new: &mut [u8]) -> (usize, Option<Error>) {
        let (mut lines, mut slots) = ([NOWHERE; PART], [0; PART]);
        let (mut full, mut num_full) = ([0u16; PART], 0);
        let (mut end, mut refused, first, grows) = (0, None, self.stages[0], self.plan.grows());
        loop {
            let words = self.pool.words().as_ptr();
            // Each key takes its place now, and returns it below if it was not new.
            let counted = self.owners.count_each(&owners[end..], first.capacity, |i, at, line| {
                slots[end + i] = at;
                if let Some(line) = line {
                    lines[end + i] = Self::line(&first, line, keys[end + i]);
                    placed::fetch(words, lines[end + i]);
                    return true;
                }
                full[num_full] = (end + i) as u16;
                num_full += 1;
                grows
            });
            match counted {
                Ok(counted) => end += counted,
                Err(error) => return (0, Some(error)),
            }
            let Some(&owner) = owners.get(end) else { break };
            // Its lines come behind those that full owners before it may need, and a full one may be refused.
            if num_full > 0 {
                break;
            }
            if let Err(error) = self.create(owner) {
                refused = Some(error);
                break;
            }
        }
        let pairs = Placement { owners: &owners[..end], keys: &keys[..end], lines: &lines[..end], slots: &slots };
        let added = if num_full > 0 {
            self.add_with_full(pairs, &mut new[..end], &full[..num_full])
        } else {
            self.add_first(pairs, &mut new[..end]).map_err(|error| (0, error))
        };
        match added {
            Ok(()) => (end, refused),
            Err((at, error)) => (at, Some(error)),
        }
    }

    /// Adds keys that have places in first stages, then those of the `full` pairs; on an error only the pairs before it,
    /// whose number it comes with.
    fn add_with_full(
        &mut self,
        pairs: Placement<'_>,
        new: &mut [u8],
        full: &[u16],
    ) -> std::result::Result<(), (usize, Error)> {
        let first = usize::from(full[0]);
        let mut before = [[0u64; LINE_WORDS]; PART];
        for (before, &line) in before.iter_mut().zip(&pairs.lines[first..]) {
            if let Some(words) = self.pool.filter(line, 1).first_chunk() {
                *before = *words;
            }
        }
        self.add_first(pairs, new).map_err(|error| (0, error))?;
        self.fetch_later(pairs.owners, pairs.keys, full);
        for &pair in full {
            let pair = usize::from(pair);
            match self.add(pairs.owners[pair], pairs.keys[pair]) {
                Ok(fresh) => new[pair] = u8::from(fresh),
                Err(error) => {
                    let taken_back = self.take_back(pairs, new, (first, &before), pair);
                    return Err((pair, taken_back.err().unwrap_or(error)));
                }
            }
        }
        Ok(())
    }

    /// Takes back the keys of the pairs from number `end` on that were added to first stages, whose lines were as in
    /// `before` from pair number `first` on.
    #[cold]
    fn take_back(
        &mut self,
        pairs: Placement<'_>,
        new: &mut [u8],
        (first, before): (usize, &[[u64; LINE_WORDS]; PART]),
        end: usize,
    ) -> Result<()> {
        for pair in end..pairs.lines.len() {
            if let Some(words) = self.pool.filter_mut(pairs.lines[pair], 1)?.first_chunk_mut() {
                *words = before[pair - first];
            }
            if new[pair] == 1 && pairs.lines[pair] != NOWHERE {
                self.uncount(pairs.slots[pair], pairs.owners[pair])?;
                self.added -= 1;
            }
            new[pair] = 0;
        }
        // The lines have lost keys of the pairs before, too.
        let words = self.pool.words_mut()?;
        let (lines, keys, mut again) = (&pairs.lines[..end], &pairs.keys[..end], [0; PART]);
        by_columns!(self.stages[0].per_column(), S => placed::add::<S>(words, lines, keys, &mut again[..end]));
        Ok(())
    }

    /// Returns the place of a key of an owner, whose slot was `at` unless others were created since.
    fn uncount(&mut self, at: usize, owner: u64) -> Result<()> {
        let of_owner = |at| self.owners.entry(at).filter(|entry| entry.owner == owner).map(|entry| (at, entry));
        let Some((at, entry)) = of_owner(at).or_else(|| of_owner(self.owners.find(owner)?)) else { return Ok(()) };
        self.owners.set_count(at, entry.count.saturating_sub(1))
    }

    /// Adds keys that have places in first stages, and returns the places of those that were not new.
    fn add_first(&mut self, pairs: Placement<'_>, new: &mut [u8]) -> Result<()> {
        let words = self.pool.words_mut()?;
        by_columns!(self.stages[0].per_column(), S => placed::add::<S>(words, pairs.lines, pairs.keys, new));
        let mut added = 0;
        for (i, &new) in new.iter().enumerate() {
            added += u64::from(new);
            if new == 0 && pairs.lines[i] != NOWHERE {
                self.uncount(pairs.slots[i], pairs.owners[i])?;
            }
        }
        self.added += added;
        Ok(())
    }

    /// Prefetches what adding the `full` pairs reads.
    fn fetch_later(&self, owners: &[u64], keys: &[u64], full: &[u16]) {
        let pairs = || full.iter().map(|&pair| (owners[usize::from(pair)], keys[usize::from(pair)]));
        pairs().for_each(|(owner, _)| self.later.fetch(owner));
        for (owner, key) in pairs() {
            let first = self.owners.get(owner).map(|entry| (entry.line, &self.stages[0]));
            let later = self.later.of(owner).zip(self.stages.iter().skip(1));
            for (line, stage) in first.into_iter().chain(later.map(|(entry, stage)| (entry.line, stage))) {
                self.pool.fetch(Self::line(stage, line, key));
            }
        }
    }
}
