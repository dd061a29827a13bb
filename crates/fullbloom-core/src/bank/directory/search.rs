//! Searches of the slots of a directory, some of them at once.

use super::super::positions::Positions;
use super::slot::{MIX, Slot, is_free};
use crate::isa::prefetch;
use crate::scheme::fastrange;

/// Slots that are compared at once: from the home, and from the first slot with an entry of that home, where nearly all
/// searches end. A window of six slots lay on up to three lines of memory, of which two were fetched.
const WINDOW: usize = 8;
const NEAR: usize = 3;
/// Owners whose slots are fetched while those of as many before them are compared.
pub(super) const BLOCK: usize = 64;

/// Where the search of a block of owners begins.
pub(super) type Starts = [usize; BLOCK];

/// The slot of a mixed hash among the `N` from `start` on, which are compared without a branch each: a mispredicted branch
/// costs as much as all of them.
#[inline(always)]
fn find_among<const N: usize>(slots: &[Slot], start: usize, mixed: u64) -> Option<usize> {
    let window = slots.get(start..)?.first_chunk::<N>()?;
    let mut equal = 1u32 << N;
    for (at, slot) in window.iter().enumerate() {
        equal |= u32::from(u64::from_le(slot[0]) == mixed) << at;
    }
    let hit = equal.trailing_zeros() as usize;
    // The hash 0 equals that of a free slot.
    (hit < N && !is_free(&window[hit])).then_some(start + hit)
}

/// The slot of an owner whose search begins at `start`; `is_near` if an index gave that start.
#[inline(always)]
pub(super) fn find_from(slots: &[Slot], start: usize, owner: u64, is_near: bool) -> Option<usize> {
    let mixed = owner.wrapping_mul(MIX);
    let found =
        if is_near { find_among::<NEAR>(slots, start, mixed) } else { find_among::<WINDOW>(slots, start, mixed) };
    found.or_else(|| find_far(slots, start, mixed))
}

/// [`find_from`] beyond the slots that are compared at once.
#[inline(never)]
fn find_far(slots: &[Slot], start: usize, mixed: u64) -> Option<usize> {
    let (at, found) = search(slots, start, mixed);
    found.then_some(at)
}

/// Finds where the searches of `owners` begin, and prefetches the slots from there on.
#[inline(always)]
pub(super) fn fetch_block(slots: &[Slot], homes: u64, positions: &Positions, owners: &[u64], starts: &mut Starts) {
    for (start, &owner) in starts.iter_mut().zip(owners) {
        *start = positions.start(fastrange(owner.wrapping_mul(MIX), homes) as usize);
        let address = slots.as_ptr().wrapping_add(*start);
        prefetch(address.cast());
        prefetch(address.wrapping_add(if positions.is_empty() { WINDOW / 2 } else { NEAR - 1 }).cast());
    }
}

/// Prefetches the slot where a search begins.
#[inline(always)]
pub(super) fn fetch(slots: &[Slot], start: usize) {
    prefetch(slots.as_ptr().wrapping_add(start).cast());
}

/// Where the first entry of a mixed hash is, or else would be inserted: true if it is there.
#[inline(always)]
pub(super) fn search(slots: &[Slot], start: usize, mixed: u64) -> (usize, bool) {
    let mut at = start;
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
