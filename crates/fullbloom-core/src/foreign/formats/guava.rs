//! Guava's `BloomFilter`: u8 strategy, u8 k, i32 words, words x i64; big-endian. The funnel is not recorded.

use super::contents::Contents;
use super::format::Format;
use super::head::{Head, Shape, i32_at, parse_num_bits};
use super::layout::BitLayout;
use super::order::Order;
use super::size::optimal_bits;
use super::tail::Tail;
use crate::foreign::key_type::KeyType;
use crate::foreign::rules::{Rule, Seed};

/// Strategy 1, the default.
pub(super) const MITZ_64: Format = Format {
    number: 3,
    name: "guava",
    program: "guava",
    title: "Guava BloomFilter, MURMUR128_MITZ_64",
    rule_in_words: "Murmur3 x64_128 halves summed in 64 bits",
    key_types: &[KeyType::Bytes, KeyType::Utf16, KeyType::Int, KeyType::Long],
    key_type_name: "funnel",
    contents: Contents::Bits(LAYOUT),
    is_detected: true,
    is_written: true,
    own: None,
    verified: "both directions against the jar of Guava 33",
    limits: "funnels of several fields are not supported",
};

/// Strategy 0, the one of releases before 16.
pub(super) const MITZ_32: Format = Format {
    number: 4,
    name: "guava-32",
    title: "Guava BloomFilter, MURMUR128_MITZ_32",
    rule_in_words: "halves of the first word of Murmur3 x64_128 summed in 32 bits",
    contents: Contents::Bits(BitLayout {
        rule: Rule::Guava32,
        parse: |head, len| parse(head, len, 0),
        head: |shape| head(shape, 0),
        ..LAYOUT
    }),
    ..MITZ_64
};

const LAYOUT: BitLayout = BitLayout {
    rule: Rule::Guava64,
    is_bare: false,
    is_seeded: false,
    bits_step: 64,
    most_bits: i32::MAX as u64 * 64,
    most_hashes: 255,
    order: Order::Big,
    parse: |head, len| parse(head, len, 1),
    head: |shape| head(shape, 1),
    tail: Tail::NONE,
    size,
};

fn parse(head: &[u8], len: u64, strategy: u8) -> Result<Head, String> {
    let [stated, num_hashes, ..] = head else { return Err("it ends within its header".into()) };
    if *stated != strategy {
        return Err(format!("its strategy is {stated}, not {strategy}"));
    }
    if *num_hashes == 0 {
        return Err("its number of hashes is 0".into());
    }
    let num_bits = parse_num_bits(i32_at(head, 2)?, 6, len)?;
    Ok(Head { len: 6, num_hashes: (*num_hashes).into(), seed: Seed::NONE, num_bits })
}

fn head(shape: &Shape, strategy: u8) -> Vec<u8> {
    let words = (shape.num_bits / 64) as u32;
    let mut head = vec![strategy, shape.num_hashes as u8];
    head.extend_from_slice(&words.to_be_bytes());
    head
}

/// `k = max(1, round(-log2 p))`, as since 33.
fn size(capacity: u64, fpr: f64) -> Option<(u64, u32)> {
    let hashes = (-fpr.ln() / std::f64::consts::LN_2).round().clamp(1.0, 255.0) as u32;
    let bits = optimal_bits(capacity, fpr).max(1).checked_next_multiple_of(64)?;
    Some((bits, hashes)).filter(|(bits, _)| *bits <= LAYOUT.most_bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Result;
    use crate::foreign::bits::BitFilter;
    use crate::key::Domain;

    fn hex(of: KeyType, keys: &[(Domain, &[u8])]) -> Result<String> {
        let mut filter = BitFilter::for_capacity(&MITZ_64, of, 0, 10, 0.03)?;
        for (domain, bytes) in keys {
            let digest = filter.hashing().digest(*domain, bytes);
            filter.add(digest.ok_or_else(|| crate::Error::parameter("a key of another type"))?)?;
        }
        let mut bytes = Vec::new();
        filter.write(&mut bytes).map_err(|error| crate::Error::Io(error, "test".into()))?;
        Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    #[test]
    fn bytes_are_those_of_guava() -> Result<()> {
        let words = ["a", "b", "hello", "café"].map(|text| (Domain::Text, text.as_bytes()));
        assert_eq!(hex(KeyType::Bytes, &words)?, "01050000000220100200088402040002404820c0a103");
        assert_eq!(hex(KeyType::Utf16, &words)?, "01050000000224b2a02020a280800008000000280800");
        let bytes = [0i64, 1, -1, 1 << 40].map(i64::to_le_bytes);
        let longs = [0, 1, 2, 3].map(|i| (Domain::Integer, &bytes[i][..]));
        assert_eq!(hex(KeyType::Long, &longs)?, "01050000000200008025200800011088800410434c02");
        let bytes = [0i64, 1, -1, 1 << 20].map(i64::to_le_bytes);
        let ints = [0, 1, 2, 3].map(|i| (Domain::Integer, &bytes[i][..]));
        assert_eq!(hex(KeyType::Int, &ints)?, "01050000000250002020420082214003000000800002");
        assert!(hex(KeyType::Int, &longs).is_err());
        Ok(())
    }
}
