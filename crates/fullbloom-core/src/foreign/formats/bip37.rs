//! BIP 37, the filters that light clients of Bitcoin send; all numbers little-endian. Three formats, one a flag: what a
//! node adds to the filter when a transaction matches.
//!
//! ```text
//! CompactSize bytes, the bits, u32 k, u32 tweak, u8 flag
//! ```

use std::f64::consts::LN_2;

use super::contents::Contents;
use super::format::Format;
use super::head::{Head, Shape};
use super::layout::BitLayout;
use super::order::Order;
use super::tail::Tail;
use crate::foreign::key_type::KeyType;
use crate::foreign::rules::probes::Probe;
use crate::foreign::rules::{Rule, Seed};

/// The most bytes and hashes that nodes accept.
const MOST_BYTES: u64 = 36_000;
const MOST_HASHES: u32 = 50;
/// Bytes of hashes, tweak and flag.
const TAIL: usize = 9;

/// Bytes that are opened as the first format may have any flag, and are of the format of that flag.
const fn row(number: u16, name: &'static str, title: &'static str, tail: Tail) -> Format {
    Format {
        number,
        name,
        program: "bitcoin",
        title,
        rule_in_words: "k hashes by Murmur3 of 32 bits",
        key_types: &[KeyType::Bytes],
        key_type_name: "key_type",
        contents: Contents::Bits(BitLayout {
            rule: Rule::Probe(Probe::Bip37),
            is_bare: false,
            is_seeded: true,
            bits_step: 8,
            most_bits: MOST_BYTES * 8,
            most_hashes: MOST_HASHES,
            order: Order::Little,
            parse,
            head,
            tail,
            size,
        }),
        is_detected: true,
        is_written: true,
        own: None,
        verified: "published vectors of Bitcoin Core",
        limits: "36,000 bytes and 50 hashes, as in nodes",
    }
}

macro_rules! tail {
    ($flag:literal) => {
        Tail { len: TAIL, finish: |head, tail| finish(head, tail, $flag), write: |shape| tail(shape, $flag) }
    };
}

/// The number of the format with flag 0; the others follow.
const FIRST: u16 = 32;

/// `BLOOM_UPDATE_NONE`, `BLOOM_UPDATE_ALL` and `BLOOM_UPDATE_P2PUBKEY_ONLY`.
pub(super) const NONE: Format = row(FIRST, "bip37", "Bitcoin BIP 37 filter, flag 0", tail!(0));
pub(super) const ALL: Format = row(FIRST + 1, "bip37-all", "Bitcoin BIP 37 filter, flag 1", tail!(1));
pub(super) const P2PUBKEY: Format = row(FIRST + 2, "bip37-p2pubkey", "Bitcoin BIP 37 filter, flag 2", tail!(2));

fn parse(head: &[u8], len: u64) -> Result<Head, String> {
    let (bytes, head_len) = match *head {
        [0xfd, low, high, ..] => (u64::from(u16::from_le_bytes([low, high])), 3),
        [0xfe | 0xff, ..] => return Err("its length is beyond the 36,000 bytes that a filter may have".into()),
        [bytes, ..] => (u64::from(bytes), 1),
        [] => return Err("it ends within its header".into()),
    };
    if head_len == 3 && bytes < 0xfd {
        return Err("its length takes more bytes than it needs".into());
    }
    if bytes == 0 || bytes > MOST_BYTES {
        return Err(format!("its length is {bytes}, not between 1 and {MOST_BYTES}"));
    }
    let (wanted, present) = (bytes + TAIL as u64, len.saturating_sub(head_len as u64));
    if wanted != present {
        return Err(format!("its length is {bytes}, so {wanted} bytes follow it, and there are {present}"));
    }
    Ok(Head { len: head_len, num_hashes: 0, seed: Seed::NONE, num_bits: bytes * 8 })
}

fn head(shape: &Shape) -> Vec<u8> {
    let bytes = shape.num_bits / 8;
    match u8::try_from(bytes) {
        Ok(bytes) if bytes < 0xfd => vec![bytes],
        _ => [&[0xfd][..], &(bytes as u16).to_le_bytes()].concat(),
    }
}

fn finish(head: Head, tail: &[u8], flag: u8) -> Result<(Head, Option<u16>), String> {
    let number = |at: usize| tail[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    let (num_hashes, seed) = (number(0), number(4));
    if !(1..=MOST_HASHES).contains(&num_hashes) {
        return Err(format!("its number of hashes is {num_hashes}, not between 1 and {MOST_HASHES}"));
    }
    let head = Head { num_hashes, seed: Seed::of(seed), ..head };
    match (tail[8], flag) {
        (stated, flag) if stated == flag => Ok((head, None)),
        (1 | 2, 0) => Ok((head, Some(FIRST + u16::from(tail[8])))),
        (stated, 0) => Err(format!("its flag is {stated}, not 0, 1 or 2")),
        (stated, _) => Err(format!("its flag is {stated}, not {flag}")),
    }
}

fn tail(shape: &Shape, flag: u8) -> Vec<u8> {
    [&shape.num_hashes.to_le_bytes()[..], &shape.seed.number.to_le_bytes(), &[flag]].concat()
}

/// As Bitcoin Core, which cuts a filter to the largest; here that is an error.
fn size(capacity: u64, fpr: f64) -> Option<(u64, u32)> {
    let bits = (-1.0 / (LN_2 * LN_2) * capacity as f64 * fpr.ln()) as u64;
    let num_bits = (bits / 8 * 8).max(8);
    let hashes = (num_bits as f64 / capacity as f64 * LN_2) as u32;
    (num_bits <= MOST_BYTES * 8).then_some((num_bits, hashes.clamp(1, MOST_HASHES)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_bitcoin_core() {
        assert_eq!(size(3, 0.01), Some((24, 5)));
        assert_eq!(size(1 << 30, 0.01), None);
    }

    #[test]
    fn lengths_have_one_form() {
        for bytes in [1u64, 252, 253, 36_000] {
            let shape = Shape { seed: Seed::NONE, num_bits: bytes * 8, num_hashes: 1 };
            let head = head(&shape);
            assert_eq!(parse(&head, head.len() as u64 + bytes + 9).map(|head| head.num_bits), Ok(bytes * 8));
        }
        assert!(parse(&[0xfd, 3, 0], 15).is_err() && parse(&[0xfe, 1, 0, 0, 0], 15).is_err());
        assert!(parse(&[0], 10).is_err() && parse(&[], 0).is_err());
    }
}
