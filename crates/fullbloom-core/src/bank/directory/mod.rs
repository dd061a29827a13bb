//! [`Directory`]: from the hash of an owner to its lines. A hash table of 16 bytes per slot, in order of the hashes.
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

mod search;
mod slot;

pub use self::slot::Entry;
#[cfg(test)]
pub(super) use self::slot::UNMIX;

use self::search::{BLOCK, fetch_block, find_from, search};
use self::slot::{MIX, Slot, is_free, pack, state, unpack};
use super::positions::Positions;
use crate::cells::Memory;
use crate::error::{Error, Result};
use crate::scheme::fastrange;

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
/// Slots that an insertion may move. A table of millions that is nine tenths full has runs of thousands of slots (more than
/// x with probability exp(-x / 190) or so), though every search in them is short.
const MOST_MOVED: usize = 1 << 14;

/// The table.
pub struct Directory {
    memory: Option<Memory>,
    homes: u64,
    entries: u64,
    positions: Positions,
}

impl Directory {
    /// A table without memory.
    pub fn empty() -> Self {
        Directory { memory: None, homes: 0, entries: 0, positions: Positions::none() }
    }

    /// Over the words of a file, which [`Directory::check`] has not seen.
    pub fn from_memory(memory: Option<Memory>, homes: u64, entries: u64) -> Self {
        Directory { memory, homes, entries, positions: Positions::none() }
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

    /// Bytes of the index.
    pub fn index_bytes(&self) -> u64 {
        self.positions.nbytes()
    }

    /// The words of the table, if it has any.
    pub fn memory(&self) -> Option<&Memory> {
        self.memory.as_ref()
    }

    /// An independent copy.
    pub fn try_clone(&self) -> Result<Self> {
        let memory = self.memory.as_ref().map(Memory::try_clone).transpose()?;
        let mut copy = Directory { memory, homes: self.homes, entries: self.entries, positions: Positions::none() };
        copy.index();
        Ok(copy)
    }

    /// Builds the index of a table that was checked. Mapped tables have none, since they open in constant time.
    pub fn index(&mut self) {
        let homes = self.homes;
        let occupied = self.slots().iter().enumerate().filter(|(_, slot)| !is_free(slot));
        let entries = occupied.map(|(at, slot)| (fastrange(u64::from_le(slot[0]), homes) as usize, at));
        self.positions = Positions::of(homes, entries);
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

    /// Where the search of an owner begins.
    #[inline(always)]
    fn start(&self, owner: u64) -> usize {
        self.positions.start(self.home(owner.wrapping_mul(MIX)))
    }

    /// Prefetches the slots where the search of an owner begins.
    #[inline(always)]
    pub fn fetch(&self, owner: u64) {
        search::fetch(self.slots(), self.start(owner));
    }

    /// Where the first entry of `owner` is, or else would be inserted: true if it is there.
    #[inline(always)]
    fn search(&self, owner: u64) -> (usize, bool) {
        search(self.slots(), self.start(owner), owner.wrapping_mul(MIX))
    }

    /// The slot of an owner.
    #[inline(always)]
    pub fn find(&self, owner: u64) -> Option<usize> {
        find_from(self.slots(), self.start(owner), owner, !self.positions.is_empty())
    }

    /// Passes first line and number of keys of each of `owners` to `take`, with the number of the pair; nothing for an owner
    /// without an entry.
    #[inline(always)]
    pub fn find_each(&self, owners: &[u64], mut take: impl FnMut(usize, u32, u32)) {
        let (slots, homes, positions) = (self.slots(), self.homes, &self.positions);
        let is_near = !positions.is_empty();
        let (mut starts, mut next) = ([0; BLOCK], [0; BLOCK]);
        fetch_block(slots, homes, positions, &owners[..owners.len().min(BLOCK)], &mut starts);
        for (block, some) in owners.chunks(BLOCK).enumerate() {
            let first = block * BLOCK;
            let behind = owners.get(first + BLOCK..).unwrap_or_default();
            fetch_block(slots, homes, positions, &behind[..behind.len().min(BLOCK)], &mut next);
            for (i, (&owner, &start)) in some.iter().zip(&starts).enumerate() {
                if let Some(at) = find_from(slots, start, owner, is_near)
                    && let Some((line, count)) = state(&slots[at])
                {
                    take(first + i, line, count);
                }
            }
            starts = next;
        }
    }

    /// Counts one more key for each of `owners` with fewer than `capacity`, up to the first owner without an entry; passes
    /// the number of each pair to `take`, with the slot of its owner, and its first line if a key was counted, until that
    /// returns false. Returns how many were passed.
    #[inline(always)]
    pub fn count_each(
        &mut self,
        owners: &[u64],
        capacity: u64,
        mut take: impl FnMut(usize, usize, Option<u32>) -> bool,
    ) -> Result<usize> {
        let (homes, positions, is_near) = (self.homes, &self.positions, !self.positions.is_empty());
        let slots: &mut [Slot] = match &mut self.memory {
            Some(memory) => memory.writable()?.as_chunks_mut().0,
            None => &mut [],
        };
        let (mut starts, mut next) = ([0; BLOCK], [0; BLOCK]);
        fetch_block(slots, homes, positions, &owners[..owners.len().min(BLOCK)], &mut starts);
        for (block, some) in owners.chunks(BLOCK).enumerate() {
            let first = block * BLOCK;
            let behind = owners.get(first + BLOCK..).unwrap_or_default();
            fetch_block(slots, homes, positions, &behind[..behind.len().min(BLOCK)], &mut next);
            for (i, (&owner, &start)) in some.iter().zip(&starts).enumerate() {
                let Some(at) = find_from(slots, start, owner, is_near) else { return Ok(first + i) };
                let Some((line, count)) = state(&slots[at]) else { return Ok(first + i) };
                let has_room = u64::from(count) < capacity;
                if has_room {
                    slots[at][1] = ((u64::from(line) + 1) | (u64::from(count + 1) << 32)).to_le();
                }
                if !take(first + i, at, has_room.then_some(line)) {
                    return Ok(first + i + 1);
                }
            }
            starts = next;
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

    /// The entries from `owner` on, in the order of the table: that of the mixed hashes, which no change of others alters.
    /// From the owner 0 on they are all.
    pub fn iter_from(&self, owner: u64) -> impl Iterator<Item = Entry> + '_ {
        let (at, _) = self.search(owner);
        self.slots().get(at..).unwrap_or_default().iter().filter_map(|&slot| unpack(slot))
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
        let homes = self.next_homes();
        let bytes =
            Self::words(homes).map_or(u64::MAX, |words| (words * 8).saturating_add(Positions::bytes_for(homes)));
        bytes.saturating_sub(self.nbytes() + self.index_bytes())
    }

    fn next_homes(&self) -> u64 {
        let homes = self.homes;
        if homes < DOUBLING { (homes * 2).max(LEAST_HOMES) } else { homes + homes / 8 }
    }

    fn grow(&mut self) -> Result<()> {
        let mut homes = self.next_homes();
        while homes <= self.entries.saturating_mul(4).saturating_add(DOUBLING) {
            let words = Self::words(homes).ok_or_else(too_long)?;
            let mut memory = Memory::allocate_unsupplied(words)?;
            let slots = memory.writable()?.as_chunks_mut().0;
            if self.copy_into(slots, homes) {
                *self = Directory::from_memory(Some(memory), homes, self.entries);
                self.index();
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
            let run = self.slots().get(at..).unwrap_or_default();
            let Some(moved) = run.iter().take(MOST_MOVED).position(is_free) else {
                if run.len() > MOST_MOVED {
                    return Err(colliding());
                }
                self.grow()?;
                continue;
            };
            if at + moved - home > FAR && self.is_far(home, at, moved) {
                return Err(colliding());
            }
            let free = at + moved;
            let slots = self.slots_mut()?;
            slots.copy_within(at..free, at + 1);
            slots[at] = pack(entry);
            self.positions.shift_down(home, free);
            self.entries += 1;
            return Ok(());
        }
    }

    /// True if a search would pass too many slots once an entry of `home` is at slot `at` and `moved` entries moved by one.
    #[cold]
    fn is_far(&self, home: usize, at: usize, moved: usize) -> bool {
        let behind = self.slots().iter().enumerate().skip(at).take(moved);
        at - home > FAR || behind.into_iter().any(|(at, slot)| at + 1 - self.home(u64::from_le(slot[0])) > FAR)
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
        let home = fastrange(u64::from_le(slots[at][0]), homes) as usize;
        slots.copy_within(at + 1..end, at);
        slots[end - 1] = [0; 2];
        self.positions.shift_up(home, end - 1);
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

    /// True if the index is that of the slots.
    #[cfg(test)]
    fn is_indexed(&self) -> bool {
        let fresh = self.try_clone().unwrap();
        self.positions == fresh.positions
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
mod tests;
