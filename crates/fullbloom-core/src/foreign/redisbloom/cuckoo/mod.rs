//! [`Cuckoo`]: `RedisBloom`'s cuckoo filter, tables of fingerprints of one byte.
//!
//! ```text
//! h = MurmurHash64A(key, 0), fingerprint f = h mod 255 + 1; a slot of 0 is free
//! buckets h mod n and (h xor f 0x5bd1e995) mod n of each table, n a power of two
//! buckets of table j: those of the first * expansion^j
//! ```
//!
//! A key goes into the last table that has a free slot for it. Where none has, fingerprints of the last one make way, at
//! most `iterations` of them; if that does not help they go back, and a table is added, unless the expansion is 0.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use super::cells::{Cells, PieceError, place, start_of};
use super::fields::Fields;
use crate::cells::allocation::reserve;
use crate::error::{Error, Result};
pub use crate::foreign::rules::redisbloom::cuckoo_hash as hash;
use crate::growth::{Bound, Growth};

/// Bytes of a header.
pub(super) const HEADER: usize = 38;
/// A file has at most 32,768 sections.
const MOST_TABLES: usize = 32_767;
/// Places are computed in 32 bits.
const MOST_SLOTS: u64 = u32::MAX as u64;

/// The parameters of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Buckets of the first table, a power of two.
    pub buckets: u64,
    /// Slots of a bucket.
    pub bucket_size: u16,
    /// Evictions for one fingerprint.
    pub iterations: u16,
    /// The factor between the buckets of two tables, a power of two; 0 for a single table.
    pub expansion: u16,
}

/// True if tables of a filter can differ by this factor: the places of keys are masked by the number of buckets.
pub(super) fn is_expansion(factor: u16) -> bool {
    factor == 0 || factor.is_power_of_two()
}

impl Shape {
    /// The shape for `capacity` keys.
    pub fn new(capacity: u64, bucket_size: u16, iterations: u16, expansion: u16) -> Result<Self> {
        if bucket_size == 0 || bucket_size > 255 || capacity < 2 * u64::from(bucket_size) || capacity > 1 << 40 {
            return Err(Error::Parameter(format!(
                "a filter has buckets of 1 to 255 slots and a capacity of two buckets to 2^40, got {bucket_size} and \
                 {capacity}"
            )));
        }
        let buckets = (capacity / u64::from(bucket_size)).next_power_of_two();
        let expansion = if expansion == 0 { 0 } else { expansion.min(1 << 15).next_power_of_two() };
        Shape { buckets, bucket_size, iterations, expansion }.check()
    }

    fn check(self) -> Result<Self> {
        let sound = (1..=255).contains(&self.bucket_size)
            && self.iterations > 0
            && is_expansion(self.expansion)
            && self.buckets.is_power_of_two()
            && self.buckets < 1 << 56;
        if sound { Ok(self) } else { Err(Error::Format("Couldn't create filter!".into())) }
    }

    /// Bytes of table `index`.
    fn table_bytes(&self, index: usize) -> Result<u64> {
        let factor = u64::from(self.expansion).checked_pow(index as u32);
        let slots = factor.and_then(|factor| self.buckets.checked_mul(factor)?.checked_mul(self.bucket_size.into()));
        slots.filter(|&slots| slots > 0 && slots <= MOST_SLOTS).ok_or_else(|| {
            Error::Memory(format!("table {} of the filter has more slots than {MOST_SLOTS}, the most", index + 1))
        })
    }

    /// Bytes of the first `count` tables, from 1 on.
    fn bytes_of(&self, count: u64) -> Result<u64> {
        if self.expansion <= 1 {
            return Ok(self.table_bytes(0)?.saturating_mul(count));
        }
        // Tables of a filter that doubles are too large before they are many.
        (0..count as usize).try_fold(0u64, |sum, index| Ok(sum.saturating_add(self.table_bytes(index)?)))
    }

    /// Bytes of the first table.
    pub fn cell_bytes(&self) -> Result<u64> {
        self.table_bytes(0)
    }
}

/// Fingerprint and both places of a key, before they are reduced.
#[derive(Clone, Copy)]
pub(super) struct Places {
    fingerprint: u8,
    pub(super) either: [u64; 2],
}

fn other_place(fingerprint: u8, place: u64) -> u64 {
    place ^ (u64::from(fingerprint) * 0x5bd1_e995)
}

impl Places {
    pub(super) fn of(hash: u64) -> Self {
        Self::with((hash % 255 + 1) as u8, hash)
    }

