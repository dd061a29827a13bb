//! Bins of a prefix filter: up to 25 fingerprints in ascending order, in few words.
//!
//! A fingerprint is a number below 25 2^r: a quotient below 25 and a remainder of r bits. A bin of
//! ceil((51 + 25 r) / 64) words holds, LSB first over its little-endian words:
//!
//! ```text
//! bit 0         1 when the bin has passed something on
//! bits 1..51    for quotient 0, 1, ..: a 1 for each of its fingerprints, then a 0
//! bits 51..     the remainders, r bits each, in ascending order of fingerprint
//! ```
//!
//! An empty bin is all zeros, and so is every bit that no fingerprint uses.

use crate::table::cuckoo::buckets::write;

/// Fingerprints of a bin; also the number of quotients.
pub const BIN_SIZE: u32 = 25;
/// The first bit of the remainders.
const HEAD: u32 = 1 + 2 * BIN_SIZE;
const RUNS: u64 = (1 << (2 * BIN_SIZE)) - 1;

/// Words of a bin of remainders of `width` bits.
pub const fn words_of(width: u32) -> u32 {
    (HEAD + BIN_SIZE * width).div_ceil(64)
}

/// The outcome of adding a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insertion {
    /// It was there.
    Old,
    /// It was stored.
    New,
    /// It was stored, and this one, the greatest, had to leave.
    Instead(u64),
    /// It is greater than all of the full bin.
    Beyond,
}

/// Position of the set bit number `rank` of `bits`, which must have more than `rank`.
#[inline(always)]
fn select(bits: u64, rank: u32) -> u32 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = ONES << 7;
    // Vigna, "Broadword implementation of rank/select queries", 2008: sums of bytes from below.
    let pairs = bits - (bits >> 1 & 0x5555_5555_5555_5555);
    let fours = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
    let sums = ((fours + (fours >> 4)) & 0x0f0f_0f0f_0f0f_0f0f).wrapping_mul(ONES);
    // Bytes whose sum is at most the rank lie before the one wanted.
    let before = (((u64::from(rank).wrapping_mul(ONES) | HIGHS).wrapping_sub(sums)) & HIGHS).count_ones();
    let place = (8 * before).min(56);
    let left = rank.wrapping_sub(((sums << 8) >> place) as u32 & 255);
    let mut byte = bits >> place & 255;
    for _ in 0..left.min(7) {
        byte &= byte.wrapping_sub(1);
    }
    place + byte.trailing_zeros().min(7)
}

/// The runs of a bin: a damaged bin (more than 25 fingerprints) counts as empty.
#[inline(always)]
fn runs(bin: &[u64]) -> u64 {
    let runs = u64::from_le(bin[0]) >> 1 & RUNS;
    if runs.count_ones() > BIN_SIZE { 0 } else { runs }
}

/// Remainder number `i`, below 25.
#[inline(always)]
fn remainder(bin: &[u64], width: u32, i: u32) -> u64 {
    let bit = HEAD + i * width;
    let (word, shift, mask) = ((bit >> 6) as usize, bit & 63, u64::MAX >> (64 - width));
    let low = u64::from_le(bin[word]) >> shift;
    if shift + width <= 64 {
        return low & mask;
    }
    (low | u64::from_le(bin[word + 1]) << (64 - shift)) & mask
}

/// Where the run of `quotient` (below 25) begins among the bits of `runs`.
#[inline(always)]
fn start(runs: u64, quotient: u32) -> u32 {
    if quotient == 0 { 0 } else { select(!runs, quotient - 1) + 1 }
}

/// True if the bin has passed a fingerprint on.
#[inline(always)]
pub fn has_overflowed(bin: &[u64]) -> bool {
    u64::from_le(bin[0]) & 1 == 1
}

/// True for at most 25 distinct fingerprints, whose quotients are below 25, in ascending order with no bits after them;
/// exactly 25 if one was passed on.
pub fn is_sound(bin: &[u64], width: u32) -> bool {
    let runs = u64::from_le(bin[0]) >> 1 & RUNS;
    let held = runs.count_ones();
    if held > BIN_SIZE || has_overflowed(bin) && held < BIN_SIZE {
        return false;
    }
    // Of the bits up to that of the last fingerprint, those that are 0 count up the quotient.
    if held > 0 && u64::BITS - runs.leading_zeros() - held >= BIN_SIZE {
        return false;
    }
    let (mut left, mut last) = (runs, None);
    for i in 0..held {
        let fp = u64::from(left.trailing_zeros() - i) << width | remainder(bin, width, i);
        if last.is_some_and(|last| fp <= last) {
            return false;
        }
        (left, last) = (left & (left - 1), Some(fp));
    }
    let end = HEAD + held * width;
    let (word, below) = ((end >> 6) as usize, (1u64 << (end & 63)) - 1);
    bin.get(word).is_none_or(|&word| u64::from_le(word) & !below == 0)
        && bin.iter().skip(word + 1).all(|&word| word == 0)
}

