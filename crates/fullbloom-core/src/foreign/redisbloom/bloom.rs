//! [`Chain`]: `RedisBloom`'s Bloom filter, a chain of layers that are never rounded up but to 64 bits.
//!
//! ```text
//! h1 = MurmurHash64A(key, 0xc6a4a7935bd1e995), h2 = MurmurHash64A(key, h1)
//! bit i = (h1 + i h2 mod 2^64) mod bits,  i < k;   bit b is in byte b / 8, the lowest first
//! bits = entries * bpe down to a whole number, up to 64;   bpe = -ln(error) / 0.480453013918201
//! k = 0.693147180559945 * bpe, up to a whole number
//! ```
//!
//! The first layer of a chain that grows has half the error that was asked for, each one behind it half that of the one
//! before and `growth` times its entries. A key that some layer has is not added; a new one goes into the last layer, and
//! into one more where that holds as many keys as it has entries.

use std::borrow::Cow;
use std::sync::Arc;

use super::cells::{Cells, Refused, piece_of, take_piece};
use super::fields::Fields;
use crate::error::{Error, Result};
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

fn hashes_for(bits_per_entry: f64) -> u32 {
    (LN2 * bits_per_entry).ceil() as u32
}

/// One filter of the chain.
pub struct Layer {
    cells: Cells,
    /// Bits, k, and the remainder of 2^64 divided by the bits.
    pub(super) bits: u64,
    /// k.
    pub hashes: u32,
    wrap: u64,
    /// Keys that were new when they were added.
    pub items: u64,
    /// Keys that it is sized for.
    pub entries: u64,
    /// Rate that it is sized for.
    pub error: f64,
    bits_per_entry: f64,
}

/// Probes of a key: `(h1 + i h2 mod 2^64) mod bits`, with two divisions for all of them.
struct Probes {
    /// The sum, and its remainder.
    sum: u64,
    bit: u64,
    step: u64,
    step_bit: u64,
}

impl Probes {
    #[inline(always)]
    fn new([first, second]: [u64; 2], bits: u64) -> Self {
        Probes { sum: first, bit: first % bits, step: second, step_bit: second % bits }
    }

    #[inline(always)]
    fn next(&mut self, layer: &Layer) -> u64 {
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
        let exact = entries as f64 * bits_per_entry;
        let sized = entries > 0 && error > 0.0 && error < 1.0 && exact < 4e18;
        if !sized {
            return Err(Error::Parameter(format!("no layer has {entries} entries at a rate of {error:e}")));
        }
        let bytes = (exact as u64).max(1).div_ceil(64) * 8;
        Ok(Self::shaped(Cells::awaited(bytes)?, entries, error, bits_per_entry))
    }

    fn shaped(cells: Cells, entries: u64, error: f64, bits_per_entry: f64) -> Self {
        let bits = cells.len() as u64 * 8;
        let (hashes, wrap) = (hashes_for(bits_per_entry), (u64::MAX % bits + 1) % bits);
        Layer { cells, bits, hashes, wrap, items: 0, entries, error, bits_per_entry }
    }

    /// Its bits, in bytes.
    pub fn cells(&self) -> &Cells {
        &self.cells
    }

    #[inline]
    fn contains(&self, key: [u64; 2]) -> bool {
        let mut probes = Probes::new(key, self.bits);
        (0..self.hashes).all(|_| {
            let bit = probes.next(self);
            self.cells.get((bit >> 3) as usize) >> (bit & 7) & 1 != 0
        })
    }

    /// Sets the bits of a key that is not there.
    #[inline]
    fn put(&mut self, key: [u64; 2]) -> Result<()> {
        let mut probes = Probes::new(key, self.bits);
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
        let cells = Cells::awaited(bytes);
        Some(cells.map(|cells| Layer { items, ..Self::shaped(cells, entries, error, bits_per_entry) }))
    }

