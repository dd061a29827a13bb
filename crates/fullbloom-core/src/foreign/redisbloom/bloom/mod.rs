//! [`Chain`]: `RedisBloom`'s Bloom filter, a chain of layers that are never rounded up but to 64 bits.
//!
//! ```text
//! h1 = MurmurHash64A(key, 0xc6a4a7935bd1e995), h2 = MurmurHash64A(key, h1)
//! bit i = (h1 + i h2 mod 2^64) mod bits,  i < k;   bit b is in byte b / 8, the lowest first
//! bits = entries * bpe down to a whole number, up to 64;   bpe = -ln(error) / 0.480453013918201
//! k = 0.693147180559945 * bpe, up to a whole number
//! ```
//!
//! The first layer of a chain that grows has half the requested error, each later one half that of the one
//! before and `growth` times its entries. A key that some layer has is not added; a new one goes into the last layer, and
//! into one more where that holds as many keys as it has entries.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use super::cells::{Cells, PieceError, place, start_of};
use super::fields::Fields;
use crate::error::{Error, Result};
use crate::foreign::bits::remainder::Remainder;
pub use crate::foreign::rules::redisbloom::hash;
use crate::growth::{Bound, Growth};

/// (ln 2)^2 and ln 2 in the digits that sizes are computed with.
#[allow(clippy::excessive_precision, clippy::approx_constant)] // these, and not the nearest, size the layers
pub(super) const LN2_SQUARED: f64 = 0.480_453_013_918_201;
#[allow(clippy::approx_constant)]
pub(super) const LN2: f64 = 0.693_147_180_559_945;

/// Layers are sized without rounding, and hashed with 64 bits.
const NORMAL: u32 = 5;
/// No layer is opened.
const NO_SCALING: u32 = 8;
/// Bytes of a header, and of each layer in it.
const HEADER: usize = 20;
const LAYER: usize = 53;
/// The error halves with every layer: from 0.25 on it is 0 before this many.
const MOST_LAYERS: usize = 1100;
/// Remainders of two probes are added, and a filter full of keys takes more.
const MOST_BITS: u64 = 1 << 62;
const MOST_ITEMS: u64 = 1 << 62;

fn bits_per_entry(error: f64) -> f64 {
    (error.ln() / LN2_SQUARED).abs()
}

/// Bytes of a layer, whole words of 64 bits; `None` for one that is too large.
pub(super) fn bytes_for(entries: u64, bits_per_entry: f64) -> Option<u64> {
    let exact = entries as f64 * bits_per_entry;
    (entries > 0 && exact < 4e18).then(|| (exact as u64).max(1).div_ceil(64) * 8)
}

fn hashes_for(bits_per_entry: f64) -> u32 {
    (LN2 * bits_per_entry).ceil() as u32
}

/// One filter of the chain.
pub struct Layer {
    pub(super) cells: Cells,
    pub(super) bits: u64,
    by: Remainder,
    /// k.
    pub hashes: u32,
    /// The remainder of 2^64 divided by the bits.
    wrap: u64,
    /// Keys that were new when they were added.
    pub items: u64,
    /// Keys that it is sized for.
    pub entries: u64,
    /// Rate that it is sized for.
    pub error: f64,
    bits_per_entry: f64,
}

/// Probes of a key: `(h1 + i h2 mod 2^64) mod bits`, with two reductions for all of them.
pub(super) struct Probes {
    /// The sum, and its remainder.
    sum: u64,
    bit: u64,
    step: u64,
    step_bit: u64,
}

impl Probes {
    #[inline(always)]
    pub(super) fn new([first, second]: [u64; 2], layer: &Layer) -> Self {
        Probes { sum: first, bit: layer.by.of_any(first), step: second, step_bit: layer.by.of_any(second) }
    }

    #[inline(always)]
    pub(super) fn next(&mut self, layer: &Layer) -> u64 {
        let bit = self.bit;
        let (sum, wrapped) = self.sum.overflowing_add(self.step);
        self.sum = sum;
        let mut next = self.bit + self.step_bit;
        next -= if next >= layer.bits { layer.bits } else { 0 };
        if wrapped {
            next = if next >= layer.wrap { next - layer.wrap } else { next + layer.bits - layer.wrap };
        }
        self.bit = next;
        bit
    }
}

