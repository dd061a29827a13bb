//! A slot of a directory, and the entry in it. Hashes of owners are multiplied, which spreads them over the directory.

/// An odd multiplier with a good spectrum (Steele and Vigna, 2021).
pub(super) const MIX: u64 = 0xd134_2543_de82_ef95;
/// The inverse of [`MIX`] modulo 2^64.
pub(crate) const UNMIX: u64 = inverse(MIX);

/// Newton's iteration doubles the number of correct bits.
const fn inverse(odd: u64) -> u64 {
    let (mut x, mut step) = (odd, 0);
    while step < 6 {
        x = x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x)));
        step += 1;
    }
    x
}

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

/// Words of a slot.
pub(super) type Slot = [u64; 2];

/// The slot of an entry.
pub(super) fn pack(entry: Entry) -> Slot {
    let line = u64::from(entry.line) + 1;
    [entry.owner.wrapping_mul(MIX).to_le(), (line | u64::from(entry.count) << 32).to_le()]
}

/// The entry of a slot; `None` for a free one.
#[inline(always)]
pub(super) fn unpack(slot: Slot) -> Option<Entry> {
    let state = u64::from_le(slot[1]);
    let line = (state as u32).checked_sub(1)?;
    Some(Entry { owner: u64::from_le(slot[0]).wrapping_mul(UNMIX), line, count: (state >> 32) as u32 })
}

/// True for a slot without an entry.
#[inline(always)]
pub(super) fn is_free(slot: &Slot) -> bool {
    u64::from_le(slot[1]) as u32 == 0
}

/// First line and number of keys of a slot; `None` for a free one.
#[inline(always)]
pub(super) fn state(slot: &Slot) -> Option<(u32, u32)> {
    let state = u64::from_le(slot[1]);
    Some(((state as u32).checked_sub(1)?, (state >> 32) as u32))
}