    pub(super) fn ones(&self) -> u64 {
        self.cells.arrived().iter().map(|byte| u64::from(byte.count_ones())).sum()
    }

    fn try_clone(&self) -> Result<Self> {
        Ok(Layer { cells: self.cells.try_clone()?, ..*self })
    }
}

/// See the head of this file.
pub struct Chain {
    layers: Vec<Layer>,
    items: u64,
    scaling: bool,
    growth: u32,
    bound: Bound,
}

fn bad(why: &str) -> Error {
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
        self.bound.most = max_bytes;
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
        let Some(last) = self.layers.last() else { return Err(bad("")) };
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
        let Some(last) = self.layers.last() else { return Err(bad("")) };
        if !self.scaling {
            return Err(Error::Capacity("non scaling filter is full".into()));
        }
        let entries = last.entries.checked_mul(self.growth.into());
        let layer = Layer::new(entries.unwrap_or(u64::MAX), last.error * 0.5)?;
        let bytes = self.nbytes().saturating_add(layer.cells.len() as u64);
        if self.layers.len() >= MOST_LAYERS || bytes > self.bound.most {
            let most = self.bound.most;
            return Err(Error::Memory(format!("with one layer more it has {bytes} bytes, it may have {most}")));
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

    /// The filter of a header, without its bits. It may have at most `max_bytes` of them.
    pub fn from_header(header: &[u8], max_bytes: u64) -> Result<Self> {
        let mut fields = Fields(header);
        let mut head = || Some((fields.u64()?, fields.u32()?, fields.u32()?, fields.u32()?));
        let (items, count, options, growth) = head().ok_or_else(|| bad(""))?;
        if count == 0
            || fields.0.len() as u64 != LAYER as u64 * u64::from(count)
            || options & !(NORMAL | NO_SCALING | 2) != 0
        {
            return Err(bad(""));
        }
        if options & !NO_SCALING != NORMAL {
            return Err(bad(": layers that are powers of two, or hashed with 32 bits, are not read"));
        }
        if count as usize > MOST_LAYERS {
            return Err(bad(": a filter has at most 1100 layers"));
        }
        let scaling = options & NO_SCALING == 0;
        let mut chain = Chain { layers: Vec::new(), items, scaling, growth, bound: Bound::of(max_bytes) };
        let mut sum = 0u64;
        for _ in 0..count {
            let layer = Layer::read(&mut fields).ok_or_else(|| bad(""))??;
            sum = sum.checked_add(layer.items).ok_or_else(|| bad(""))?;
            chain.layers.push(layer);
        }
        if sum != items || items > MOST_ITEMS {
            return Err(bad(""));
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

    /// The piece with this `number`, from 1 on, and the number under which it is loaded.
    pub fn piece(&self, number: i64) -> Option<(i64, Cow<'_, [u8]>)> {
        piece_of(self.layers.iter().map(|layer| &layer.cells), number)
    }

    /// Loads a piece.
    pub fn load(&mut self, number: i64, bytes: &[u8]) -> Result<()> {
        let mut cells: Vec<&mut Cells> = self.layers.iter_mut().map(|layer| &mut layer.cells).collect();
        take_piece(&mut cells, number, bytes).map_err(|refused| match refused {
            Refused::Number => bad(""),
            Refused::Nowhere => Error::Format("invalid offset - no link found".into()),
            Refused::Long => Error::Format("invalid chunk - Too big for current filter".into()),
            Refused::Other(error) => error,
        })
    }

    /// Calls `word` with the number of the last layer and the index of each word that adding one of the keys may write,
    /// unless that opens a layer; false while cells are missing.
    pub fn writes(&self, keys: &[[u64; 2]], word: &mut dyn FnMut(usize, usize)) -> bool {
        let Some(last) = self.layers.last() else { return false };
        for &key in keys {
            let mut probes = Probes::new(key, last.bits);
            (0..last.hashes).for_each(|_| word(self.layers.len() - 1, (probes.next(last) >> 6) as usize));
        }
        self.layers.iter().all(|layer| layer.cells.arrived().len() == layer.cells.len())
    }

    /// A copy with these cells, one run for each layer.
    pub fn with_cells(&self, cells: Vec<Vec<u8>>) -> Result<Self> {
        if !cells.iter().map(Vec::len).eq(self.cells().map(Cells::len)) {
            return Err(bad(": cells of another shape"));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digit = |byte: u8| (byte as char).to_digit(16).map_or(0, |digit| digit as u8);
        let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        digits.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
    }

    /// Of BF.RESERVE a 0.01 100, BF.ADD a x.
    const HEADER: &str = "0100000000000000 01000000 05000000 02000000 9000000000000000 8004000000000000 \
        0100000000000000 7b14ae47e17a743f e9862fb2350e2640 08000000 6400000000000000 00";

    #[test]
    fn the_header_of_the_program_comes_out() -> Result<()> {
        let mut chain = Chain::construct(100, 0.01, 2, true)?;
        assert!(chain.add(hash(b"x"))?);
        assert_eq!(chain.header(), hex(HEADER));
        let still = Chain::construct(100, 0.01, 2, false)?;
        assert_eq!((still.nbytes(), still.layers()[0].hashes, still.header()[12]), (120, 7, 13));
        Ok(())
    }

    #[test]
    fn probes_are_those_of_the_formula() -> Result<()> {
        for bytes in [8, 144, 1 << 20, 1_000_008] {
            let layer = Layer::shaped(Cells::awaited(bytes)?, 1, 1e-9, bits_per_entry(1e-9));
            for number in 0..200u64 {
                let [first, second] = hash(&number.to_le_bytes());
                let mut probes = Probes::new([first, second], layer.bits);
                for i in 0..u64::from(layer.hashes) {
                    assert_eq!(probes.next(&layer), first.wrapping_add(i.wrapping_mul(second)) % layer.bits);
                }
            }
        }
        Ok(())
    }

    #[test]
    fn dumps_load_and_grow_alike() -> Result<()> {
        let mut one = Chain::construct(20, 0.02, 3, true)?;
        let mut other: Option<Chain> = None;
        for number in 0..2000u32 {
            let key = hash(&number.to_le_bytes());
            let new = one.add(key)?;
            if number == 700 {
                let mut copy = Chain::from_header(&one.header(), 1 << 30)?;
                let mut at = 1;
                while let Some((next, piece)) = one.piece(at) {
                    copy.load(next, &piece)?;
                    at = next;
                }
                other = Some(copy);
            } else if let Some(other) = &mut other {
                assert_eq!(other.add(key)?, new);
            }
        }
        let other = other.unwrap_or_else(|| unreachable!());
        assert_eq!((other.header(), other.layers().len()), (one.header(), 5));
        for (ours, theirs) in one.layers().iter().zip(other.layers()) {
            assert_eq!(ours.cells().arrived(), theirs.cells().arrived());
        }
        Ok(())
    }

    #[test]
    fn forged_headers_are_refused() {
        let sound = hex(HEADER);
        assert!(Chain::from_header(&sound, 144).is_ok());
        assert!(matches!(Chain::from_header(&sound, 143), Err(Error::Memory(_))));
        for length in 0..sound.len() {
            assert!(Chain::from_header(&sound[..length], u64::MAX).is_err(), "{length}");
        }
        // The factor of growth and entries may be any, and the last digits of the two real numbers.
        let free = |at: &usize| [16..20, 44..49, 52..57, 64..72].iter().any(|range| range.contains(at));
        for at in (0..73).filter(|at| !free(at)) {
            let mut lie = sound.clone();
            lie[at] ^= 0x40;
            assert!(Chain::from_header(&lie, u64::MAX).is_err(), "{at}");
        }
    }
}
