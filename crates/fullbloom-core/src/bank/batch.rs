//! Pairs of owners and keys, a chunk at a time: owners are searched some pairs ahead of their turn, then the lines of the
//! keys are prefetched. A batch leaves the bytes and gives the answers of one call a pair.

use super::FilterBank;
use crate::error::{Error, Result};
use crate::key::source::CHUNK;
use crate::scheme::columns::by_columns;
use crate::scheme::placed::{self, NOWHERE};

/// The answers for the keys of a chunk so far, and those that only later stages can give.
struct Pending {
    /// Numbers of the pairs in the chunk.
    pairs: [u16; CHUNK],
    /// The slots of the first later stages of their owners.
    slots: [usize; CHUNK],
    len: usize,
}

impl FilterBank {
    /// One answer (0 or 1) a pair; the slices are equally long.
    pub fn contains_pairs(&self, owners: &[u64], keys: &[u64], found: &mut [u8]) {
        assert!(owners.len() == keys.len() && keys.len() == found.len());
        let pairs = owners.chunks(CHUNK).zip(keys.chunks(CHUNK));
        for ((owners, keys), found) in pairs.zip(found.chunks_mut(CHUNK)) {
            self.contains_chunk(owners, keys, found);
        }
    }

    fn contains_chunk(&self, owners: &[u64], keys: &[u64], found: &mut [u8]) {
        let (first, mut lines) = (&self.stages[0], [NOWHERE; CHUNK]);
        let mut grown = [0u16; CHUNK];
        let mut num_grown = 0;
        self.owners.find_each(owners, |i, line, count| {
            lines[i] = Self::line(first, line, keys[i]);
            if u64::from(count) > first.capacity {
                grown[num_grown] = i as u16;
                num_grown += 1;
            }
        });
        let (words, lines) = (self.pool.words(), &lines[..keys.len()]);
        by_columns!(first.per_column(), S => placed::contains::<S>(words, lines, keys, found));
        if num_grown > 0 {
            self.contains_later(owners, keys, found, &grown[..num_grown]);
        }
    }

    /// Looks the pairs of `grown` owners that are not found up in the later stages, one stage after the other.
    fn contains_later(&self, owners: &[u64], keys: &[u64], found: &mut [u8], grown: &[u16]) {
        let missing = |&&pair: &&u16| found[usize::from(pair)] == 0;
        grown.iter().filter(missing).for_each(|&pair| self.later.fetch(owners[usize::from(pair)]));
        let mut pending = Pending { pairs: [0; CHUNK], slots: [0; CHUNK], len: 0 };
        for &pair in grown.iter().filter(missing) {
            if let Some(slot) = self.later.find(owners[usize::from(pair)]) {
                (pending.pairs[pending.len], pending.slots[pending.len]) = (pair, slot);
                pending.len += 1;
            }
        }
        let (mut lines, mut hashes, mut answers) = ([0; CHUNK], [0; CHUNK], [0; CHUNK]);
        for (index, stage) in self.stages.iter().enumerate().skip(1) {
            let mut kept = 0;
            for i in 0..pending.len {
                let (pair, slot) = (usize::from(pending.pairs[i]), pending.slots[i]);
                let entry = self.later.entry(slot + index - 1).filter(|entry| entry.owner == owners[pair]);
                if let Some(entry) = entry {
                    (lines[kept], hashes[kept]) = (Self::line(stage, entry.line, keys[pair]), keys[pair]);
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
    /// that is refused are added.
    pub fn add_pairs(&mut self, owners: &[u64], keys: &[u64], mut new: Option<&mut [u8]>) -> Result<()> {
        assert!(owners.len() == keys.len() && new.as_ref().is_none_or(|new| new.len() == keys.len()));
        self.check_writable()?;
        let mut fresh = [0; CHUNK];
        let mut start = 0;
        while start < owners.len() {
            let end = owners.len().min(start + CHUNK);
            let fresh = &mut fresh[..end - start];
            let (done, error) = self.add_chunk(&owners[start..end], &keys[start..end], fresh);
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
    fn add_chunk(&mut self, owners: &[u64], keys: &[u64], new: &mut [u8]) -> (usize, Option<Error>) {
        let (mut lines, mut full, mut num_full) = ([NOWHERE; CHUNK], [0u16; CHUNK], 0);
        let (mut end, mut refused, first, grows) = (0, None, self.stages[0], self.plan.grows());
        loop {
            // Each key takes its place now, and returns it below if it was not new.
            let counted = self.owners.count_each(&owners[end..], first.capacity, |i, line| {
                if let Some(line) = line {
                    lines[end + i] = Self::line(&first, line, keys[end + i]);
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
        let added = self.add_first(&owners[..end], &keys[..end], &lines[..end], &mut new[..end]);
        if let Err(error) = added {
            return (0, Some(error));
        }
        self.fetch_later(owners, keys, &full[..num_full]);
        for &pair in &full[..num_full] {
            let pair = usize::from(pair);
            match self.add(owners[pair], keys[pair]) {
                Ok(fresh) => new[pair] = u8::from(fresh),
                Err(error) => return (pair, Some(error)),
            }
        }
        (end, refused)
    }

    /// Adds keys that have places in first stages, and returns the places of those that were not new.
    fn add_first(&mut self, owners: &[u64], keys: &[u64], lines: &[u32], new: &mut [u8]) -> Result<()> {
        let words = self.pool.words_mut()?;
        by_columns!(self.stages[0].per_column(), S => placed::add::<S>(words, lines, keys, new));
        let mut added = 0;
        for (i, &new) in new.iter().enumerate() {
            added += u64::from(new);
            if new == 0
                && lines[i] != NOWHERE
                && let Some(at) = self.owners.find(owners[i])
                && let Some(entry) = self.owners.entry(at)
            {
                self.owners.set_count(at, entry.count.saturating_sub(1))?;
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
