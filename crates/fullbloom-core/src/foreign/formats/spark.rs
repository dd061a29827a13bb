//! Apache Spark's `BloomFilter`, both versions; all numbers big-endian.
//!
//! ```text
//! version 1: i32 1, i32 k, i32 words, words x i64
//! version 2: i32 2, i32 k, i32 seed, i32 words, words x i64
//! ```

use std::f64::consts::LN_2;

use super::contents::Contents;
use super::format::Format;
use super::head::{Head, Shape, i32_at, parse_num_bits};
use super::layout::BitLayout;
use super::order::Order;
use super::size::optimal_bits;
use super::tail::Tail;
use crate::foreign::key_type::KeyType;
use crate::foreign::rules::{Rule, Seed};

/// Version 1.
pub(super) const V1: Format = Format {
    number: 1,
    name: "spark-v1",
    title: "Apache Spark BloomFilter, version 1",
    rule_in_words: "Spark's Murmur3 pair summed in 32 bits",
    contents: Contents::Bits(BitLayout {
        rule: Rule::Spark32,
        is_seeded: false,
        parse: |head, len| parse(head, len, 1),
        head: |shape| head(shape, 1),
        ..LAYOUT
    }),
    ..V2
};

/// Version 2, which Spark writes since 4.1.
pub(super) const V2: Format = Format {
    number: 2,
    name: "spark",
    program: "spark",
    title: "Apache Spark BloomFilter, version 2",
    rule_in_words: "Spark's Murmur3 pair summed in 64 bits",
    key_types: &[KeyType::Any],
    key_type_name: "key_type",
    contents: Contents::Bits(LAYOUT),
    is_detected: true,
    is_written: true,
    own: None,
    verified: "both directions against the spark-sketch jar of Spark 4",
    limits: "more than 65,536 hashes are refused",
};

const LAYOUT: BitLayout = BitLayout {
    rule: Rule::Spark64,
    is_bare: false,
    is_seeded: true,
    bits_step: 64,
    most_bits: i32::MAX as u64 * 64,
    most_hashes: 1 << 16,
    order: Order::Big,
    parse: |head, len| parse(head, len, 2),
    head: |shape| head(shape, 2),
    tail: Tail::NONE,
    size,
};

fn parse(head: &[u8], len: u64, version: i32) -> Result<Head, String> {
    let stated = i32_at(head, 0)?;
    if stated != version {
        return Err(format!("its version is {stated}, not {version}"));
    }
    let num_hashes = i32_at(head, 4)?;
    let Some(num_hashes) = u32::try_from(num_hashes).ok().filter(|k| (1..=LAYOUT.most_hashes).contains(k)) else {
        return Err(format!("its number of hashes is {num_hashes}"));
    };
    let (seed, at) = if version == 1 { (0, 8) } else { (i32_at(head, 8)? as u32, 12) };
    let num_bits = parse_num_bits(i32_at(head, at)?, at + 4, len)?;
    Ok(Head { len: at + 4, num_hashes, seed: Seed::of(seed), num_bits })
}

fn head(shape: &Shape, version: u32) -> Vec<u8> {
    let (hashes, words) = (shape.num_hashes, (shape.num_bits / 64) as u32);
    let fields =
        if version == 1 { vec![version, hashes, words] } else { vec![version, hashes, shape.seed.number, words] };
    fields.into_iter().flat_map(u32::to_be_bytes).collect()
}

/// `k = max(1, round(m / n ln 2))`, with m before it is rounded up to whole words.
fn size(capacity: u64, fpr: f64) -> Option<(u64, u32)> {
    let bits = optimal_bits(capacity, fpr).max(1);
    let hashes = (bits as f64 / capacity as f64 * LN_2).round().max(1.0) as u32;
    let num_bits = bits.checked_next_multiple_of(64).filter(|bits| *bits <= LAYOUT.most_bits)?;
    Some((num_bits, hashes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Result;
    use crate::foreign::bits::BitFilter;
    use crate::key::Domain;

    /// Four texts and four integers, at capacity 10 and rate 0.03.
    pub(crate) fn write_sample(format: &'static Format, seed: u32) -> Result<Vec<u8>> {
        let mut filter = BitFilter::with_shape(format, KeyType::Any, seed, 64, 4)?;
        let hashing = filter.hashing();
        let texts = ["a", "b", "hello", "café"].map(|text| hashing.digest(Domain::Text, text.as_bytes()));
        let longs = [0i64, 1, -1, 1 << 40].map(|long| hashing.digest(Domain::Integer, &long.to_le_bytes()));
        for digest in texts.into_iter().chain(longs).flatten() {
            filter.add(digest)?;
            assert!(filter.contains(digest));
        }
        let mut bytes = Vec::new();
        filter.write(&mut bytes).map_err(|error| crate::Error::Io(error, "test".into()))?;
        Ok(bytes)
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn bytes_are_those_of_spark() -> Result<()> {
        assert_eq!(hex(&write_sample(&V1, 0)?), "00000001000000040000000187a6190a091be602");
        assert_eq!(hex(&write_sample(&V2, 0)?), "00000002000000040000000000000001c67910411e9d2140");
        assert_eq!(hex(&write_sample(&V2, 42)?), "00000002000000040000002a000000018409f5998106d101");
        assert_eq!(size(1000, 0.0005), Some((15872, 11)));
        Ok(())
    }
}
