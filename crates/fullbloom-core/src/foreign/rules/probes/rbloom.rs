//! rbloom: `s = hash(key)`; `s = s a + 1 mod 2^128`, bits 32 to 95 of s mod bits. The hash is a function of the caller, and its
//! result the key.

use super::key::Key;

const FACTOR: u128 = 47_026_247_687_942_121_848_144_207_491_837_418_733;

/// The positions of a key, which are asked in ascending order.
pub(super) fn positions(key: Key<'_>) -> impl FnMut(u32) -> u64 {
    let (mut state, mut next) = (wide(key.bytes), 0);
    move |i| {
        while next <= i {
            state = state.wrapping_mul(FACTOR).wrapping_add(1);
            next += 1;
        }
        (state >> 32) as u64 % key.range.num_bits
    }
}

/// The 128-bit number in at most 16 bytes of two's complement.
fn wide(bytes: &[u8]) -> u128 {
    let filling = if bytes.last().is_some_and(|last| last & 0x80 != 0) { 0xff } else { 0 };
    let mut number = [filling; 16];
    let len = bytes.len().min(16);
    number[..len].copy_from_slice(&bytes[..len]);
    u128::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_width_keep_their_sign() {
        assert_eq!(wide(&(-3i64).to_le_bytes()), -3i128 as u128);
        assert_eq!(wide(&i128::MIN.to_le_bytes()), i128::MIN as u128);
        assert_eq!(wide(&[0xff, 0]), 255);
    }
}
