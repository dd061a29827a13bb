//! Integers beyond 128 bits.

/// The canonical bytes of an integer beyond 38 digits: two's complement, little-endian, the fewest that hold the sign.
pub(super) fn two_complement(negative: bool, digits: &[u8]) -> Vec<u8> {
    const TEN_TO_18: u128 = 1_000_000_000_000_000_000;
    let mut words: Vec<u64> = Vec::new();
    let first = digits.len() % 18;
    let groups = std::iter::once(&digits[..first]).chain(digits[first..].chunks(18));
    for group in groups {
        let mut carry = group.iter().fold(0u128, |value, &digit| value * 10 + u128::from(digit - b'0'));
        for word in &mut words {
            let product = u128::from(*word) * TEN_TO_18 + carry;
            *word = product as u64;
            carry = product >> 64;
        }
        if carry > 0 {
            words.push(carry as u64);
        }
    }
    if negative {
        let mut carry = true;
        for word in &mut words {
            (*word, carry) = (!*word).overflowing_add(u64::from(carry));
        }
    }
    let filler = if negative { 0xff } else { 0 };
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.push(filler);
    let spare = |bytes: &[u8]| bytes.len() > 9 && bytes[bytes.len() - 2] >> 7 == filler >> 7;
    while bytes.last() == Some(&filler) && spare(&bytes) {
        bytes.pop();
    }
    bytes
}
