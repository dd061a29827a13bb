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

#[inline(always)]
fn pairs(words: &[[u8; 8]], seed: u32, out: &mut [[u64; 2]]) {
    const BLOCK: usize = 64;
    let (blocks, rest) = words.as_chunks::<BLOCK>();
    let (outs, rest_out) = out.as_chunks_mut::<BLOCK>();
    let (mut first, mut second) = ([0; BLOCK], [0; BLOCK]);
    for (words, out) in blocks.iter().zip(outs) {
        murmur32_columns(words, seed, &mut first, &mut second);
        for i in 0..BLOCK {
            out[i] = [first[i].into(), second[i].into()];
        }
    }
    for (word, out) in rest.iter().zip(rest_out) {
        let word = u64::from_le_bytes(*word);
        let first = murmur32_word(word, seed);
        *out = [first.into(), murmur32_word(word, first).into()];
    }
}

/// Words that are hashed at a time.
const LANES: usize = 16;

/// For each word, [`murmur32_word`] under `seed`, and under that hash. Sixteen words at a time, a multiple of which N must be, in
/// loops that the compiler turns into vectors of the instruction set of its caller. Hashes in two columns take 1.3 ns per word,
/// those that were written as pairs 6.5.
#[inline(always)]
pub(crate) fn murmur32_columns<const N: usize>(
    words: &[[u8; 8]; N],
    seed: u32,
    first: &mut [u32; N],
    second: &mut [u32; N],
) {
    const { assert!(N.is_multiple_of(LANES)) };
    let columns = first.as_chunks_mut::<LANES>().0.iter_mut().zip(second.as_chunks_mut::<LANES>().0);
    for (words, (first, second)) in words.as_chunks::<LANES>().0.iter().zip(columns) {
        for line in 0..LANES * 8 / 64 {
            prefetch(words.as_ptr().wrapping_byte_add(AHEAD_BYTES + line * 64).cast());
        }
        let (mut low, mut high) = ([0u32; LANES], [0u32; LANES]);
        for i in 0..LANES {
            let word = u64::from_le_bytes(words[i]);
            (low[i], high[i]) = (word as u32, (word >> 32) as u32);
        }
        for i in 0..LANES {
            first[i] = finished32(mixed32(mixed32(seed, low[i]), high[i]), 8);
        }
        for i in 0..LANES {
            second[i] = finished32(mixed32(mixed32(first[i], low[i]), high[i]), 8);
        }
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