impl Layer {
    fn new(entries: u64, error: f64) -> Result<Self> {
        let bits_per_entry = bits_per_entry(error);
        let bytes = bytes_for(entries, bits_per_entry).filter(|_| error > 0.0 && error < 1.0);
        let Some(bytes) = bytes else {
            return Err(Error::Parameter(format!("no layer has {entries} entries at a rate of {error:e}")));
        };
        Ok(Self::with_cells(Cells::with_len(bytes)?, entries, error, bits_per_entry))
    }

    fn with_cells(cells: Cells, entries: u64, error: f64, bits_per_entry: f64) -> Self {
        let bits = cells.len() as u64 * 8;
        let (hashes, wrap) = (hashes_for(bits_per_entry), (u64::MAX % bits + 1) % bits);
        Layer { cells, bits, by: Remainder::by(bits), hashes, wrap, items: 0, entries, error, bits_per_entry }
    }

    /// Its bits, in bytes.
    pub fn cells(&self) -> &Cells {
        &self.cells
    }

    #[inline]
    pub(super) fn contains(&self, key: [u64; 2]) -> bool {
        let mut probes = Probes::new(key, self);
        (0..self.hashes).all(|_| {
            let bit = probes.next(self);
            self.cells.get((bit >> 3) as usize) >> (bit & 7) & 1 != 0
        })
    }

    /// Sets the bits of a key that is not there.
    #[inline]
    fn put(&mut self, key: [u64; 2]) -> Result<()> {
        let mut probes = Probes::new(key, self);
        self.cells.all()?;
        for _ in 0..self.hashes {
            let bit = probes.next(self);
            self.cells.all()?[(bit >> 3) as usize] |= 1 << (bit & 7);
        }
        self.items += 1;
        Ok(())
    }

    fn write(&self, out: &mut Vec<u8>) {
        let wide =
            [self.cells.len() as u64, self.bits, self.items, self.error.to_bits(), self.bits_per_entry.to_bits()];
        wide.iter().for_each(|field| out.extend_from_slice(&field.to_le_bytes()));
        out.extend_from_slice(&self.hashes.to_le_bytes());
        out.extend_from_slice(&self.entries.to_le_bytes());
        out.push(0);
    }

    /// The next layer of a header, if it is valid.
    fn read(fields: &mut Fields<'_>) -> Option<Result<Self>> {
        let (bytes, bits, items) = (fields.u64()?, fields.u64()?, fields.u64()?);
        let (error, bits_per_entry) = (fields.f64()?, fields.f64()?);
        let (hashes, entries, rounded) = (fields.u32()?, fields.u64()?, fields.u8()?);
        let sized = bits_per_entry.is_finite() && (bits_per_entry / self::bits_per_entry(error) - 1.0).abs() < 1e-9;
        let sound = error > 0.0 && error < 1.0 && sized && hashes == hashes_for(bits_per_entry);
        if !sound || bits == 0 || bits > MOST_BITS || bytes.checked_mul(8) != Some(bits) || rounded != 0 {
            return None;
        }
        // The next layer is sized by the entries of this one, so they must be those of its bits.
        if bytes_for(entries, bits_per_entry) != Some(bytes) {
            return None;
        }
        let cells = Cells::with_len(bytes);
        Some(cells.map(|cells| Layer { items, ..Self::with_cells(cells, entries, error, bits_per_entry) }))
    }

    pub(super) fn ones(&self) -> u64 {
        self.cells.arrived().iter().map(|byte| u64::from(byte.count_ones())).sum()
    }

    pub(super) fn try_clone(&self) -> Result<Self> {
        Ok(Layer { cells: self.cells.try_clone()?, ..*self })
    }
}

/// See the head of this file.
pub struct Chain {
    pub(super) layers: Vec<Layer>,
    pub(super) items: u64,
    pub(super) scaling: bool,
    pub(super) growth: u32,
    pub(super) bound: Bound,
}

fn header_error(why: &str) -> Error {
    Error::Format(format!("received bad data{why}"))
}

impl Chain {
    /// An empty filter for `capacity` keys at rate `error`; files contain `growth` even for a filter that does not
    /// grow.
    pub fn construct(capacity: u64, error: f64, growth: u32, scaling: bool) -> Result<Self> {
        let mut chain = Chain { layers: Vec::new(), items: 0, scaling, growth, bound: Bound::default() };
        chain.push(Self::first(capacity, error, scaling)?)?;
        Ok(chain)
    }

    fn first(capacity: u64, error: f64, scaling: bool) -> Result<Layer> {
        Layer::new(capacity, if scaling { error * 0.5 } else { error })
    }

