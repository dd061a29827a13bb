//! Apache Parquet's split-block filter: a header in Thrift's compact protocol, then blocks of 32 bytes, little-endian.
//!
//! ```text
//! 15 zigzag-varint(bytes)   1c 1c 00 00 (BLOCK)   1c 1c 00 00 (XXHASH)   1c 1c 00 00 (UNCOMPRESSED)   00
//! ```

use super::contents::Contents;
use super::format::{Format, OwnLayout};
use super::head::{Head, Shape};
use super::layout::BitLayout;
use super::order::Order;
use super::tail::Tail;
use crate::foreign::key_type::KeyType;
use crate::foreign::rules::{Rule, Seed};

/// The only algorithm, hash and compression of the specification.
const CHOICES: [u8; 13] = [0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0];
/// The first field, an i32.
const NUM_BYTES: u8 = 0x15;
const BLOCK: u64 = 32;

/// The format.
pub(super) const SPLIT_BLOCK: Format = Format {
    number: 5,
    name: "parquet",
    program: "parquet",
    title: "Apache Parquet split-block filter",
    rule_in_words: "XXH64 in one block of 256 bits",
    key_types: &[KeyType::Bytes, KeyType::Long, KeyType::Int, KeyType::Double, KeyType::Float],
    key_type_name: "key_type",
    contents: Contents::Bits(LAYOUT),
    is_detected: true,
    is_written: true,
    own: Some(OwnLayout { layout: "split", hash: "xxh64" }),
    verified: "filters that pyarrow and DuckDB write; DuckDB's own pruning",
    limits: "-0.0 and NaN are hashed in one form only",
};

const LAYOUT: BitLayout = BitLayout {
    rule: Rule::SplitBlock,
    is_bare: false,
    is_seeded: false,
    bits_step: BLOCK * 8,
    most_bits: (i32::MAX as u64 / BLOCK) * BLOCK * 8,
    most_hashes: 8,
    order: Order::Little,
    parse,
    head,
    tail: Tail::NONE,
    size,
};

fn parse(head: &[u8], len: u64) -> Result<Head, String> {
    let (bytes, head_len) = parse_len(head)?;
    let present = len.saturating_sub(head_len as u64);
    if bytes != present {
        return Err(format!("its numBytes is {bytes}, and {present} bytes follow its header"));
    }
    Ok(Head { len: head_len, num_hashes: 8, seed: Seed::NONE, num_bits: bytes * 8 })
}

/// The bytes of bits that a header states, and its own.
pub(super) fn parse_len(head: &[u8]) -> Result<(u64, usize), String> {
    let Some((&NUM_BYTES, mut rest)) = head.split_first() else {
        return Err("its header does not begin with numBytes".into());
    };
    let (mut value, mut shift) = (0u64, 0);
    loop {
        let Some((&byte, behind)) = rest.split_first().filter(|_| shift < 35) else {
            return Err("its numBytes does not end".into());
        };
        (value, rest) = (value | u64::from(byte & 0x7f) << shift, behind);
        shift += 7;
        if byte & 0x80 == 0 {
            // Written back, the number takes as few bytes as it can.
            if byte == 0 && shift > 7 {
                return Err("its numBytes takes more bytes than it needs".into());
            }
            break;
        }
    }
    if value & 1 == 1 || value > u64::from(u32::MAX) {
        return Err("its numBytes is not a positive i32".into());
    }
    if !rest.starts_with(&CHOICES) {
        return Err("its algorithm, hash or compression is not BLOCK, XXHASH, UNCOMPRESSED".into());
    }
    let (bytes, head_len) = (value / 2, head.len() - rest.len() + CHOICES.len());
    if bytes == 0 || !bytes.is_multiple_of(BLOCK) {
        return Err(format!("its numBytes is {bytes}, not a whole number of blocks"));
    }
    Ok((bytes, head_len))
}

fn head(shape: &Shape) -> Vec<u8> {
    let mut head = vec![NUM_BYTES];
    let mut value = shape.num_bits / 8 * 2;
    while value >= 0x80 {
        head.push(value as u8 | 0x80);
        value >>= 7;
    }
    head.push(value as u8);
    head.extend_from_slice(&CHOICES);
    head
}

/// `-8 / ln(1 - p^(1/8))` bits per key, up to a power of two, as Arrow sizes them.
fn size(capacity: u64, fpr: f64) -> Option<(u64, u32)> {
    let bits = capacity as f64 * -8.0 / (-fpr.powf(0.125)).ln_1p();
    let bits = (bits as u64).checked_next_power_of_two()?.max(BLOCK * 8);
    Some((bits, 8)).filter(|(bits, _)| *bits <= LAYOUT.most_bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Result;
    use crate::foreign::bits::BitFilter;

    #[test]
    fn the_header_is_that_of_the_specification() -> Result<()> {
        let filter = BitFilter::with_shape(&SPLIT_BLOCK, KeyType::Long, 0, 16384 * 8, 8)?;
        let head: String = head(&filter.shape()).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(head, "158080021c1c00001c1c00001c1c000000");
        assert_eq!(size(1 << 20, 0.05), Some((1 << 23, 8)));
        Ok(())
    }

    #[test]
    fn folded_filters_have_the_bits_of_smaller_ones() -> Result<()> {
        let mut large = BitFilter::with_shape(&SPLIT_BLOCK, KeyType::Long, 0, 6 * 256, 8)?;
        let mut small = BitFilter::with_shape(&SPLIT_BLOCK, KeyType::Long, 0, 2 * 256, 8)?;
        for i in 0..20 {
            let digest = [crate::hash::xxh64::xxh64_word(i), 0];
            large.add(digest)?;
            small.add(digest)?;
        }
        assert!(large.fold_to(512)?.equals(&small) && large.fold_to(6 * 256)?.equals(&large));
        assert!(large.fold_to(4 * 256).is_err() && large.fold_to(0).is_err() && large.fold_to(128).is_err());
        Ok(())
    }

    #[test]
    fn lengths_beyond_a_varint_are_refused() {
        let head = [&[NUM_BYTES][..], &[0xff; 12], &CHOICES].concat();
        assert!(parse(&head, u64::MAX).is_err());
        assert!(parse(&[NUM_BYTES, 0x80], 2).is_err());
        assert!(parse(&[], 0).is_err());
    }
}
