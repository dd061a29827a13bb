//! `MurmurHash3_x86_32` as Apache Spark computes it: each byte after the last whole word is mixed in as a word of its
//! own, with its sign. It equals the published function if the length is a multiple of 4.

use super::murmur3::{finished32, mixed32};

/// The hash of `bytes` under `seed`.
#[inline]
pub fn murmur32_spark(bytes: &[u8], seed: u32) -> u32 {
    let (words, rest) = bytes.as_chunks::<4>();
    let state = words.iter().fold(seed, |state, word| mixed32(state, u32::from_le_bytes(*word)));
    let state = rest.iter().fold(state, |state, &byte| mixed32(state, byte as i8 as u32));
    finished32(state, bytes.len() as u32)
}

/// [`murmur32_spark`] of 8 bytes.
#[inline(always)]
pub fn murmur32_word(word: u64, seed: u32) -> u32 {
    finished32(mixed32(mixed32(seed, word as u32), (word >> 32) as u32), 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_words_hash_as_published_and_bytes_behind_them_do_not() {
        assert_eq!(murmur32_spark(b"", 0), 0);
        assert_eq!(murmur32_spark(b"abcd", 0), 0x43ed_676a);
        assert_ne!(murmur32_spark(b"hello", 0), 0x248b_fa47);
        for word in [0u64, 1, u64::MAX, 1 << 40] {
            assert_eq!(murmur32_word(word, 7), murmur32_spark(&word.to_le_bytes(), 7));
        }
    }
}
