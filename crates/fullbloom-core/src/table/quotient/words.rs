//! Words as strings of bits: select, and moving a run of bits by some places.
//!
//! A string may be every second word of an array: word j of it is word `j * STRIDE + BASE`. Words
//! are stored little-endian.

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x8080_8080_8080_8080;

/// Place of the set bit of `word` that has `rank` set bits below it; there must be one.
///
/// Vigna, "Broadword implementation of rank/select queries", WEA 2008: the byte is found by
/// comparing all eight prefix sums at once, then the bit inside the byte in the same way.
#[inline(always)]
pub fn select(word: u64, rank: u32) -> u32 {
    debug_assert!(rank < word.count_ones());
    let pairs = word - (word >> 1 & 0x5555_5555_5555_5555);
    let nibbles = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
    let sums = ((nibbles + (nibbles >> 4)) & 0x0f0f_0f0f_0f0f_0f0f).wrapping_mul(ONES);
    let rank = u64::from(rank);
    // Bytes whose prefix sum is at most the rank: the bit lies beyond them.
    let passed = ((rank.wrapping_mul(ONES) | TOPS).wrapping_sub(sums) & TOPS) >> 7;
    let place = (passed.wrapping_mul(ONES) >> 56) << 3 & 63;
    let rank = rank.wrapping_sub((sums << 8) >> place & 0xff) & 7;
    let byte = word >> place & 0xff;
    let spread = byte.wrapping_mul(ONES) & 0x8040_2010_0804_0201;
    let flags = (spread | (spread | TOPS).wrapping_sub(ONES)) & TOPS;
    let sums = (flags >> 7).wrapping_mul(ONES);
    let passed = ((rank.wrapping_mul(ONES) | TOPS).wrapping_sub(sums) & TOPS) >> 7;
    (place + (passed.wrapping_mul(ONES) >> 56)) as u32 & 63
}

/// The bits of word `j` that lie in `first..stop`, as a mask.
#[inline(always)]
fn inside(j: u64, first: u64, stop: u64) -> u64 {
    let low = if j == first >> 6 { u64::MAX << (first & 63) } else { u64::MAX };
    let high = if j == (stop - 1) >> 6 { u64::MAX >> (63 - ((stop - 1) & 63)) } else { u64::MAX };
    low & high
}

#[inline(always)]
fn get<const STRIDE: usize, const BASE: usize>(words: &[u64], j: u64) -> u64 {
    words.get(j as usize * STRIDE + BASE).map_or(0, |word| u64::from_le(*word))
}

#[inline(always)]
fn put<const STRIDE: usize, const BASE: usize>(words: &mut [u64], j: u64, mask: u64, value: u64) {
    if let Some(word) = words.get_mut(j as usize * STRIDE + BASE) {
        *word = (u64::from_le(*word) & !mask | value & mask).to_le();
    }
}

/// Moves the bits `from..to` to `from + by..to + by`; `by` is 1 to 64.
#[inline(always)]
pub fn move_up<const STRIDE: usize, const BASE: usize>(words: &mut [u64], from: u64, to: u64, by: u32) {
    if from >= to {
        return;
    }
    let (first, stop) = (from + u64::from(by), to + u64::from(by));
    for j in (first >> 6..=(stop - 1) >> 6).rev() {
        let below = if j == 0 { 0 } else { get::<STRIDE, BASE>(words, j - 1) };
        let here = if by == 64 { 0 } else { get::<STRIDE, BASE>(words, j) << by };
        put::<STRIDE, BASE>(words, j, inside(j, first, stop), here | below >> (64 - by));
    }
}

/// Moves the bits `from + by..to + by` to `from..to`; `by` is 1 to 64.
#[inline(always)]
pub fn move_down<const STRIDE: usize, const BASE: usize>(words: &mut [u64], from: u64, to: u64, by: u32) {
    if from >= to {
        return;
    }
    for j in from >> 6..=(to - 1) >> 6 {
        let above = get::<STRIDE, BASE>(words, j + 1);
        let here = if by == 64 { 0 } else { get::<STRIDE, BASE>(words, j) >> by };
        put::<STRIDE, BASE>(words, j, inside(j, from, to), here | above << (64 - by));
    }
}

