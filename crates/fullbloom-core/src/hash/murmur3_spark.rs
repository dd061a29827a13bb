//! `MurmurHash3_x86_32` as Apache Spark computes it: each byte after the last whole word is mixed in as a word of its
//! own, with its sign. It equals the published function if the length is a multiple of 4.

use super::murmur3::{finished32, mixed32};
use crate::isa::prefetch;

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

/// How far ahead words are fetched: batches hash a few KiB at a time, and the hardware's own prefetcher starts over
/// each time.
const AHEAD_BYTES: usize = 2048;

/// For each word, [`murmur32_word`] under `seed`, and under that hash: both are written as words of 64 bits. The slices are
/// equally long.
pub fn murmur32_pairs(words: &[[u8; 8]], seed: u32, out: &mut [[u64; 2]]) {
    #[cfg(target_arch = "x86_64")]
    if crate::isa::Isa::current() == crate::isa::Isa::Avx2 {
        // SAFETY: the instruction set was detected.
        return unsafe { pairs_avx2(words, seed, out) };
    }
    pairs(words, seed, out);
}

/// # Safety
/// AVX2 must be present.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn pairs_avx2(words: &[[u8; 8]], seed: u32, out: &mut [[u64; 2]]) {
    pairs(words, seed, out);
}

/// Eight words at a time, in loops that the compiler turns into vectors of the instruction set.
#[inline(always)]
fn pairs(words: &[[u8; 8]], seed: u32, out: &mut [[u64; 2]]) {
    let (eights, rest) = words.as_chunks::<8>();
    let (outs, rest_out) = out.as_chunks_mut::<8>();
    for (eight, out) in eights.iter().zip(outs) {
        prefetch(eight.as_ptr().wrapping_byte_add(AHEAD_BYTES).cast());
        let (mut low, mut high, mut first, mut second) = ([0u32; 8], [0u32; 8], [0u32; 8], [0u32; 8]);
        for i in 0..8 {
            let word = u64::from_le_bytes(eight[i]);
            (low[i], high[i]) = (word as u32, (word >> 32) as u32);
        }
        for i in 0..8 {
            first[i] = finished32(mixed32(mixed32(seed, low[i]), high[i]), 8);
        }
        for i in 0..8 {
            second[i] = finished32(mixed32(mixed32(first[i], low[i]), high[i]), 8);
        }
        for i in 0..8 {
            out[i] = [first[i].into(), second[i].into()];
        }
    }
    for (word, out) in rest.iter().zip(rest_out) {
        let word = u64::from_le_bytes(*word);
        let first = murmur32_word(word, seed);
        *out = [first.into(), murmur32_word(word, first).into()];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::splitmix::mix;
    use crate::isa::on_each;

    #[test]
    fn pairs_are_those_of_single_words_on_every_instruction_set() {
        let words: Vec<[u8; 8]> = (0..1000).map(|i| mix(i).to_le_bytes()).collect();
        on_each(|isa| {
            for len in [0, 1, 7, 8, 9, 63, 1000] {
                let mut out = vec![[0; 2]; len];
                murmur32_pairs(&words[..len], 42, &mut out);
                for (word, pair) in words.iter().zip(out) {
                    let first = murmur32_spark(word, 42);
                    assert_eq!(pair, [first.into(), murmur32_spark(word, first).into()], "{isa:?}");
                }
            }
        });
    }

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
