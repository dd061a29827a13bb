//! Parts of the sections of a filter's file.

use std::ops::Range;

/// The bytes of these words; the last word may be incomplete.
pub(super) fn bytes_of(bytes: &[u8], words: Range<usize>) -> &[u8] {
    let end = bytes.len().min(words.end.saturating_mul(8));
    bytes.get(words.start.saturating_mul(8)..end).unwrap_or_default()
}

/// The number of set bits.
pub(super) fn count_ones(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks();
    let of_words: u64 = words.iter().map(|&word| u64::from(u64::from_ne_bytes(word).count_ones())).sum();
    of_words + rest.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>()
}