    /// Bytes of bits of such a filter.
    pub fn cell_bytes(capacity: u64, error: f64, scaling: bool) -> Result<u64> {
        Ok(Self::first(capacity, error, scaling)?.cells.len() as u64)
    }

    fn push(&mut self, mut layer: Layer) -> Result<()> {
        layer.cells.all()?;
        self.layers.push(layer);
        Ok(())
    }

    /// Its layers, the oldest first.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Keys that were new when they were added.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// Entries of all layers.
    pub fn capacity(&self) -> u64 {
        self.layers.iter().fold(0, |sum, layer| sum.saturating_add(layer.entries))
    }

    /// The factor between the entries of two layers, if there may be more than one.
    pub fn expansion(&self) -> Option<u32> {
        self.scaling.then_some(self.growth)
    }

    /// Bytes of bits, including those that have not arrived.
    pub fn nbytes(&self) -> u64 {
        self.layers.iter().fold(0, |sum, layer| sum.saturating_add(layer.cells.len() as u64))
    }

    /// Refuses growth beyond `max_bytes`.
    pub fn bound(&mut self, max_bytes: u64) {
        self.bound.limit(max_bytes);
    }

    /// Asks `growth` before the filter grows, from now on.
    pub fn share(&mut self, growth: Arc<dyn Growth>) {
        self.bound.share(growth);
    }

    /// The requested rate.
    pub fn target(&self) -> f64 {
        let first = self.layers.first().map_or(0.0, |layer| layer.error);
        if self.scaling { first * 2.0 } else { first }
    }

    /// True for a key that may have been added.
    #[inline]
    pub fn contains(&self, key: [u64; 2]) -> bool {
        self.layers.iter().rev().any(|layer| layer.contains(key))
    }

    /// Adds a key: true if it was new. A filter that does not grow refuses new keys beyond its capacity.
    pub fn add(&mut self, key: [u64; 2]) -> Result<bool> {
        if self.contains(key) {
            return Ok(false);
        }
        let Some(last) = self.layers.last() else { return Err(header_error("")) };
        if last.items >= last.entries {
            self.grow()?;
        }
        if let Some(last) = self.layers.last_mut() {
            last.put(key)?;
            self.items += 1;
        }
        Ok(true)
    }

    #[cold]
    fn grow(&mut self) -> Result<()> {
        let Some(last) = self.layers.last() else { return Err(header_error("")) };
        if !self.scaling {
            return Err(Error::Capacity("non scaling filter is full".into()));
        }
        let entries = last.entries.checked_mul(self.growth.into());
        let layer = Layer::new(entries.unwrap_or(u64::MAX), last.error * 0.5)?;
        let (present, more) = (self.nbytes(), layer.cells.len() as u64);
        let (bytes, most) = (present.saturating_add(more), self.bound.after_step(present));
        if self.layers.len() >= MOST_LAYERS || bytes > most {
            let why = format!("with one layer more it has {bytes} bytes, it may have {most}");
            return Err(Error::Memory(format!("{why}; give max_bytes when it is opened, if you trust the file")));
        }
        if !self.bound.take(layer.cells.len() as u64) {
            let more = layer.cells.len();
            let text = format!(
                "one layer more has {more} bytes, more than all filters have left; drop some, or raise the cap"
            );
            return Err(Error::Memory(text));
        }
        self.push(layer)
    }

