//! [`Directory`]: from the hash of an owner to its lines. A hash table of 16 bytes a slot, in order of the hashes.
//!
//! Linear probing that keeps every run of slots in order: a search ends at the first larger hash, so that an absent owner
//! costs no more than a present one and the table can be nine tenths full. Two numbers say where an entry is searched:
//!
//! ```text
//! m    = hash * MIX mod 2^64         MIX is odd, so that m determines the hash
//! home = fastrange(m, homes)         never falls as m rises; the slots behind the last home take its overflow
//! slot = m, then (line + 1) | count << 32; a free slot is all zeros
//! ```
//!
//! The multiplication spreads ready hashes that are small numbers. Entries of one owner lie side by side, in the order in
//! which they came: later stages of an owner are entries of a second table.

use crate::cells::Memory;
use crate::error::{Error, Result};
use crate::isa::prefetch;
use crate::scheme::fastrange;

/// An odd multiplier with a good spectrum (Steele and Vigna, 2021), and its inverse modulo 2^64.
const MIX: u64 = 0xd134_2543_de82_ef95;
const UNMIX: u64 = inverse(MIX);
/// Slots behind the last home.
const TAIL: usize = 64;
/// Homes of the first table.
const LEAST_HOMES: u64 = 8;
/// Tables double up to this size; larger ones grow by an eighth, so that they are between 80 and 90 % full.
const DOUBLING: u64 = 1024;
/// Bytes of a slot.
pub const SLOT_BYTES: u64 = 16;
/// Slots that a search may pass. Hashes of keys pass a few dozen (more than x with probability exp(-x / 5) or so); only
/// hashes made to collide pass as many.
const FAR: usize = 1024;

/// Newton's iteration doubles the number of correct bits.
const fn inverse(odd: u64) -> u64 {
    let (mut x, mut step) = (odd, 0);
    while step < 6 {
        x = x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x)));
        step += 1;
    }
    x
}

/// Slots that are compared at once.
const WINDOW: usize = 8;
/// How far ahead of the current owner its slot is fetched.
pub const AHEAD: usize = 24;

/// An entry: where the first line of a filter is, and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The hash of the owner.
    pub owner: u64,
    /// The first line of the filter.
    pub line: u32,
    /// Keys of the owner, or the number of the stage.
    pub count: u32,
}

type Slot = [u64; 2];

fn pack(entry: Entry) -> Slot {
    let line = u64::from(entry.line) + 1;
    [entry.owner.wrapping_mul(MIX).to_le(), (line | u64::from(entry.count) << 32).to_le()]
}

#[inline(always)]
fn unpack(slot: Slot) -> Option<Entry> {
    let state = u64::from_le(slot[1]);
    let line = (state as u32).checked_sub(1)?;
    Some(Entry { owner: u64::from_le(slot[0]).wrapping_mul(UNMIX), line, count: (state >> 32) as u32 })
}

#[inline(always)]
fn is_free(slot: &Slot) -> bool {
    u64::from_le(slot[1]) as u32 == 0
}

/// First line and number of keys of a slot; `None` for a free one.
#[inline(always)]
fn state(slot: &Slot) -> Option<(u32, u32)> {
    let state = u64::from_le(slot[1]);
    Some(((state as u32).checked_sub(1)?, (state >> 32) as u32))
}

/// The slot of an owner among the first from its home, which are compared without a branch each: nine searches in ten end
/// here, and a mispredicted branch costs as much as all of them.
#[inline(always)]
fn find(slots: &[Slot], homes: u64, owner: u64) -> Option<usize> {
    let mixed = owner.wrapping_mul(MIX);
    let home = fastrange(mixed, homes) as usize;
    let window = slots.get(home..)?.first_chunk::<WINDOW>()?;
    let mut hit = WINDOW;
    for at in (0..WINDOW).rev() {
        hit = if u64::from_le(window[at][0]) == mixed { at } else { hit };
    }
    // The hash 0 equals that of a free slot.
    (hit < WINDOW && !is_free(&window[hit])).then_some(home + hit)
}

/// Where the first entry of `owner` is, or else would be inserted: true if it is there.
#[inline(always)]
fn search(slots: &[Slot], homes: u64, owner: u64) -> (usize, bool) {
    let mixed = owner.wrapping_mul(MIX);
    let mut at = fastrange(mixed, homes) as usize;
    while let Some(slot) = slots.get(at) {
        let held = u64::from_le(slot[0]);
        if is_free(slot) || held > mixed {
            return (at, false);
        }
        if held == mixed {
            return (at, true);
        }
        at += 1;
    }
    (at, false)
}