    fn with(fingerprint: u8, place: u64) -> Self {
        Places { fingerprint, either: [place, other_place(fingerprint, place)] }
    }
}

/// What a header states.
struct HeaderFields {
    shape: Shape,
    items: u64,
    deletes: u64,
    tables: u64,
}

impl HeaderFields {
    fn read(header: &[u8]) -> Result<Self> {
        let mut fields = Fields(header);
        let mut read = || {
            let wide = [fields.u64()?, fields.u64()?, fields.u64()?, fields.u64()?];
            let narrow = [fields.u16()?, fields.u16()?, fields.u16()?];
            fields.0.is_empty().then_some((wide, narrow))
        };
        let read = read().ok_or_else(|| Error::Format("Invalid header".into()))?;
        let ([items, buckets, deletes, tables], [bucket_size, iterations, expansion]) = read;
        let shape = Shape { buckets, bucket_size, iterations, expansion }.check()?;
        if tables == 0 || tables > MOST_TABLES as u64 || expansion == 0 && tables > 1 {
            return Err(Error::Format("Couldn't create filter!".into()));
        }
        Ok(HeaderFields { shape, items, deletes, tables })
    }
}

/// See the head of this file.
pub struct Cuckoo {
    shape: Shape,
    pub(super) tables: Vec<Cells>,
    /// Bytes of all tables: a filter may have 32,767 of them.
    pub(super) nbytes: u64,
    pub(super) items: u64,
    pub(super) deletes: u64,
    bound: Bound,
}

impl Cuckoo {
    /// An empty filter.
    pub fn construct(shape: Shape) -> Result<Self> {
        let nbytes = shape.table_bytes(0)?;
        let tables = vec![Cells::zeroed(nbytes)?];
        Ok(Cuckoo { shape, tables, nbytes, items: 0, deletes: 0, bound: Bound::default() })
    }

    /// Its parameters.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Its tables, the oldest first.
    pub fn tables(&self) -> &[Cells] {
        &self.tables
    }

    /// Keys in it.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// Keys that were removed since tables were joined last.
    pub fn deletes(&self) -> u64 {
        self.deletes
    }

    /// Bytes of all tables, including those that have not arrived.
    pub fn nbytes(&self) -> u64 {
        self.nbytes
    }

    /// Refuses growth beyond `max_bytes`.
    pub fn bound(&mut self, max_bytes: u64) {
        self.bound.limit(max_bytes);
    }

    /// Asks `growth` before the filter grows, from now on.
    pub fn share(&mut self, growth: Arc<dyn Growth>) {
        self.bound.share(growth);
    }

    /// Share of slots in use.
    pub fn fill(&self) -> f64 {
        self.fill_and_fpr_of(self.used()).0
    }

    /// Rate of the slots in use: two buckets in each table, one of 255 values a slot.
    pub fn fpr(&self) -> f64 {
        self.fill_and_fpr_of(self.used()).1
    }

    /// [`Cuckoo::fill`] and [`Cuckoo::fpr`] if so many slots are in use.
    pub fn fill_and_fpr_of(&self, used: u64) -> (f64, f64) {
        let fill = used as f64 / self.nbytes() as f64;
        let compared = 2.0 * f64::from(self.shape.bucket_size) * self.tables.len() as f64 * fill;
        (fill, 1.0 - (1.0 - 1.0 / 255.0f64).powf(compared))
    }

    /// Slots in use.
    pub fn used(&self) -> u64 {
        let used = |table: &Cells| table.arrived().iter().filter(|&&slot| slot != 0).count() as u64;
        self.tables.iter().map(used).sum()
    }

    /// Rate of a first table that is full.
    pub fn target(&self) -> f64 {
        1.0 - (1.0 - 1.0 / 255.0f64).powi(2 * i32::from(self.shape.bucket_size))
    }

    fn width(&self) -> usize {
        usize::from(self.shape.bucket_size)
    }

    /// First slot of the bucket of a place in a table.
    pub(super) fn bucket(&self, table: usize, place: u64) -> usize {
        let width = u64::from(self.shape.bucket_size);
        let buckets = self.tables[table].len() as u64 / width;
        ((place & (buckets - 1)) * width) as usize
    }

    /// The first slot with `value` in a bucket.
    fn find_in(&self, table: usize, bucket: usize, value: u8) -> Option<usize> {
        let cells = &self.tables[table];
        (bucket..bucket + self.width()).find(|&slot| cells.get(slot) == value)
    }