/// Number of bits set in `from..to` of a string of `1 << bits` bits that closes into a ring.
#[inline(always)]
pub fn count<const STRIDE: usize, const BASE: usize>(words: &[u64], bits: u32, from: u64, to: u64) -> u64 {
    if from >= to {
        return 0;
    }
    let ring = (1u64 << (bits - 6)) - 1;
    let mut ones = 0;
    for j in from >> 6..=(to - 1) >> 6 {
        ones += u64::from((get::<STRIDE, BASE>(words, j & ring) & inside(j, from, to)).count_ones());
    }
    ones
}

/// For the beginnings (high) and ends (low) of runs in four slots: the largest number of open runs before them with
/// which one of the slots is free, and the change of that number.
pub static LEVELS: [(i8, i8); 256] = levels();

const fn levels() -> [(i8, i8); 256] {
    let (mut table, mut both) = ([(0, 0); 256], 0);
    while both < 256 {
        let (mut most, mut open, mut slot) = (i8::MIN, 0i8, 0);
        while slot < 4 {
            open += (both >> (slot + 4) & 1) as i8;
            most = if -open > most { -open } else { most };
            open -= (both >> slot & 1) as i8;
            slot += 1;
        }
        table[both] = (most, open);
        both += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state.rotate_left(29) ^ (*state >> 11)
    }

    #[test]
    fn select_agrees_with_counting() {
        let mut state = 5;
        for round in 0..2000 {
            let mut word = random(&mut state);
            if round % 3 == 1 {
                word &= random(&mut state) & random(&mut state) & random(&mut state);
            }
            if round % 3 == 2 {
                word |= random(&mut state) | random(&mut state) | random(&mut state);
            }
            let word = if round == 0 { u64::MAX } else { word };
            let places: Vec<u32> = (0..64).filter(|&i| word >> i & 1 == 1).collect();
            for (rank, &place) in places.iter().enumerate() {
                assert_eq!(select(word, rank as u32), place, "{word:x} {rank}");
            }
        }
    }

    #[test]
    fn moved_bits_arrive_and_the_others_stay() {
        let bit = |words: &[u64], i: u64| u64::from_le(words[(i >> 6) as usize * 2 + 1]) >> (i & 63) & 1;
        let mut state = 9;
        for _ in 0..3000 {
            let words: Vec<u64> = (0..20).map(|_| random(&mut state)).collect();
            let by = 1 + (random(&mut state) % 64) as u32;
            let (a, b) = (random(&mut state) % 576, random(&mut state) % 576);
            let (from, to) = (a.min(b), a.max(b));
            let (mut up, mut down) = (words.clone(), words.clone());
            move_up::<2, 1>(&mut up, from, to, by);
            move_down::<2, 1>(&mut down, from, to, by);
            let by = u64::from(by);
            for i in 0..640 {
                let moved = if i >= from + by && i < to + by { i - by } else { i };
                assert_eq!(bit(&up, i), bit(&words, moved));
                let moved = if i >= from && i < to { i + by } else { i };
                assert_eq!(bit(&down, i), bit(&words, moved));
            }
            assert!((0..20).step_by(2).all(|i| up[i] == words[i] && down[i] == words[i]));
            let ring: Vec<u64> = words[..16].to_vec();
            let counted = (from..to + 200).filter(|i| bit(&ring, i & 511) == 1).count() as u64;
            assert_eq!(count::<2, 1>(&ring, 9, from, (to + 200).min(from + 512)), {
                let stop = (to + 200).min(from + 512);
                if stop == to + 200 {
                    counted
                } else {
                    (from..stop).filter(|i| bit(&ring, i & 511) == 1).count() as u64
                }
            });
        }
    }
}
