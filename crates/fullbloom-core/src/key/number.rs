//! Whole numbers as canonical bytes: integers, and counts of days and nanoseconds.

/// The canonical bytes of a whole number: 8 in the signed 64-bit range, else the fewest of 9 or more that hold value
/// and sign; little-endian.
pub struct NumberBytes {
    bytes: [u8; 16],
    len: usize,
}

impl NumberBytes {
    /// The bytes of `value`.
    pub fn of(value: i128) -> Self {
        // Bits of the magnitude, or of the complement below zero, and one for the sign.
        let bits = 128 - (value ^ (value >> 127)).leading_zeros() + 1;
        NumberBytes { bytes: value.to_le_bytes(), len: bits.div_ceil(8).max(8) as usize }
    }

    /// As a slice.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_short_as_the_rule_says() {
        let len = |value: i128| NumberBytes::of(value).as_slice().len();
        for power in 0..127 {
            let value = 1i128 << power;
            // 2^p needs p + 1 bits and one for the sign; -2^p needs p and one.
            assert_eq!(len(value), (power + 2usize).div_ceil(8).max(8));
            assert_eq!(len(-value), (power + 1usize).div_ceil(8).max(8));
        }
        assert_eq!(NumberBytes::of(-1).as_slice(), [0xff; 8]);
        assert_eq!(NumberBytes::of(1 << 63).as_slice(), [0, 0, 0, 0, 0, 0, 0, 0x80, 0]);
        assert_eq!((len(i128::MIN), len(i128::MAX), len(0)), (16, 16, 8));
    }
}
