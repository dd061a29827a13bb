//! MurmurHash64A, Austin Appleby's hash of 2008: what `RedisBloom` hashes with.
//!
//! Words of 8 bytes, little-endian, are mixed into `seed ^ length * M`; up to seven bytes are left, as one word.

const M: u64 = 0xc6a4_a793_5bd1_e995;
const R: u32 = 47;

/// The hash of `bytes` under `seed`.
pub fn murmur64a(bytes: &[u8], seed: u64) -> u64 {
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(M);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let mut mixed = u64::from_le_bytes(*word).wrapping_mul(M);
        mixed ^= mixed >> R;
        hash = (hash ^ mixed.wrapping_mul(M)).wrapping_mul(M);
    }
    if !rest.is_empty() {
        let word = rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        hash = (hash ^ word).wrapping_mul(M);
    }
    hash = (hash ^ hash >> R).wrapping_mul(M);
    hash ^ hash >> R
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_program_that_uses_it_come_out() {
        let rows: [(&[u8], u64, u64); 4] = [
            (b"", 0x1ab1_1ea5_a7b2_c56e, 0xbbdd_cb5a_b56d_d547),
            (b"a", 0x4292_cee2_27b9_150a, 0x7e9b_5270_31f5_0c11),
            (b"hello", 0x5ba5_b8a5_9803_e699, 0xa7d4_51d5_88a0_c2a4),
            (b"foobarbaz12345678", 0x807d_95b6_180f_603a, 0xc0bf_d206_fcdf_f85c),
        ];
        for (key, first, second) in rows {
            assert_eq!(murmur64a(key, M), first);
            assert_eq!(murmur64a(key, first), second);
        }
        assert_eq!(murmur64a(b"a", 0), 0x0717_17d2_d36b_6b11);
        assert_eq!(murmur64a(b"hello", 0), 0x1e68_d17c_457b_f117);
    }
}