    /// The header of its dump.
    pub fn header(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER + LAYER * self.layers.len());
        out.extend_from_slice(&self.items.to_le_bytes());
        let options = if self.scaling { NORMAL } else { NORMAL | NO_SCALING };
        for field in [self.layers.len() as u32, options, self.growth] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        self.layers.iter().for_each(|layer| layer.write(&mut out));
        out
    }

    /// Bytes of the header that begins with `first`, at least 12 bytes; `None` for more layers than a filter has.
    pub(super) fn header_len(first: &[u8]) -> Option<usize> {
        let layers = u32::from_le_bytes(*first.get(8..)?.first_chunk()?) as usize;
        (1..=MOST_LAYERS).contains(&layers).then(|| HEADER + LAYER * layers)
    }

    /// Bytes of the dump that begins with `head`; `None` if its header, which must be there, is not valid.
    pub(in crate::foreign) fn parse_total_len(head: &[u8]) -> Option<u64> {
        let len = Self::header_len(head)?;
        let chain = Self::from_header(head.get(..len)?, u64::MAX).ok()?;
        chain.nbytes().checked_add(len as u64)
    }

    /// The filter of a header, without its bits. It may have at most `max_bytes` of them.
    pub fn from_header(header: &[u8], max_bytes: u64) -> Result<Self> {
        let mut fields = Fields(header);
        let mut head = || Some((fields.u64()?, fields.u32()?, fields.u32()?, fields.u32()?));
        let (items, count, options, growth) = head().ok_or_else(|| header_error(""))?;
        if count == 0
            || fields.0.len() as u64 != LAYER as u64 * u64::from(count)
            || options & !(NORMAL | NO_SCALING | 2) != 0
        {
            return Err(header_error(""));
        }
        if options & !NO_SCALING != NORMAL {
            return Err(header_error(": layers that are powers of two, or hashed with 32 bits, are not read"));
        }
        if count as usize > MOST_LAYERS {
            return Err(header_error(": a filter has at most 1100 layers"));
        }
        let scaling = options & NO_SCALING == 0;
        let mut chain = Chain { layers: Vec::new(), items, scaling, growth, bound: Bound::of_file(max_bytes) };
        let mut sum = 0u64;
        for _ in 0..count {
            let layer = Layer::read(&mut fields).ok_or_else(|| header_error(""))??;
            sum = sum.checked_add(layer.items).ok_or_else(|| header_error(""))?;
            chain.layers.push(layer);
        }
        if sum != items || items > MOST_ITEMS {
            return Err(header_error(""));
        }
        if chain.nbytes() > max_bytes {
            let bytes = chain.nbytes();
            return Err(Error::Memory(format!("the filter has {bytes} bytes, it may have {max_bytes}")));
        }
        Ok(chain)
    }

    /// The cells of its layers.
    pub fn cells(&self) -> impl Iterator<Item = &Cells> {
        self.layers.iter().map(|layer| &layer.cells)
    }

    fn find_byte(&self, at: i64) -> Option<(usize, usize)> {
        place(self.cells().map(Cells::len), at)
    }

    /// The piece with this `number`, from 1 on, and the number under which it is loaded.
    pub fn piece(&self, number: i64) -> Option<(i64, Cow<'_, [u8]>)> {
        let (index, at) = self.find_byte(number.checked_sub(1)?)?;
        let piece = self.layers[index].cells.piece(at);
        Some((number + piece.len() as i64, piece))
    }

    /// Loads a piece.
    pub fn load(&mut self, number: i64, bytes: &[u8]) -> Result<()> {
        let mut put = || {
            let (index, at) = self.find_byte(start_of(number, bytes.len())?).ok_or(PieceError::Nowhere)?;
            self.layers[index].cells.put(at, bytes)
        };
        put().map_err(|refused| match refused {
            PieceError::Number => header_error(""),
            PieceError::Nowhere => Error::Format("invalid offset - no link found".into()),
            PieceError::Long => Error::Format("invalid chunk - Too big for current filter".into()),
            PieceError::Other(error) => error,
        })
    }

    /// Calls `word` with the number of the last layer and the index of each word that adding one of the keys may write,
    /// unless that opens a layer; false while cells are missing.
    pub fn writes(&self, keys: &[[u64; 2]], word: &mut dyn FnMut(usize, usize)) -> bool {
        let Some(last) = self.layers.last() else { return false };
        for &key in keys {
            let mut probes = Probes::new(key, last);
            (0..last.hashes).for_each(|_| word(self.layers.len() - 1, (probes.next(last) >> 6) as usize));
        }
        self.layers.iter().all(|layer| layer.cells.arrived().len() == layer.cells.len())
    }

    /// A copy with these cells, one run for each layer.
    pub fn with_cells(&self, cells: Vec<Vec<u8>>) -> Result<Self> {
        if !cells.iter().map(Vec::len).eq(self.cells().map(Cells::len)) {
            return Err(header_error(": cells of another shape"));
        }
        let layer = |(layer, cells): (&Layer, Vec<u8>)| Layer { cells: Cells::of(cells), ..*layer };
        let layers = self.layers.iter().zip(cells).map(layer).collect();
        Ok(Chain { layers, bound: self.bound.copy_alone(), ..*self })
    }

    /// A copy.
    pub fn try_clone(&self) -> Result<Self> {
        let layers = self.layers.iter().map(Layer::try_clone).collect::<Result<_>>()?;
        Ok(Chain { layers, bound: self.bound.copy_alone(), ..*self })
    }
}