    /// The first slot with `value` in either bucket of a key.
    fn find(&self, table: usize, places: &Places, value: u8) -> Option<usize> {
        places.either.iter().find_map(|&place| self.find_in(table, self.bucket(table, place), value))
    }

    fn set(&mut self, table: usize, slot: usize, value: u8) -> Result<()> {
        self.tables[table].all()?[slot] = value;
        Ok(())
    }

    /// True for a key that may be there.
    pub fn contains(&self, hash: u64) -> bool {
        let places = Places::of(hash);
        (0..self.tables.len()).any(|table| self.find(table, &places, places.fingerprint).is_some())
    }

    /// How often a key was added. A key with two equal buckets counts twice, as in the original.
    pub fn count(&self, hash: u64) -> u64 {
        let places = Places::of(hash);
        let mut count = 0;
        for table in 0..self.tables.len() {
            for place in places.either {
                let bucket = self.bucket(table, place);
                let slots = bucket..bucket + self.width();
                count += slots.filter(|&slot| self.tables[table].get(slot) == places.fingerprint).count() as u64;
            }
        }
        count
    }

    /// Adds a key, even one that is present.
    pub fn add(&mut self, hash: u64) -> Result<()> {
        let places = Places::of(hash);
        while !self.place(&places)? {
            self.grow()?;
        }
        self.items += 1;
        Ok(())
    }

    fn place(&mut self, places: &Places) -> Result<bool> {
        for table in (0..self.tables.len()).rev() {
            if let Some(slot) = self.find(table, places, 0) {
                return self.set(table, slot, places.fingerprint).map(|()| true);
            }
        }
        self.evict(places)
    }

    /// Puts a fingerprint into the last table, by evictions; false, and nothing has changed, if the last one evicted
    /// finds no slot.
    fn evict(&mut self, places: &Places) -> Result<bool> {
        let (last, width) = (self.tables.len() - 1, self.width());
        let mut fingerprint = places.fingerprint;
        let mut bucket = self.bucket(last, places.either[0]);
        let mut moved = Vec::new();
        for round in 0..usize::from(self.shape.iterations) {
            let slot = bucket + round % width;
            std::mem::swap(&mut self.tables[last].all()?[slot], &mut fingerprint);
            moved.push(slot);
            bucket = self.bucket(last, other_place(fingerprint, (bucket / width) as u64));
            if let Some(free) = self.find_in(last, bucket, 0) {
                return self.set(last, free, fingerprint).map(|()| true);
            }
        }
        for &slot in moved.iter().rev() {
            std::mem::swap(&mut self.tables[last].all()?[slot], &mut fingerprint);
        }
        Ok(false)
    }

    fn grow(&mut self) -> Result<()> {
        if self.shape.expansion == 0 {
            return Err(Error::Capacity("Filter is full".into()));
        }
        let (present, bytes) = (self.nbytes(), self.shape.table_bytes(self.tables.len())?);
        let (all, most) = (present.saturating_add(bytes), self.bound.after_step(present));
        if all > most || self.tables.len() >= MOST_TABLES {
            let why = format!("with one table more it has {all} bytes, it may have {most}");
            return Err(Error::Memory(format!("{why}; give max_bytes when it is opened, if you trust the file")));
        }
        if !self.bound.take(bytes) {
            let text = format!(
                "one table more has {bytes} bytes, more than all filters have left; drop some, or raise the cap"
            );
            return Err(Error::Memory(text));
        }
        self.tables.push(Cells::zeroed(bytes)?);
        self.nbytes = all;
        Ok(())
    }

