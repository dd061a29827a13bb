//! [`GolombSet`]: the compact filter of a block of Bitcoin, BIP 158, a Golomb-Rice coded set of hashes. It is static.
//!
//! ```text
//! CompactSize N, then for each hash in ascending order its distance from the one before: the quotient by 2^19 in
//! unary, that many 1s and a 0, and 19 bits of remainder; the highest bit of a byte first, and zeros to the last byte
//! hash = SipHash-2-4(element) (N 784931) >> 64, under the first 16 bytes of the block's hash
//! ```
//!
//! A lookup begins at the last of every [`STRIDE`] hashes that is not above the one it looks for.

use super::bits::Hashing;
use super::formats::Format;
use super::key_type::KeyType;
use super::rules::Digest;
use super::source::Source;
use crate::cells::Memory;
use crate::cells::allocation::reserve;
use crate::error::{Error, Result};

/// P, bits of a remainder.
const REMAINDER: u32 = 19;
/// M, the inverse of the rate.
const INVERSE_RATE: u64 = 784_931;
/// The most elements: their hashes stay below 2^52. A block has fewer.
const MOST: u64 = 1 << 32;
/// Bytes of the largest count.
const COUNT_BYTES: usize = 9;
/// Bytes of the key of the hash.
pub const KEY_BYTES: usize = 16;
/// Hashes between two places of the index: 16 bytes for some 170 of the set.
const STRIDE: u64 = 64;
/// Bytes of the header in a container of ours: key, N, bytes of codes.
pub(super) const HEAD: usize = KEY_BYTES + 16;

/// See the head of this file.
pub struct GolombSet {
    format: &'static Format,
    key_type: KeyType,
    key: [u8; KEY_BYTES],
    count: u64,
    /// Bytes of codes.
    len: usize,
    memory: Memory,
    /// Every [`STRIDE`]th hash, and the bit behind it.
    index: Vec<(u64, u64)>,
}

impl GolombSet {
    /// The set of elements with these hashes of 64 bits; repeated ones count once.
    pub fn build(
        format: &'static Format,
        key_type: KeyType,
        key: [u8; KEY_BYTES],
        mut hashes: Vec<u64>,
    ) -> Result<Self> {
        format.check_key_type(key_type)?;
        hashes.sort_unstable();
        hashes.dedup();
        let count = hashes.len() as u64;
        if count > MOST {
            return Err(Error::parameter(format!("a filter has at most {MOST} elements, got {count}")));
        }
        // The order of the products is that of the hashes.
        hashes.iter_mut().for_each(|hash| *hash = reduce(*hash, count));
        let codes = encode(&hashes)?;
        drop(hashes);
        let mut memory = Memory::zeroed(codes.len().div_ceil(8) as u64)?;
        memory.bytes_mut().ok_or_else(Error::read_only)?[..codes.len()].copy_from_slice(&codes);
        Self::over(format, key_type, key, (count, codes.len()), memory)
    }

    /// The filter in `source`, all bytes of which are checked; they are read once. It may have at most `max_bytes` of codes.
    pub fn read(
        format: &'static Format,
        key_type: KeyType,
        key: [u8; KEY_BYTES],
        mut source: Source<'_>,
        max_bytes: u64,
    ) -> Result<Self> {
        format.check_key_type(key_type)?;
        let (count, head) = read_count(source.head()).map_err(|why| format.refuse(why))?;
        let len = source.len() - head as u64;
        format.check_size(len, max_bytes)?;
        check_count(count, len).map_err(|why| format.refuse(why))?;
        let len = usize::try_from(len).map_err(|_| format.refuse("it is larger than memory can be"))?;
        let mut memory = Memory::zeroed(len.div_ceil(8) as u64)?;
        source.skip_head(head);
        source.fill(format, &mut memory.bytes_mut().ok_or_else(Error::read_only)?[..len])?;
        Self::over(format, key_type, key, (count, len), memory)
    }