/// The table.
pub struct Directory {
    memory: Option<Memory>,
    homes: u64,
    entries: u64,
}

impl Directory {
    /// A table without memory.
    pub fn empty() -> Self {
        Directory { memory: None, homes: 0, entries: 0 }
    }

    /// Over the words of a file, which [`Directory::check`] has not seen.
    pub fn over(memory: Option<Memory>, homes: u64, entries: u64) -> Self {
        Directory { memory, homes, entries }
    }

    /// Words of a table with so many homes.
    pub fn words(homes: u64) -> Option<u64> {
        if homes == 0 { Some(0) } else { homes.checked_add(TAIL as u64)?.checked_mul(2)?.checked_next_multiple_of(8) }
    }

    /// Homes of a table that holds `entries`, as small as it can be.
    pub fn homes_for(entries: u64) -> u64 {
        entries.saturating_mul(10).div_ceil(9)
    }

    /// Number of homes.
    pub fn homes(&self) -> u64 {
        self.homes
    }

    /// Number of entries.
    pub fn len(&self) -> u64 {
        self.entries
    }

    /// True without entries.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Bytes of the table.
    pub fn nbytes(&self) -> u64 {
        self.memory.as_ref().map_or(0, |memory| memory.len_bytes() as u64)
    }

    /// The words of the table, if it has any.
    pub fn memory(&self) -> Option<&Memory> {
        self.memory.as_ref()
    }

    /// An independent copy.
    pub fn try_clone(&self) -> Result<Self> {
        let memory = self.memory.as_ref().map(Memory::try_clone).transpose()?;
        Ok(Directory { memory, ..*self })
    }

    #[inline(always)]
    fn slots(&self) -> &[Slot] {
        self.memory.as_ref().map_or(&[], |memory| memory.words().as_chunks().0)
    }

    fn slots_mut(&mut self) -> Result<&mut [Slot]> {
        match &mut self.memory {
            Some(memory) => Ok(memory.writable()?.as_chunks_mut().0),
            None => Ok(&mut []),
        }
    }

    #[inline(always)]
    fn home(&self, mixed: u64) -> usize {
        fastrange(mixed, self.homes) as usize
    }

    /// Prefetches the home of an owner.
    #[inline(always)]
    pub fn fetch(&self, owner: u64) {
        let slots = self.slots();
        prefetch(slots.as_ptr().wrapping_add(self.home(owner.wrapping_mul(MIX))).cast());
    }

    /// Where the first entry of `owner` is, or else would be inserted: true if it is there.
    #[inline(always)]
    fn search(&self, owner: u64) -> (usize, bool) {
        search(self.slots(), self.homes, owner)
    }

    /// The slot of an owner.
    #[inline(always)]
    pub fn find(&self, owner: u64) -> Option<usize> {
        find(self.slots(), self.homes, owner).or_else(|| self.find_far(owner))
    }

    /// [`Directory::find`] beyond the slots that are compared at once.
    #[inline(never)]
    fn find_far(&self, owner: u64) -> Option<usize> {
        let (at, found) = self.search(owner);
        found.then_some(at)
    }

    /// First line and number of keys of an owner.
    #[inline(always)]
    pub fn state(&self, owner: u64) -> Option<(u32, u32)> {
        self.find(owner).and_then(|at| state(&self.slots()[at]))
    }

    /// Counts one more key for each of `owners` with fewer than `capacity`, up to the first owner without an entry; passes
    /// the number of each pair to `take`, with the first line of its owner if a key was counted, until that returns
    /// false. Returns how many were passed.
    #[inline(always)]
    pub fn count_each(
        &mut self,
        owners: &[u64],
        capacity: u64,
        mut take: impl FnMut(usize, Option<u32>) -> bool,
    ) -> Result<usize> {
        let homes = self.homes;
        owners.iter().take(AHEAD).for_each(|&owner| self.fetch(owner));
        let slots = self.slots_mut()?;
        for (i, &owner) in owners.iter().enumerate() {
            if let Some(&next) = owners.get(i + AHEAD) {
                prefetch(slots.as_ptr().wrapping_add(fastrange(next.wrapping_mul(MIX), homes) as usize).cast());
            }
            let found = find(slots, homes, owner).or_else(|| {
                let (at, found) = search(slots, homes, owner);
                found.then_some(at)
            });
            let Some(at) = found else { return Ok(i) };
            let Some((line, count)) = state(&slots[at]) else { return Ok(i) };
            let has_room = u64::from(count) < capacity;
            if has_room {
                slots[at][1] = (u64::from(line) + 1 | u64::from(count + 1) << 32).to_le();
            }
            if !take(i, has_room.then_some(line)) {
                return Ok(i + 1);
            }
        }
        Ok(owners.len())
    }