/// Number of fingerprints.
pub fn len(bin: &[u64]) -> u32 {
    runs(bin).count_ones()
}

/// The greatest fingerprint, if there is one.
#[inline(always)]
pub fn greatest(bin: &[u64], width: u32) -> Option<u64> {
    let runs = runs(bin);
    let last = runs.count_ones().checked_sub(1)?;
    let quotient = 63 - runs.leading_zeros() - last;
    Some(u64::from(quotient) << width | remainder(bin, width, last))
}

/// The result of looking a fingerprint up in a bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinLookup {
    /// It is here.
    Here,
    /// It was never added.
    Never,
    /// It is greater than all that are here, and the bin has passed something on.
    Beyond,
}

/// Looks up `fp`, below 25 2^width.
#[inline(always)]
pub fn look(bin: &[u64], width: u32, fp: u64) -> BinLookup {
    let (quotient, wanted) = ((fp >> width) as u32, fp & ((1 << width) - 1));
    let runs = runs(bin);
    let start = start(runs, quotient);
    let (mut i, end) = (start - quotient, start - quotient + (runs >> start).trailing_ones());
    while i < end {
        let held = remainder(bin, width, i);
        if held >= wanted {
            return if held == wanted { BinLookup::Here } else { BinLookup::Never };
        }
        i += 1;
    }
    // All up to the end of the run are smaller: is there a larger one?
    if has_overflowed(bin) && runs >> start >> (end + quotient - start) == 0 {
        BinLookup::Beyond
    } else {
        BinLookup::Never
    }
}

/// Adds `fp`, below 25 2^width, unless it is present or beyond a full bin.
#[inline(always)]
pub fn add(bin: &mut [u64], width: u32, fp: u64) -> Insertion {
    let (quotient, wanted) = ((fp >> width) as u32, fp & ((1 << width) - 1));
    let old = runs(bin);
    let start = start(old, quotient);
    let (mut i, end) = (start - quotient, start - quotient + (old >> start).trailing_ones());
    while i < end {
        let held = remainder(bin, width, i);
        if held == wanted {
            return Insertion::Old;
        }
        if held > wanted {
            break;
        }
        i += 1;
    }
    let full = old.count_ones() == BIN_SIZE;
    if full && i == BIN_SIZE {
        bin[0] |= 1u64.to_le();
        return Insertion::Beyond;
    }
    let leaving = if full { greatest(bin, width) } else { None };
    let mut runs = old;
    if full {
        runs &= !(1 << (63 - old.leading_zeros()));
        write(bin, u64::from(HEAD + (BIN_SIZE - 1) * width), width, 0);
    }
    let at = i + quotient;
    let below = (1 << at) - 1;
    runs = runs & below | 1 << at | (runs & !below) << 1;
    let flag = u64::from(full) | u64::from_le(bin[0]) & 1;
    bin[0] = (u64::from_le(bin[0]) & !(RUNS << 1 | 1) | (runs & RUNS) << 1 | flag).to_le();
    make_room(bin, HEAD + i * width, width);
    write(bin, u64::from(HEAD + i * width), width, wanted);
    leaving.map_or(Insertion::New, Insertion::Instead)
}