    /// The filter with this header, over codes of which `memory` gives the bytes: their number is its argument.
    pub(super) fn restore(
        format: &'static Format,
        key_type: KeyType,
        head: &[u8],
        memory: impl FnOnce(u64) -> Result<Memory>,
    ) -> Result<Self> {
        let damaged = || format.refuse(format!("its header has {} bytes", head.len()));
        let head: &[u8; HEAD] = head.try_into().map_err(|_| damaged())?;
        let (key, numbers) = head.split_first_chunk::<KEY_BYTES>().ok_or_else(damaged)?;
        let number = |at: usize| numbers[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let (count, len) = (number(0), number(8));
        check_count(count, len).map_err(|why| format.refuse(why))?;
        let whole = usize::try_from(len).map_err(|_| damaged())?;
        Self::over(format, key_type, *key, (count, whole), memory(len)?)
    }

    /// Checks all codes, and notes some of their places.
    fn over(
        format: &'static Format,
        key_type: KeyType,
        key: [u8; KEY_BYTES],
        (count, len): (u64, usize),
        memory: Memory,
    ) -> Result<Self> {
        let mut set = GolombSet { format, key_type, key, count, len, memory, index: Vec::new() };
        let mut index = Vec::new();
        reserve(&mut index, (count / STRIDE) as usize)?;
        let mut codes = Codes { bits: set.codes(), at: 0, last: 0 };
        for i in 0..count {
            match codes.next() {
                Some(value) if value < count * INVERSE_RATE => {}
                Some(_) => return Err(format.refuse(format!("hash {i} of {count} is beyond the largest"))),
                None => return Err(format.refuse(format!("its bits end within hash {i} of {count}"))),
            }
            if (i + 1) % STRIDE == 0 {
                index.push((codes.last, codes.at));
            }
        }
        let (read, present) = (codes.at.div_ceil(8), len as u64);
        if read != present {
            return Err(format.refuse(format!("{} bytes follow its last hash", present - read)));
        }
        if set.codes().last().is_some_and(|last| !codes.at.is_multiple_of(8) && last << (codes.at % 8) != 0) {
            return Err(format.refuse("bits behind its last hash are set"));
        }
        set.index = index;
        Ok(set)
    }

    /// Writes the filter as nodes do.
    pub fn write(&self, out: &mut dyn std::io::Write) -> std::io::Result<()> {
        out.write_all(&compact(self.count))?;
        out.write_all(self.codes())
    }

    /// Bytes that [`GolombSet::write`] writes.
    pub fn len_written(&self) -> u64 {
        (compact(self.count).len() + self.len) as u64
    }

    /// Its header in a container of ours.
    pub(super) fn head(&self) -> Vec<u8> {
        [&self.key[..], &self.count.to_le_bytes(), &(self.len as u64).to_le_bytes()].concat()
    }

    fn codes(&self) -> &[u8] {
        &self.memory.bytes()[..self.len]
    }

    /// The codes, which zeros fill up to whole lines.
    pub(super) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Its format.
    pub fn format(&self) -> &'static Format {
        self.format
    }

    /// The type of its keys.
    pub fn key_type(&self) -> KeyType {
        self.key_type
    }

    /// N.
    pub fn num_keys(&self) -> u64 {
        self.count
    }

    /// Bytes of codes.
    pub fn nbytes(&self) -> u64 {
        self.len as u64
    }

    /// Rate of false positives.
    pub fn fpr(&self) -> f64 {
        if self.count == 0 { 0.0 } else { 1.0 / INVERSE_RATE as f64 }
    }

    /// How an element becomes a hash.
    pub fn hashing(&self) -> Hashing {
        Hashing::of_block(&self.key)
    }

    /// True if both have the same key and hashes.
    pub fn equals(&self, other: &Self) -> bool {
        (self.format.number, self.key_type, self.key, self.count)
            == (other.format.number, other.key_type, other.key, other.count)
            && self.codes() == other.codes()
    }

    /// An independent copy.
    pub fn try_clone(&self) -> Result<Self> {
        let mut index = Vec::new();
        reserve(&mut index, self.index.len())?;
        index.extend_from_slice(&self.index);
        Ok(GolombSet { memory: self.memory.try_clone()?, index, ..*self })
    }

    /// True for an element that it may have been built of.
    pub fn contains(&self, [hash, _]: Digest) -> bool {
        let wanted = reduce(hash, self.count);
        let behind = self.index.partition_point(|(value, _)| *value < wanted);
        let (last, at) = if behind == 0 { (0, 0) } else { self.index[behind - 1] };
        let left = self.count - behind as u64 * STRIDE;
        let mut codes = Codes { bits: self.codes(), at, last };
        for _ in 0..left.min(STRIDE) {
            match codes.next() {
                Some(value) if value < wanted => {}
                found => return found == Some(wanted),
            }
        }
        false
    }