    /// The entry of a slot.
    #[inline(always)]
    pub fn entry(&self, at: usize) -> Option<Entry> {
        self.slots().get(at).copied().and_then(unpack)
    }

    /// The first entry of an owner.
    #[inline(always)]
    pub fn get(&self, owner: u64) -> Option<Entry> {
        self.entry(self.find(owner)?)
    }

    /// All entries of an owner, in the order in which they came.
    pub fn of(&self, owner: u64) -> impl Iterator<Item = Entry> + '_ {
        let (at, _) = self.search(owner);
        let run = self.slots().get(at..).unwrap_or_default().iter().map_while(|&slot| unpack(slot));
        run.take_while(move |entry| entry.owner == owner)
    }

    /// All entries, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = Entry> + '_ {
        self.slots().iter().filter_map(|&slot| unpack(slot))
    }

    /// Sets the count of the entry at slot `at`.
    #[inline(always)]
    pub fn set_count(&mut self, at: usize, count: u32) -> Result<()> {
        if let Some(slot) = self.slots_mut()?.get_mut(at) {
            let line = u64::from_le(slot[1]) & u64::from(u32::MAX);
            slot[1] = (line | u64::from(count) << 32).to_le();
        }
        Ok(())
    }

    /// True if one more entry leaves the table at most nine tenths full.
    fn has_room(&self) -> bool {
        (self.entries + 1).saturating_mul(10) <= self.homes.saturating_mul(9)
    }

    /// Bytes by which the next entry makes the table grow.
    pub fn growth(&self) -> u64 {
        if self.has_room() {
            return 0;
        }
        Self::words(self.next_homes()).map_or(u64::MAX, |words| words * 8).saturating_sub(self.nbytes())
    }

    fn next_homes(&self) -> u64 {
        let homes = self.homes;
        if homes < DOUBLING { (homes * 2).max(LEAST_HOMES) } else { homes + homes / 8 }
    }

    fn grow(&mut self) -> Result<()> {
        let mut homes = self.next_homes();
        while homes <= self.entries.saturating_mul(4).saturating_add(DOUBLING) {
            let words = Self::words(homes).ok_or_else(too_long)?;
            let mut memory = Memory::unsupplied(words)?;
            let slots = memory.writable()?.as_chunks_mut().0;
            if self.copy_into(slots, homes) {
                *self = Directory { memory: Some(memory), homes, entries: self.entries };
                return Ok(());
            }
            // The last run is longer than the slots behind the last home.
            homes += homes / 8;
        }
        Err(colliding())
    }

    /// Inserts all entries in order; false if the last ones find no slot.
    fn copy_into(&self, slots: &mut [Slot], homes: u64) -> bool {
        let mut next = 0;
        for &slot in self.slots().iter().filter(|slot| !is_free(slot)) {
            let at = (fastrange(u64::from_le(slot[0]), homes) as usize).max(next);
            let Some(place) = slots.get_mut(at) else { return false };
            *place = slot;
            next = at + 1;
        }
        true
    }

    /// Inserts an entry behind those of the same owner.
    pub fn insert(&mut self, entry: Entry) -> Result<()> {
        if !self.has_room() {
            self.grow()?;
        }
        loop {
            let home = self.home(entry.owner.wrapping_mul(MIX));
            let at = self.search(entry.owner).0 + self.of(entry.owner).count();
            let slots = self.slots();
            let Some(free) = (at..slots.len()).find(|&at| is_free(&slots[at])) else {
                self.grow()?;
                continue;
            };
            if free - home > FAR {
                return Err(colliding());
            }
            let slots = self.slots_mut()?;
            slots.copy_within(at..free, at + 1);
            slots[at] = pack(entry);
            self.entries += 1;
            return Ok(());
        }
    }

    /// Removes the entry at slot `at` and closes the gap.
    pub fn remove_at(&mut self, at: usize) -> Result<()> {
        let homes = self.homes;
        let slots = self.slots_mut()?;
        let Some(behind) = slots.get(at + 1..) else { return Ok(()) };
        // Entries behind move up until a free slot, or one that is at its home.
        let moves = behind.iter().enumerate().take_while(|(distance, slot)| {
            !is_free(slot) && (fastrange(u64::from_le(slot[0]), homes) as usize) <= at + distance
        });
        let end = at + 1 + moves.count();
        slots.copy_within(at + 1..end, at);
        slots[end - 1] = [0; 2];
        self.entries -= 1;
        Ok(())
    }

    /// Removes every entry and the memory.
    pub fn clear(&mut self) {
        *self = Self::empty();
    }

    /// True if every entry can be found and their number is right; `is_unique` if no owner may have two.
    pub fn check(&self, is_unique: bool) -> bool {
        let (mut before, mut next, mut entries) = (None::<u64>, 0, 0);
        for (at, slot) in self.slots().iter().enumerate() {
            if is_free(slot) {
                if *slot != [0; 2] {
                    return false;
                }
                continue;
            }
            let mixed = u64::from_le(slot[0]);
            let ordered = before.is_none_or(|before| if is_unique { before < mixed } else { before <= mixed });
            // An entry is at its home, or behind the entry before it.
            if !ordered || at != self.home(mixed).max(next) {
                return false;
            }
            (before, next, entries) = (Some(mixed), at + 1, entries + 1);
        }
        entries == self.entries && self.memory.is_some() == (self.homes > 0)
    }

    /// True if the memory cannot be written.
    pub fn is_read_only(&self) -> bool {
        self.memory.as_ref().is_some_and(Memory::is_read_only)
    }
}

