//! Decimal numbers as canonical bytes: one text for each value, however many zeros it is written with.

use std::io::{Result, Write};

/// Digits of 256 bits.
const MOST_DIGITS: usize = 78;

/// Bytes of a [`Decimal`] besides its digits: a sign, the letter, and an exponent of 64 bits.
pub const BESIDE_DIGITS: usize = 22;

/// A finite decimal number without zeros at either end: digits times a power of ten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal<'a> {
    negative: bool,
    digits: &'a [u8],
    exponent: i64,
}

impl<'a> Decimal<'a> {
    /// The number of these ASCII `digits`, most significant first, times 10 to the `exponent`.
    pub fn new(negative: bool, digits: &'a [u8], exponent: i64) -> Self {
        let end = digits.iter().rposition(|&digit| digit != b'0').map_or(0, |last| last + 1);
        let first = digits[..end].iter().position(|&digit| digit != b'0').unwrap_or(end);
        if first == end {
            return Decimal { negative: false, digits: b"0", exponent: 0 };
        }
        let exponent = exponent.saturating_add((digits.len() - end) as i64);
        Decimal { negative, digits: &digits[first..end], exponent }
    }

    /// Appends the canonical bytes: sign, digits, `e`, exponent.
    pub fn write(&self, out: &mut impl Write) -> Result<()> {
        out.write_all(if self.negative { b"-" } else { b"" })?;
        out.write_all(self.digits)?;
        write!(out, "e{}", self.exponent)
    }
}

/// The canonical bytes of a number of fixed width.
pub struct DecimalBytes {
    bytes: [u8; MOST_DIGITS + BESIDE_DIGITS],
    len: usize,
}

impl DecimalBytes {
    /// The two's complement in up to 32 `little_endian` bytes, times 10 to the `exponent`.
    pub fn of(little_endian: &[u8], exponent: i64) -> Self {
        let negative = little_endian.last().is_some_and(|&byte| byte >> 7 == 1);
        let mut bytes = [if negative { 0xff } else { 0 }; 32];
        let len = little_endian.len().min(32);
        bytes[..len].copy_from_slice(&little_endian[..len]);
        let mut limbs: [u64; 4] = std::array::from_fn(|i| {
            bytes[8 * i..8 * i + 8].iter().rev().fold(0, |limb, &byte| limb << 8 | u64::from(byte))
        });
        if negative {
            negate(&mut limbs);
        }
        let mut digits = [b'0'; MOST_DIGITS];
        let first = write_digits(&mut limbs, &mut digits);
        let mut decimal = DecimalBytes { bytes: [0; MOST_DIGITS + BESIDE_DIGITS], len: 0 };
        let mut room = decimal.bytes.as_mut_slice();
        // The buffer has space for all digits, the sign and the exponent.
        let _ = Decimal::new(negative, &digits[first..], exponent).write(&mut room);
        decimal.len = MOST_DIGITS + BESIDE_DIGITS - room.len();
        decimal
    }

    /// As a slice.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The two's complement.
fn negate(limbs: &mut [u64; 4]) {
    let mut carry = true;
    for limb in limbs {
        (*limb, carry) = (!*limb).overflowing_add(u64::from(carry));
    }
}

/// Writes the digits of a number to the end of `out` and zeroes `limbs`; returns the index of the first digit.
fn write_digits(limbs: &mut [u64; 4], out: &mut [u8; MOST_DIGITS]) -> usize {
    /// The highest power of ten in a limb, 10^19.
    const POWER: u64 = 10_000_000_000_000_000_000;
    let mut end = MOST_DIGITS;
    loop {
        let mut rest = 0u64;
        for limb in limbs.iter_mut().rev().skip_while(|limb| **limb == 0) {
            let value = u128::from(rest) << 64 | u128::from(*limb);
            // The remainder before was below the divisor, so the quotient fits.
            *limb = (value / u128::from(POWER)) as u64;
            rest = (value % u128::from(POWER)) as u64;
        }
        let last = limbs.iter().all(|&limb| limb == 0);
        let start = if last { 0 } else { end - 19 };
        while end > start && (rest > 0 || !last) {
            end -= 1;
            out[end] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        if last {
            return end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(little_endian: &[u8], exponent: i64) -> String {
        String::from_utf8_lossy(DecimalBytes::of(little_endian, exponent).as_slice()).into_owned()
    }

    #[test]
    fn one_text_for_one_value() {
        for (value, exponent, expected) in [
            (0i128, -2, "0e0"),
            (1, 0, "1e0"),
            (100, -2, "1e0"),
            (-1250, -2, "-125e-1"),
            (5, 3, "5e3"),
            (10i128.pow(19), 0, "1e19"),
            (10i128.pow(19) + 1, 0, "10000000000000000001e0"),
            (i128::MAX, -38, "170141183460469231731687303715884105727e-38"),
            (i128::MIN, 0, "-170141183460469231731687303715884105728e0"),
        ] {
            assert_eq!(text(&value.to_le_bytes(), exponent), expected);
            if let Ok(narrow) = i64::try_from(value) {
                assert_eq!(text(&narrow.to_le_bytes(), exponent), expected);
            }
            if let Ok(narrow) = i32::try_from(value) {
                assert_eq!(text(&narrow.to_le_bytes(), exponent), expected);
            }
        }
    }

    #[test]
    fn the_widest_has_78_characters_of_digits() {
        let mut least = [0u8; 32];
        least[31] = 0x80;
        let digits = "57896044618658097711785492504343953926634992332820282019728792003956564819968";
        assert_eq!(text(&least, i64::MIN), format!("-{digits}e{}", i64::MIN));
        least[0] = 1;
        assert_eq!(text(&least, 0), format!("-{}7e0", &digits[..digits.len() - 1]));
    }
}
