//! XXH64 with seed 0 of eight bytes, the integers of other programs' filters: the published function with its length
//! branch decided beforehand.

const PRIME_1: u64 = 0x9e37_79b1_85eb_ca87;
const PRIME_2: u64 = 0xc2b2_ae3d_27d4_eb4f;
const PRIME_3: u64 = 0x1656_67b1_9e37_79f9;
const PRIME_4: u64 = 0x85eb_ca77_c2b2_ae63;
const PRIME_5: u64 = 0x27d4_eb2f_1656_67c5;

/// The hash of the 8 little-endian bytes of `word`.
#[inline(always)]
pub fn xxh64_word(word: u64) -> u64 {
    let lane = word.wrapping_mul(PRIME_2).rotate_left(31).wrapping_mul(PRIME_1);
    let hash = (PRIME_5.wrapping_add(8) ^ lane).rotate_left(27).wrapping_mul(PRIME_1).wrapping_add(PRIME_4);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(PRIME_2);
    let hash = (hash ^ (hash >> 29)).wrapping_mul(PRIME_3);
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::splitmix::mix;

    #[test]
    fn words_hash_as_their_bytes() {
        for word in (0..1000).map(mix).chain([0, 1, u64::MAX]) {
            assert_eq!(xxh64_word(word), xxhash_rust::xxh64::xxh64(&word.to_le_bytes(), 0));
        }
    }
}
