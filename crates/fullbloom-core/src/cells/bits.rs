//! Words as bits: set, test, count, combine. Words are stored little-endian on every machine.

/// The mask of bit `i` inside its word, in storage order.
#[inline(always)]
pub fn mask(i: u64) -> u64 {
    (1u64 << (i & 63)).to_le()
}

/// Number of set bits.
pub fn count_ones(words: &[u64]) -> u64 {
    words.iter().map(|w| u64::from(w.count_ones())).sum()
}

/// Number of bits set in either, without building the union.
pub fn count_union(a: &[u64], b: &[u64]) -> u64 {
    a.iter().zip(b).map(|(x, y)| u64::from((x | y).count_ones())).sum()
}

/// True when every bit of `a` is set in `b`.
pub fn is_subset(a: &[u64], b: &[u64]) -> bool {
    a.iter().zip(b).all(|(x, y)| x & !y == 0)
}

/// True when no bit is set in both.
pub fn are_disjoint(a: &[u64], b: &[u64]) -> bool {
    a.iter().zip(b).all(|(x, y)| x & y == 0)
}

/// True when a bit is set.
pub fn any(words: &[u64]) -> bool {
    words.iter().any(|&word| word != 0)
}

/// True when no bit from `bit` on is set.
pub fn is_zero_from(words: &[u64], bit: u64) -> bool {
    let mut rest = words.iter().skip((bit >> 6) as usize).map(|word| u64::from_le(*word));
    rest.next().is_none_or(|word| word >> (bit & 63) == 0) && rest.all(|word| word == 0)
}

/// `a |= b`.
pub fn or_assign(a: &mut [u64], b: &[u64]) {
    for (x, y) in a.iter_mut().zip(b) {
        *x |= y;
    }
}

/// `a &= b`.
pub fn and_assign(a: &mut [u64], b: &[u64]) {
    for (x, y) in a.iter_mut().zip(b) {
        *x &= y;
    }
}

/// `a &= !b`.
pub fn and_not_assign(a: &mut [u64], b: &[u64]) {
    for (x, y) in a.iter_mut().zip(b) {
        *x &= !y;
    }
}

/// `a ^= b`.
pub fn xor_assign(a: &mut [u64], b: &[u64]) {
    for (x, y) in a.iter_mut().zip(b) {
        *x ^= y;
    }
}