    /// Removes a key once; false if it is absent.
    pub fn remove(&mut self, hash: u64) -> Result<bool> {
        let places = Places::of(hash);
        for table in (0..self.tables.len()).rev() {
            if let Some(slot) = self.find(table, &places, places.fingerprint) {
                self.set(table, slot, 0)?;
                self.items = self.items.saturating_sub(1);
                self.deletes = self.deletes.saturating_add(1);
                if self.tables.len() > 1 && self.deletes as f64 > self.items as f64 * 0.1 {
                    self.compact(false)?;
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Moves fingerprints to older tables, and drops the last one once it is empty. Unless `on` is set, stops at the
    /// first table that keeps some fingerprints.
    pub fn compact(&mut self, on: bool) -> Result<()> {
        for table in (1..self.tables.len()).rev() {
            let emptied = self.empty(table)?;
            if emptied && table + 1 == self.tables.len() {
                self.nbytes -= self.tables.pop().map_or(0, |last| last.len() as u64);
            }
            if !emptied && !on {
                break;
            }
        }
        self.deletes = 0;
        Ok(())
    }

    /// Moves the fingerprints of a table to older ones; true if none stayed.
    fn empty(&mut self, table: usize) -> Result<bool> {
        let (width, mut emptied) = (self.width(), true);
        for slot in 0..self.tables[table].len() {
            let fingerprint = self.tables[table].get(slot);
            if fingerprint == 0 {
                continue;
            }
            let places = Places::with(fingerprint, (slot / width) as u64);
            match (0..table).find_map(|older| self.find(older, &places, 0).map(|free| (older, free))) {
                Some((older, free)) => {
                    self.set(older, free, fingerprint)?;
                    self.set(table, slot, 0)?;
                }
                None => emptied = false,
            }
        }
        Ok(emptied)
    }

    /// The header of its dump.
    pub fn header(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER);
        for field in [self.items, self.shape.buckets, self.deletes, self.tables.len() as u64] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        for field in [self.shape.bucket_size, self.shape.iterations, self.shape.expansion] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        out
    }

    /// Bytes of the dump that begins with `head`; `None` if its header, which must be there, is not valid.
    pub(in crate::foreign) fn parse_total_len(head: &[u8]) -> Option<u64> {
        let stated = HeaderFields::read(head.get(..HEADER)?).ok()?;
        stated.shape.bytes_of(stated.tables).ok()?.checked_add(HEADER as u64)
    }

    /// The filter of a header, without its tables. It may have at most `max_bytes` of them.
    pub fn from_header(header: &[u8], max_bytes: u64) -> Result<Self> {
        let HeaderFields { shape, items, deletes, tables: count } = HeaderFields::read(header)?;
        let all = shape.bytes_of(count)?;
        if all > max_bytes {
            return Err(Error::Memory(format!("the filter has {all} bytes, it may have {max_bytes}")));
        }
        if items > all {
            return Err(Error::Format("Couldn't create filter!".into()));
        }
        let mut tables = Vec::new();
        reserve(&mut tables, count as usize)?;
        for index in 0..count as usize {
            tables.push(Cells::with_len(shape.table_bytes(index)?)?);
        }
        Ok(Cuckoo { shape, tables, nbytes: all, items, deletes, bound: Bound::of_file(max_bytes) })
    }

    /// The table of a byte, and its place there.
    fn find_byte(&self, at: i64) -> Option<(usize, usize)> {
        if self.shape.expansion > 1 {
            return place(self.tables.iter().map(Cells::len), at);
        }
        let (at, len) = (usize::try_from(at).ok()?, self.tables.first()?.len());
        (at / len < self.tables.len()).then_some((at / len, at % len))
    }

    /// The piece with this `number`, from 1 on, and the number under which it is loaded.
    pub fn piece(&self, number: i64) -> Option<(i64, Cow<'_, [u8]>)> {
        let (index, at) = self.find_byte(number.checked_sub(1)?)?;
        let piece = self.tables[index].piece(at);
        Some((number + piece.len() as i64, piece))
    }

    /// Loads a piece.
    pub fn load(&mut self, number: i64, bytes: &[u8]) -> Result<()> {
        let refused = |why: &str| Error::Format(format!("Couldn't load chunk!{why}"));
        if bytes.is_empty() {
            return Err(refused(""));
        }
        let mut put = || {
            let (index, at) = self.find_byte(start_of(number, bytes.len())?).ok_or(PieceError::Nowhere)?;
            self.tables[index].put(at, bytes)
        };
        put().map_err(|wrong| match wrong {
            PieceError::Other(Error::Format(why)) => refused(&format!(" {why}")),
            PieceError::Other(error) => error,
            _ => refused(""),
        })
    }

    /// A copy with these cells, one run for each table.
    pub fn with_cells(&self, cells: Vec<Vec<u8>>) -> Result<Self> {
        if !cells.iter().map(Vec::len).eq(self.tables.iter().map(Cells::len)) {
            return Err(Error::format("cells of another shape"));
        }
        let tables = cells.into_iter().map(Cells::of).collect();
        Ok(Cuckoo { tables, bound: self.bound.copy_alone(), ..*self })
    }

    /// A copy.
    pub fn try_clone(&self) -> Result<Self> {
        let tables = self.tables.iter().map(Cells::try_clone).collect::<Result<_>>()?;
        Ok(Cuckoo { tables, bound: self.bound.copy_alone(), ..*self })
    }
}