    /// Looks up many elements; both slices are equally long.
    pub fn contains_many(&self, digests: &[Digest], found: &mut [u8]) {
        digests.iter().zip(found).for_each(|(digest, found)| *found = self.contains(*digest).into());
    }
}

/// A hash of 64 bits as a number below N M.
fn reduce(hash: u64, count: u64) -> u64 {
    ((u128::from(hash) * u128::from(count * INVERSE_RATE)) >> 64) as u64
}

/// The codes of ascending hashes.
fn encode(hashes: &[u64]) -> Result<Vec<u8>> {
    let mut written = Vec::new();
    // A quotient is 1.5 on average.
    reserve(&mut written, hashes.len() * 3)?;
    let (mut last, mut bits, mut held) = (0, 0u64, 0);
    let mut push = |value: u64, width: u32| {
        (bits, held) = (bits << width | value, held + width);
        while held >= 8 {
            held -= 8;
            written.push((bits >> held) as u8);
        }
        bits &= (1 << held) - 1;
        held
    };
    let mut rest = 0;
    for &hash in hashes {
        let distance = hash - last;
        last = hash;
        (0..distance >> REMAINDER).for_each(|_| rest = push(1, 1));
        push(0, 1);
        rest = push(distance & ((1 << REMAINDER) - 1), REMAINDER);
    }
    if rest > 0 {
        push(0, 8 - rest);
    }
    Ok(written)
}

/// A number as Bitcoin writes it.
fn compact(number: u64) -> Vec<u8> {
    match number {
        0..0xfd => vec![number as u8],
        0xfd..=0xffff => [&[0xfd][..], &(number as u16).to_le_bytes()].concat(),
        0x1_0000..=0xffff_ffff => [&[0xfe][..], &(number as u32).to_le_bytes()].concat(),
        _ => [&[0xff][..], &number.to_le_bytes()].concat(),
    }
}

/// N at the beginning of `head`, and its bytes; or what is wrong.
fn read_count(head: &[u8]) -> std::result::Result<(u64, usize), String> {
    let number = |len: usize| {
        let field = head.get(1..=len).ok_or("its count ends behind the last byte")?;
        Ok::<_, String>(field.iter().rev().fold(0u64, |number, byte| number << 8 | u64::from(*byte)))
    };
    let count = match head.first() {
        None => return Err("it has no count".into()),
        Some(0xfd) => number(2)?,
        Some(0xfe) => number(4)?,
        Some(0xff) => number(COUNT_BYTES - 1)?,
        Some(small) => u64::from(*small),
    };
    let written = compact(count);
    if !head.starts_with(&written) {
        return Err(format!("its count, {count}, takes more bytes than it needs"));
    }
    Ok((count, written.len()))
}

/// Refuses more elements than `len` bytes can hold.
fn check_count(count: u64, len: u64) -> std::result::Result<(), String> {
    let least = count.saturating_mul(u64::from(REMAINDER) + 1).div_ceil(8);
    if count > MOST || least > len {
        return Err(format!("its count is {count}, at least {least} bytes, and {len} follow"));
    }
    Ok(())
}

/// The hashes of a filter, ascending.
struct Codes<'a> {
    bits: &'a [u8],
    /// Bit behind the last hash.
    at: u64,
    last: u64,
}