/// Moves the bits from `bit` on up by `width`, below 64; bits that leave the bin are lost.
#[inline(always)]
fn make_room(bin: &mut [u64], bit: u32, width: u32) {
    let (word, below) = ((bit >> 6) as usize, (1u64 << (bit & 63)) - 1);
    for i in (word + 2..bin.len()).rev() {
        bin[i] = (u64::from_le(bin[i]) << width | u64::from_le(bin[i - 1]) >> (64 - width)).to_le();
    }
    let first = u64::from_le(bin[word]);
    if let Some(next) = bin.get_mut(word + 1) {
        *next = (u64::from_le(*next) << width | (first & !below) >> (64 - width)).to_le();
    }
    bin[word] = (first & below | (first & !below) << width).to_le();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selecting_finds_every_set_bit() {
        let mut x = 1u64;
        for _ in 0..2000 {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let bits = x & x.rotate_left(23) | x.rotate_left(41) & 0xff;
            let places: Vec<u32> = (0..64).filter(|i| bits >> i & 1 == 1).collect();
            for (rank, &place) in (0..).zip(&places) {
                assert_eq!(select(bits, rank), place, "{bits:x} {rank}");
            }
        }
        assert_eq!(select(u64::MAX, 63), 63);
    }

    #[test]
    fn a_bin_keeps_the_25_smallest_and_hands_out_the_rest() {
        let mut x = 5u64;
        for width in 1..=28 {
            for round in 0..40 {
                let mut bin = vec![0u64; words_of(width) as usize];
                let mut model = std::collections::BTreeSet::new();
                let mut passed = false;
                for _ in 0..60 {
                    x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    // Some rounds crowd into few quotients.
                    let fp = crate::scheme::fastrange(x, (25u64 << width) >> (round % 4));
                    let beyond = passed && model.last().is_some_and(|&last| last < fp);
                    let known = match (model.contains(&fp), beyond) {
                        (true, _) => BinLookup::Here,
                        (_, true) => BinLookup::Beyond,
                        _ => BinLookup::Never,
                    };
                    assert_eq!(look(&bin, width, fp), known);
                    let wanted = if model.contains(&fp) {
                        Insertion::Old
                    } else if model.len() < 25 {
                        model.insert(fp);
                        Insertion::New
                    } else if *model.last().unwrap() < fp {
                        passed = true;
                        Insertion::Beyond
                    } else {
                        passed = true;
                        model.insert(fp);
                        Insertion::Instead(model.pop_last().unwrap())
                    };
                    assert_eq!(add(&mut bin, width, fp), wanted);
                    assert_eq!((has_overflowed(&bin), len(&bin) as usize), (passed, model.len()));
                    assert!(is_sound(&bin, width));
                    assert_eq!(greatest(&bin, width), model.last().copied());
                }
                assert!(model.iter().all(|&fp| look(&bin, width, fp) == BinLookup::Here));
                let mut again = vec![0u64; bin.len()];
                model.iter().rev().for_each(|&fp| assert_eq!(add(&mut again, width, fp), Insertion::New));
                again[0] |= u64::from(passed).to_le();
                assert_eq!(again, bin, "the same fingerprints make the same bits");
            }
        }
    }

    #[test]
    fn a_bit_more_in_a_bin_that_is_not_full_is_found_out_or_makes_another_bin() {
        let mut x = 5u64;
        for width in [1, 5, 8, 13, 28] {
            let mut bin = vec![0u64; words_of(width) as usize];
            for held in 0..25 {
                assert!(is_sound(&bin, width) && len(&bin) == held);
                for bit in 0..bin.len() * 64 {
                    let mut lie = bin.clone();
                    lie[bit / 64] ^= (1u64 << (bit % 64)).to_le();
                    // A bin is what its fingerprints make of an empty one.
                    let mut again = vec![0u64; bin.len()];
                    let runs = runs(&lie);
                    (0..len(&lie)).fold(runs, |left, i| {
                        let quotient = u64::from(left.trailing_zeros() - i);
                        add(&mut again, width, quotient.min(24) << width | remainder(&lie, width, i));
                        left & left.wrapping_sub(1)
                    });
                    assert_eq!(is_sound(&lie, width), again == lie, "{width} {held} {bit}");
                }
                while len(&bin) == held {
                    x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    add(&mut bin, width, crate::scheme::fastrange(x, 25 << width));
                }
            }
        }
    }

    #[test]
    fn bins_of_any_bits_are_survived() {
        let mut x = 5u64;
        for width in 1..=28 {
            for _ in 0..2000 {
                let mut bin: Vec<u64> = (0..words_of(width))
                    .map(|_| {
                        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                        if x >> 60 == 0 { u64::MAX } else { x.rotate_left(29) & x }
                    })
                    .collect();
                let fp = crate::scheme::fastrange(x, 25 << width);
                let _ = (look(&bin, width, fp), greatest(&bin, width), len(&bin), add(&mut bin, width, fp));
            }
        }
    }
}
