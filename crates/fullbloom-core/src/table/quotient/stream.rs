//! Fingerprints of tables in ascending order, and tables built from such streams, for growing and merging. No key is
//! needed.

use std::iter::Peekable;

use super::geometry::Geometry;
use super::slots::Slots;
use crate::error::{Error, Result};

/// The error for bytes that are not a valid table.
pub(super) fn table_error() -> Error {
    Error::format("the table contradicts itself; its file is damaged, open it with verify=\"full\"")
}

/// The fingerprints of a table with their copies, a slot at a time.
pub struct Stream<'a> {
    slots: &'a Slots,
    /// The quotient whose run is being read or searched for.
    quotient: u64,
    inside: bool,
    slot: u64,
    /// Slots that may still be read: bytes that are no table could have more.
    left: u64,
}

impl<'a> Stream<'a> {
    /// From the first quotient on.
    pub fn new(slots: &'a Slots) -> Result<Self> {
        let slot = slots.offset(0).ok_or_else(table_error)?;
        Ok(Stream { slots, quotient: 0, inside: false, slot, left: slots.geometry().slots() })
    }

    /// The first occupied quotient from the present one on.
    fn next_quotient(&self) -> Option<u64> {
        let mut block = self.quotient >> 6;
        let mut keep = u64::MAX << (self.quotient & 63);
        while block < self.slots.geometry().blocks() {
            let word = self.slots.occupied(block) & keep;
            if word != 0 {
                return Some((block << 6) + u64::from(word.trailing_zeros()));
            }
            (block, keep) = (block + 1, u64::MAX);
        }
        None
    }
}

impl Iterator for Stream<'_> {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        if !self.inside {
            self.quotient = self.next_quotient()?;
            self.slot = self.slot.max(self.quotient);
            self.inside = true;
        }
        self.left = self.left.checked_sub(1)?;
        let (remainder, copies) = self.slots.read(self.slot);
        let fingerprint = self.quotient << self.slots.geometry().remainder_bits | remainder;
        if self.slots.is_runend(self.slot) {
            self.inside = false;
            self.quotient += 1;
        }
        self.slot += 1;
        Some((fingerprint, copies))
    }
}

/// The fingerprints of several tables in one ascending order, each once with all its copies.
pub struct Groups<'a>(Vec<Peekable<Stream<'a>>>);

impl<'a> Groups<'a> {
    /// Of all `tables`, whose fingerprints must be equally long.
    pub fn of(tables: &[&'a Slots]) -> Result<Self> {
        tables.iter().map(|table| Ok(Stream::new(table)?.peekable())).collect::<Result<_>>().map(Groups)
    }
}

impl Iterator for Groups<'_> {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        let least = self.0.iter_mut().filter_map(|stream| stream.peek().map(|(fingerprint, _)| *fingerprint)).min()?;
        let mut copies = 0u64;
        for stream in &mut self.0 {
            while let Some((_, more)) = stream.next_if(|(fingerprint, _)| *fingerprint == least) {
                copies = copies.saturating_add(more);
            }
        }
        Some((least, copies))
    }
}

/// How full a table is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Slots in use.
    pub used: u64,
    /// Distinct fingerprints.
    pub distinct: u64,
    /// The most slots that a fingerprint has between its home and the end of its copies.
    pub farthest: u64,
    /// Slots from the first on that belong to runs that began before the seam of the ring.
    wrapped: u64,
}

/// Counts the slots that `groups` need in a table of `geometry`, without building it.
fn census(geometry: Geometry, groups: Groups<'_>) -> Result<Census> {
    let (mut census, mut stop, mut before) = (Census::default(), 0, None);
    for (fingerprint, copies) in groups {
        if before.is_some_and(|before| before >= fingerprint) {
            return Err(table_error());
        }
        before = Some(fingerprint);
        let slots = copies.div_ceil(geometry.most_copies());
        census.used = census.used.saturating_add(slots);
        census.distinct += 1;
        if census.used > geometry.limit() {
            return Err(Error::Capacity(format!(
                "the fingerprints need more than the {} slots that may be filled; grow() the filter first, or build \
                 a larger one",
                geometry.limit()
            )));
        }
        stop = geometry.split(fingerprint).0.max(stop) + slots;
    }
    census.wrapped = stop.saturating_sub(geometry.slots());
    Ok(census)
}

/// The table of all fingerprints of `tables`, in `geometry`, which has fingerprints of the same length.
pub fn build(geometry: Geometry, tables: &[&Slots]) -> Result<(Slots, Census)> {
    let mut census = census(geometry, Groups::of(tables)?)?;
    let mut slots = Slots::new(geometry)?;
    let (mut stop, mut run) = (census.wrapped, None);
    for (fingerprint, mut copies) in Groups::of(tables)? {
        let (quotient, remainder) = geometry.split(fingerprint);
        if let Some(run) = run.filter(|run| *run != quotient) {
            slots.close_run(run, stop - 1);
        }
        run = Some(quotient);
        stop = stop.max(quotient);
        while copies > 0 {
            let here = copies.min(geometry.most_copies());
            slots.write(stop, geometry.cell(remainder, here));
            copies -= here;
            stop += 1;
        }
        census.farthest = census.farthest.max(stop - quotient);
    }
    if let Some(run) = run {
        slots.close_run(run, stop - 1);
    }
    slots.count_offsets(census.wrapped);
    Ok((slots, census))
}
