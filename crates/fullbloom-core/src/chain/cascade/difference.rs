//! Differences between runs of bits: equal, literal, or the places of changed bits.
//!
//! ```text
//! 0                                 equal
//! 1, the bits in whole bytes        literal
//! 2, number, P, length, codes       gaps between bits that differ, in Rice codes of P bits of remainder
//! ```
//!
//! Numbers have 7 bits a byte, the least first. A gap less 1, `g`, is `g >> P` zeros, a 1, and the last P bits of `g`.
//! Bits fill bytes from the least on.

use crate::error::{Error, Result};
use crate::sizing::golomb;

const SAME: u8 = 0;
const WHOLE: u8 = 1;
const PLACES: u8 = 2;

/// The error for a delta with invalid contents.
pub(super) fn delta_error(what: &str) -> Error {
    Error::Format(format!("the delta {what}; it is damaged"))
}

/// A reader of bytes.
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    /// The next `len` bytes.
    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or_else(|| delta_error("is cut short"))?;
        self.0 = rest;
        Ok(taken)
    }

    /// The next number.
    pub(super) fn number(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..63).step_by(7) {
            let [byte] = *self.take(1)? else { break };
            number |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Ok(number);
            }
        }
        Err(delta_error("has a number that is too large"))
    }
}

/// Writes a number below 2^63.
pub(super) fn write_number(mut number: u64, out: &mut Vec<u8>) {
    while number > 127 {
        out.push(number as u8 | 128);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A writer of bits.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    used: u32,
}

impl Bits {
    fn push(&mut self, value: u64, width: u32) {
        for i in 0..width {
            if self.used == 0 {
                self.bytes.push(0);
            }
            if let Some(last) = self.bytes.last_mut() {
                *last |= (value.checked_shr(i).unwrap_or(0) & 1) as u8 * (1 << self.used);
            }
            self.used = (self.used + 1) % 8;
        }
    }
}

/// Bit number `i` of bytes; 0 after their end.
fn bit(bytes: &[u8], i: u64) -> u64 {
    bytes.get((i >> 3) as usize).map_or(0, |byte| u64::from(byte >> (i & 7) & 1))
}

/// `count` bits of `bytes` from bit `start` on, in whole bytes.
pub(super) fn copy_bits(bytes: &[u8], start: u64, count: u64) -> Vec<u8> {
    let (first, shift) = ((start >> 3) as usize, start & 7);
    let at = |i: usize| u16::from(bytes.get(first + i).copied().unwrap_or(0));
    let len = count.div_ceil(8) as usize;
    let mut out: Vec<u8> = (0..len).map(|i| ((at(i) | at(i + 1) << 8) >> shift) as u8).collect();
    if let (Some(last), 1..) = (out.last_mut(), count & 7) {
        *last &= (1 << (count & 7)) - 1;
    }
    out
}

/// Puts `count` bits at bit `start` of `bytes`, which end there.
pub(super) fn append(bytes: &mut Vec<u8>, start: u64, piece: &[u8], count: u64) {
    let shift = start & 7;
    if shift == 0 {
        bytes.extend_from_slice(piece);
        return;
    }
    for &byte in piece {
        if let Some(last) = bytes.last_mut() {
            *last |= byte << shift;
        }
        bytes.push(byte >> (8 - shift));
    }
    bytes.truncate((start + count).div_ceil(8) as usize);
}

/// Places where two runs differ.
fn places<'a>(base: &'a [u8], new: &'a [u8]) -> impl Iterator<Item = u64> + 'a {
    (0u64..).step_by(8).zip(base.iter().zip(new)).filter(|(_, (a, b))| a != b).flat_map(|(at, (a, b))| {
        let differing = a ^ b;
        (0..8).filter(move |i| differing >> i & 1 == 1).map(move |i| at + i)
    })
}

/// Writes the `count` bits of `new` in the shortest form; `base` has as many.
pub(super) fn write(base: Option<&[u8]>, new: &[u8], count: u64, out: &mut Vec<u8>) {
    let base = base.filter(|base| base.len() == new.len());
    if let Some(base) = base {
        let number = places(base, new).count() as u64;
        if number == 0 {
            out.push(SAME);
            return;
        }
        // If more than an eighth differ, the codes take more than half of the bits and save little.
        if number < count / 8 {
            let width = golomb::rice_bits(number as f64 / count as f64);
            let (mut bits, mut next) = (Bits::default(), 0);
            for place in places(base, new) {
                let gap = place - next;
                bits.push(0, (gap >> width) as u32);
                bits.push(1, 1);
                bits.push(gap, width);
                next = place + 1;
            }
            if bits.bytes.len() + 16 < new.len() {
                out.push(PLACES);
                write_number(number, out);
                out.push(width as u8);
                write_number(bits.bytes.len() as u64, out);
                out.extend(bits.bytes);
                return;
            }
        }
    }
    out.push(WHOLE);
    out.extend_from_slice(new);
}

/// Reads `count` bits back; nothing is allocated that neither `base` nor the bytes at hand fill.
pub(super) fn read(base: Option<&[u8]>, count: u64, from: &mut Bytes<'_>) -> Result<Vec<u8>> {
    let len = usize::try_from(count.div_ceil(8)).unwrap_or(usize::MAX);
    let base = base.filter(|base| base.len() == len);
    let equal = || base.map(<[u8]>::to_vec).ok_or_else(|| delta_error("refers to data that the other version lacks"));
    match *from.take(1)? {
        [SAME] => equal(),
        [WHOLE] => {
            let bits = from.take(len)?.to_vec();
            let over = bits.last().is_some_and(|&last| count & 7 > 0 && last >> (count & 7) > 0);
            if over { Err(delta_error("has bits after the last")) } else { Ok(bits) }
        }
        [PLACES] => {
            let mut bits = equal()?;
            let (number, width) = (from.number()?, from.take(1)?[0]);
            let codes = from.number()?;
            let codes = from.take(usize::try_from(codes).unwrap_or(usize::MAX))?;
            change(&mut bits, count, (number, width), codes)?;
            Ok(bits)
        }
        _ => Err(delta_error("has a part of unknown kind")),
    }
}

/// Flips `number` of `count` bits.
fn change(bits: &mut [u8], count: u64, (number, width): (u64, u8), codes: &[u8]) -> Result<()> {
    let wrong = || delta_error("names a bit beyond its level");
    if number > count || u32::from(width) > golomb::MOST_RICE_BITS {
        return Err(wrong());
    }
    let (end, mut at, mut next) = (8 * codes.len() as u64, 0, 0u64);
    for _ in 0..number {
        let mut zeros = 0u64;
        while at < end && bit(codes, at) == 0 {
            (at, zeros) = (at + 1, zeros + 1);
        }
        at += 1;
        let rest = (0..u64::from(width)).fold(0, |rest, i| rest | bit(codes, at + i) << i);
        at += u64::from(width);
        let place = zeros.checked_mul(1 << width).and_then(|gap| next.checked_add(gap + rest)).filter(|&p| p < count);
        let place = place.filter(|_| at <= end).ok_or_else(wrong)?;
        bits[(place >> 3) as usize] ^= 1 << (place & 7);
        next = place + 1;
    }
    let rest = (at..end).any(|at| bit(codes, at) > 0);
    if end - at < 8 && !rest { Ok(()) } else { Err(delta_error("has unused codes")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::testing::hash;

    fn both_ways(base: Option<&[u8]>, new: &[u8], count: u64) -> usize {
        let mut out = Vec::new();
        write(base, new, count, &mut out);
        let mut from = Bytes(&out);
        assert_eq!(read(base, count, &mut from).unwrap(), new);
        assert!(from.0.is_empty());
        for cut in 0..out.len() {
            assert!(matches!(read(base, count, &mut Bytes(&out[..cut])), Err(Error::Format(_))));
        }
        out.len()
    }

    #[test]
    fn runs_come_back_by_the_shortest_way() {
        for count in [1u64, 7, 8, 9, 1000, 20_001] {
            let random: Vec<u8> = (0..count.div_ceil(8)).map(|i| hash(i) as u8).collect();
            let base = copy_bits(&random, 0, count);
            assert_eq!(both_ways(Some(&base), &base, count), 1);
            assert_eq!(both_ways(None, &base, count), 1 + base.len());
            let mut few = base.clone();
            (0..count).filter(|i| hash(*i).is_multiple_of(100)).for_each(|i| few[(i >> 3) as usize] ^= 1 << (i & 7));
            let len = both_ways(Some(&base), &few, count);
            // 1 % of the bits: 0.0808 bits each and 2 % more.
            assert!(count < 20_000 || len < 20_001 * 90 / 8000, "{len}");
        }
    }

    #[test]
    fn bits_are_cut_and_put_together_at_any_place() {
        let all: Vec<u8> = (0..100).map(|i| hash(i) as u8).collect();
        for lens in [[1u64, 7, 9, 64, 100], [8, 8, 3, 5, 200], [0, 1, 1, 1, 1]] {
            let (mut bytes, mut at) = (Vec::new(), 0);
            for len in lens {
                append(&mut bytes, at, &copy_bits(&all, at, len), len);
                at += len;
            }
            assert_eq!(bytes, copy_bits(&all, 0, at));
        }
    }

    #[test]
    fn codes_of_any_bytes_are_refused_or_bounded() {
        let base = vec![0x5a; 40];
        for seed in 0..20_000 {
            let noise: Vec<u8> = (0..30).map(|i| (hash(40 * seed + i) >> (seed % 7)) as u8 % 60).collect();
            for kind in 0..4 {
                let bytes = [&[kind][..], &noise].concat();
                match read(Some(&base), 317, &mut Bytes(&bytes)) {
                    Ok(read) => assert_eq!(read.len(), 40),
                    Err(error) => assert!(matches!(error, Error::Format(_))),
                }
            }
        }
    }
}