#[cold]
fn too_long() -> Error {
    Error::Memory("a directory of so many owners exceeds any memory".into())
}

#[cold]
fn colliding() -> Error {
    Error::Capacity(
        "the hashes of a thousand owners nearly agree, as hashes of keys never do; use a secret if others choose the \
         owners"
            .into(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn entries_are_found_until_they_are_removed() {
        let (mut table, mut model) = (Directory::empty(), BTreeMap::new());
        let mut state = 7u64;
        for step in 0..20_000u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let owner = (state >> 33) % 3000;
            let owner = if owner % 2 == 0 { owner } else { owner.wrapping_mul(0x9e37_79b9_7f4a_7c15) };
            if step % 3 == 2 {
                let at = table.find(owner);
                assert_eq!(at.is_some(), model.remove(&owner).is_some());
                at.into_iter().for_each(|at| table.remove_at(at).unwrap());
            } else if !model.contains_key(&owner) {
                table.insert(Entry { owner, line: step, count: step ^ 5 }).unwrap();
                model.insert(owner, step);
            }
            if step % 500 == 0 {
                assert!(table.check(true));
            }
        }
        assert_eq!(table.len(), model.len() as u64);
        for owner in 0..3000u64 {
            let want = model.get(&owner).map(|&line| Entry { owner, line, count: line ^ 5 });
            assert_eq!(table.get(owner), want);
        }
        let mut owners: Vec<u64> = table.iter().map(|entry| entry.owner).collect();
        owners.sort_unstable();
        assert!(owners.iter().eq(model.keys()));
    }

    #[test]
    fn entries_of_one_owner_stay_in_order() {
        let mut table = Directory::empty();
        for stage in 1..=5 {
            for owner in 0..500 {
                table.insert(Entry { owner, line: owner as u32 * 10 + stage, count: stage }).unwrap();
            }
        }
        assert!(table.check(false) && !table.check(true));
        for owner in 0..500 {
            let lines: Vec<u32> = table.of(owner).map(|entry| entry.line).collect();
            assert!(lines.iter().copied().eq((1..=5).map(|stage| owner as u32 * 10 + stage)));
        }
    }

    #[test]
    fn large_tables_are_at_least_eight_tenths_full() {
        let mut table = Directory::empty();
        for i in 0..40_000u64 {
            table.insert(Entry { owner: i.wrapping_mul(0x9e37_79b9_7f4a_7c15), line: 0, count: 0 }).unwrap();
            if i > 2000 {
                assert!(table.nbytes() <= 20 * (i + 1) + 1100, "{i} {}", table.nbytes());
            }
        }
    }

    #[test]
    fn colliding_hashes_are_refused_before_they_cost_time() {
        let mut table = Directory::empty();
        let refused =
            (0..200_000u64).find_map(|i| table.insert(Entry { owner: i.wrapping_mul(UNMIX), line: 0, count: 0 }).err());
        assert!(matches!(refused, Some(Error::Capacity(message)) if message.contains("secret")));
    }
}
