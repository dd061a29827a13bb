//! BIP 158, the compact filters of Bitcoin's blocks: a Golomb-Rice coded set of hashes. It is static.
//!
//! ```text
//! CompactSize N, then for each hash in ascending order its distance from the one before: the quotient by 2^19 in
//! unary, that many 1s and a 0, and 19 bits of remainder; the highest bit of a byte first, and zeros to the last byte
//! hash = SipHash-2-4(element) (N 784931) >> 64, under the first 16 bytes of the block's hash
//! ```

use std::hash::Hasher;

use siphasher::sip::SipHasher24;

use crate::cells::allocation::reserve;
use crate::error::{Error, Result};
use crate::hash::siphash::SipKey;

/// P, bits of a remainder.
const REMAINDER: u32 = 19;
/// M, the inverse of the rate.
const INVERSE_RATE: u64 = 784_931;
/// The most elements: their hashes stay below 2^52. A block has fewer.
const MOST: u64 = 1 << 32;

fn refuse(why: impl std::fmt::Display) -> Error {
    Error::format(format!("these bytes are not a filter of format \"bip158\": {why}"))
}

/// The hashes of elements, unsorted.
fn hashes<'a>(key: SipKey, count: u64, elements: impl Iterator<Item = &'a [u8]>) -> impl Iterator<Item = u64> {
    let range = u128::from(count * INVERSE_RATE);
    elements.map(move |element| {
        let mut state = SipHasher24::new_with_keys(key.0, key.1);
        state.write(element);
        ((u128::from(state.finish()) * range) >> 64) as u64
    })
}

/// The filter of distinct elements.
pub fn build(key: SipKey, elements: &[&[u8]]) -> Result<Vec<u8>> {
    let count = elements.len() as u64;
    if count > MOST {
        return Err(Error::parameter(format!("a filter has at most {MOST} elements, got {count}")));
    }
    let mut sorted = Vec::new();
    reserve(&mut sorted, elements.len())?;
    sorted.extend(hashes(key, count, elements.iter().copied()));
    sorted.sort_unstable();
    let mut written = compact(count);
    // A quotient is 1.5 on average.
    reserve(&mut written, elements.len() * 3)?;
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
    for hash in sorted {
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

/// A filter in the bytes of a block's filter.
pub struct BlockFilter<'a> {
    count: u64,
    bits: &'a [u8],
}

impl<'a> BlockFilter<'a> {
    /// The filter in `bytes`, all of which are checked; nothing is allocated.
    pub fn read(bytes: &'a [u8]) -> Result<Self> {
        let number = |len: usize| {
            let field = bytes.get(1..=len).ok_or_else(|| refuse("its count ends behind the last byte"))?;
            Ok(field.iter().rev().fold(0u64, |number, byte| number << 8 | u64::from(*byte)))
        };
        let count = match bytes.first() {
            None => return Err(refuse("it has no count")),
            Some(0xfd) => number(2)?,
            Some(0xfe) => number(4)?,
            Some(0xff) => number(8)?,
            Some(small) => u64::from(*small),
        };
        let head = compact(count);
        if !bytes.starts_with(&head) {
            return Err(refuse(format!("its count, {count}, takes more bytes than it needs")));
        }
        let bits = &bytes[head.len()..];
        let least = count.saturating_mul(u64::from(REMAINDER) + 1).div_ceil(8);
        if count > MOST || least > bits.len() as u64 {
            let present = bits.len();
            return Err(refuse(format!("its count is {count}, at least {least} bytes, and {present} follow")));
        }
        let filter = BlockFilter { count, bits };
        let mut values = filter.values();
        for i in 0..count {
            match values.next() {
                Some(value) if value < count * INVERSE_RATE => {}
                Some(_) => return Err(refuse(format!("hash {i} of {count} is beyond the largest"))),
                None => return Err(refuse(format!("its bits end within hash {i} of {count}"))),
            }
        }
        let read = values.at;
        if read.div_ceil(8) != bits.len() as u64 {
            let behind = bits.len() as u64 - read.div_ceil(8);
            return Err(refuse(format!("{behind} bytes follow its last hash")));
        }
        if bits.last().is_some_and(|last| !read.is_multiple_of(8) && last << (read % 8) != 0) {
            return Err(refuse("bits behind its last hash are set"));
        }
        Ok(filter)
    }

    /// N.
    pub fn count(&self) -> u64 {
        self.count
    }

    fn values(&self) -> Values<'a> {
        Values { bits: self.bits, at: 0, left: self.count, last: 0 }
    }

    /// Marks the elements that the filter may have, in one pass over its bits.
    pub fn matches(&self, key: SipKey, elements: &[&[u8]]) -> Result<Vec<bool>> {
        let mut asked: Vec<(u64, usize)> = Vec::new();
        reserve(&mut asked, elements.len())?;
        asked.extend(hashes(key, self.count, elements.iter().copied()).zip(0..));
        asked.sort_unstable();
        let mut found = vec![false; elements.len()];
        let (mut values, mut value) = (self.values(), None);
        for (hash, i) in asked {
            while value.is_none_or(|value| value < hash) {
                value = values.next();
                if value.is_none() {
                    return Ok(found);
                }
            }
            found[i] = value == Some(hash);
        }
        Ok(found)
    }
}

/// The hashes of a filter, ascending.
struct Values<'a> {
    bits: &'a [u8],
    at: u64,
    left: u64,
    last: u64,
}

impl Values<'_> {
    /// The next bit; none behind the last byte.
    #[inline(always)]
    fn bit(&mut self) -> Option<u64> {
        let byte = self.bits.get((self.at / 8) as usize)?;
        let bit = byte >> (7 - self.at % 8) & 1;
        self.at += 1;
        Some(bit.into())
    }
}

impl Iterator for Values<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        let mut quotient = 0u64;
        while self.bit()? == 1 {
            quotient += 1;
        }
        let mut remainder = 0;
        for _ in 0..REMAINDER {
            remainder = remainder << 1 | self.bit()?;
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

    fn key(bytes: [u8; 16]) -> SipKey {
        crate::hash::siphash::sip_key(&bytes)
    }

    #[test]
    fn sets_of_any_size_lead_back() -> Result<()> {
        for count in [0u32, 1, 2, 100, 252, 253, 5000] {
            let elements: Vec<[u8; 4]> = (0..count).map(u32::to_le_bytes).collect();
            let elements: Vec<&[u8]> = elements.iter().map(|element| &element[..]).collect();
            let bytes = build(key([7; 16]), &elements)?;
            let filter = BlockFilter::read(&bytes)?;
            assert_eq!(filter.count(), u64::from(count));
            assert!(filter.matches(key([7; 16]), &elements)?.iter().all(|found| *found));
            assert!(!filter.matches(key([7; 16]), &[b"absent"])?[0]);
            for len in 0..bytes.len() {
                assert!(BlockFilter::read(&bytes[..len]).is_err());
            }
            assert!(BlockFilter::read(&[&bytes[..], &[0]].concat()).is_err());
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
        assert_eq!(build(key(BLOCK.to_be_bytes()), &[&script])?, [0x01, 0x9d, 0xfc, 0xa8]);
        Ok(())
    }
}