impl Codes<'_> {
    /// 64 bits from the next one on, the highest first; zeros behind the last byte.
    #[inline(always)]
    fn word(&self) -> u64 {
        let (from, shift) = ((self.at / 8) as usize, self.at % 8);
        let rest = self.bits.get(from..).unwrap_or_default();
        let word = match rest.first_chunk::<8>() {
            Some(word) => u64::from_be_bytes(*word),
            None => rest.iter().chain([0; 8].iter()).take(8).fold(0, |word, byte| word << 8 | u64::from(*byte)),
        };
        word << shift | rest.get(8).map_or(0, |next| u64::from(*next) >> (8 - shift))
    }

    /// The next hash; none if the bits end before it.
    #[inline(always)]
    fn next(&mut self) -> Option<u64> {
        let mut quotient = 0u64;
        loop {
            let ones = u64::from(self.word().leading_ones());
            (quotient, self.at) = (quotient + ones, self.at + ones);
            if ones < 64 {
                break;
            }
        }
        self.at += 1;
        let remainder = self.word() >> (64 - REMAINDER);
        self.at += u64::from(REMAINDER);
        if self.at > self.bits.len() as u64 * 8 {
            return None;
        }
        // A quotient that overflows here does not occur in a valid filter: its hashes are below 2^52.
        let distance = quotient.checked_mul(1 << REMAINDER)? | remainder;
        self.last = self.last.checked_add(distance)?;
        Some(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::formats;
    use crate::key::Domain;

    fn build(key: [u8; 16], elements: &[&[u8]]) -> Result<GolombSet> {
        let hashing = Hashing::of_block(&key);
        let hashes = elements.iter().filter_map(|element| hashing.digest(Domain::Text, element));
        GolombSet::build(
            formats::find_by_name("bip158")?,
            KeyType::Bytes,
            key,
            hashes.map(|digest| digest[0]).collect(),
        )
    }

    fn read(key: [u8; 16], bytes: &[u8]) -> Result<GolombSet> {
        GolombSet::read(formats::find_by_name("bip158")?, KeyType::Bytes, key, Source::of(bytes), u64::MAX)
    }

    fn write(set: &GolombSet) -> Vec<u8> {
        let mut bytes = Vec::new();
        set.write(&mut bytes).unwrap_or_default();
        assert_eq!(bytes.len() as u64, set.len_written());
        bytes
    }

    #[test]
    fn sets_of_any_size_lead_back() -> Result<()> {
        for count in [0u32, 1, 2, 63, 64, 65, 100, 128, 129, 252, 253, 5000] {
            let elements: Vec<[u8; 4]> = (0..count).map(u32::to_le_bytes).collect();
            let elements: Vec<&[u8]> = elements.iter().map(|element| &element[..]).collect();
            let set = build([7; 16], &elements)?;
            assert!(build([7; 16], &[&elements[..], &elements[..]].concat())?.equals(&set));
            let bytes = write(&set);
            let again = read([7; 16], &bytes)?;
            assert!(again.equals(&set) && again.num_keys() == u64::from(count));
            let has =
                |element: &[u8]| again.hashing().digest(Domain::Text, element).map(|digest| again.contains(digest));
            assert!(elements.iter().all(|element| has(element) == Some(true)), "{count}");
            let absent = (0..3000u64).filter(|number| has(&number.to_be_bytes()) == Some(true)).count();
            assert!(absent < 2, "{absent} of 3000 at a rate of 1 in 784,931");
            for len in 0..bytes.len() {
                assert!(read([7; 16], &bytes[..len]).is_err());
            }
            assert!(read([7; 16], &[&bytes[..], &[0]].concat()).is_err());
        }
        Ok(())
    }

    /// The genesis block of the test network, from the vectors of the BIP.
    #[test]
    fn the_first_published_vector_holds() -> Result<()> {
        const BLOCK: u128 = 0x4349_7fd7_f826_9571_08f4_a30f_d9ce_c3ae;
        let script = [
            0x41u8, 0x04, 0x67, 0x8a, 0xfd, 0xb0, 0xfe, 0x55, 0x48, 0x27, 0x19, 0x67, 0xf1, 0xa6, 0x71, 0x30, 0xb7,
            0x10, 0x5c, 0xd6, 0xa8, 0x28, 0xe0, 0x39, 0x09, 0xa6, 0x79, 0x62, 0xe0, 0xea, 0x1f, 0x61, 0xde, 0xb6, 0x49,
            0xf6, 0xbc, 0x3f, 0x4c, 0xef, 0x38, 0xc4, 0xf3, 0x55, 0x04, 0xe5, 0x1e, 0xc1, 0x12, 0xde, 0x5c, 0x38, 0x4d,
            0xf7, 0xba, 0x0b, 0x8d, 0x57, 0x8a, 0x4c, 0x70, 0x2b, 0x6b, 0xf1, 0x1d, 0x5f, 0xac,
        ];
        assert_eq!(write(&build(BLOCK.to_be_bytes(), &[&script])?), [0x01, 0x9d, 0xfc, 0xa8]);
        Ok(())
    }
}
