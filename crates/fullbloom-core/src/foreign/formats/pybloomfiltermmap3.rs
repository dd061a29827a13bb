//! Files of pybloomfiltermmap3, which maps them into memory: a structure of C as a machine of 64 bits lays it out,
//! little-endian. Its pointer means nothing to another process.
//!
//! ```text
//!    0  "MBITARRAY", u64 bits, i32 1200: bytes of the structure
//!   21  u64 capacity, f64 rate, u32 k, u32 seeds[256]
//! 1069  pointer, u8 1: version, u8, u64 count, u32 reserved[32]
//! 1280  the bits
//! ```

use std::f64::consts::LN_2;

use super::contents::Contents;
use super::format::Format;
use super::head::Head;
use super::layout::BitLayout;
use super::order::Order;
use super::tail::Tail;
use crate::foreign::key_type::KeyType;
use crate::foreign::rules::probes::Probe;
use crate::foreign::rules::{Rule, Seed};

/// Its format.
pub(super) const MAPPED: Format = Format {
    number: 41,
    name: "pybloomfiltermmap3",
    program: "pybloomfiltermmap3",
    title: "pybloomfiltermmap3 BloomFilter",
    rule_in_words: "Murmur3 x64_128 with a seed for each hash, both halves in one",
    key_types: &[KeyType::Bytes],
    key_type_name: "key_type",
    contents: Contents::Bits(LAYOUT),
    is_detected: true,
    is_written: false,
    own: None,
    verified: "files that pybloomfiltermmap3 0.6.3 writes",
    limits: "read only; keys that are neither str nor bytes, more than 32 hashes and to_base64() are not supported",
};

const LAYOUT: BitLayout = BitLayout {
    rule: Rule::Probe(Probe::Pybloomfiltermmap3),
    is_bare: false,
    is_seeded: true,
    bits_step: 8,
    most_bits: 1 << 40,
    most_hashes: Seed::MOST as u32,
    order: Order::Little,
    parse,
    head: |_| Vec::new(),
    tail: Tail::NONE,
    size,
};

const MAGIC: &[u8] = b"MBITARRAY";
/// Bytes of the structure.
const STRUCTURE: u64 = 1200;
const HEAD: usize = 1280;
/// Where the fields are.
const BITS_AT: usize = 9;
const STRUCTURE_AT: usize = 17;
const HASHES_AT: usize = 37;
const SEEDS_AT: usize = 41;
const VERSION_AT: usize = 1077;

fn number(head: &[u8], at: usize, len: usize) -> Result<u64, String> {
    let bytes = head.get(at..at + len).ok_or("it ends within its header")?;
    Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn parse(head: &[u8], len: u64) -> Result<Head, String> {
    if !head.starts_with(MAGIC) {
        return Err("it does not begin with MBITARRAY".into());
    }
    let structure = number(head, STRUCTURE_AT, 4)?;
    if structure != STRUCTURE {
        return Err(format!("its header has {structure} bytes, not {STRUCTURE}"));
    }
    let version = number(head, VERSION_AT, 1)?;
    if version != 1 {
        return Err(format!("its version is {version}, not 1"));
    }
    let hashes = number(head, HASHES_AT, 4)?;
    let fits = u32::try_from(hashes).ok().filter(|hashes| (1..=LAYOUT.most_hashes).contains(hashes));
    let num_hashes = fits.ok_or_else(|| format!("its number of hashes is {hashes}, not between 1 and 32"))?;
    let num_bits = number(head, BITS_AT, 8)?;
    if num_bits == 0 || num_bits > LAYOUT.most_bits || !num_bits.is_multiple_of(8) {
        return Err(format!("its number of bits is {num_bits}"));
    }
    let (wanted, present) = (num_bits / 8, len.saturating_sub(HEAD as u64));
    if len < HEAD as u64 || wanted != present {
        return Err(format!("its {num_bits} bits take {wanted} bytes, and {present} follow its header"));
    }
    let mut seed = Seed::NONE;
    for (i, each) in seed.each.iter_mut().enumerate().take(num_hashes as usize) {
        *each = number(head, SEEDS_AT + 4 * i, 4)? as u32;
    }
    Ok(Head { len: HEAD, num_hashes, seed, num_bits })
}

fn size(capacity: u64, fpr: f64) -> Option<(u64, u32)> {
    let hashes = (1.0 / fpr).log2().floor().max(1.0);
    let per_hash = (capacity as f64 * fpr.ln().abs() / (hashes * LN_2.powi(2))).ceil();
    let bits = ((hashes * per_hash / 8.0).ceil() * 8.0).max(128.0);
    (bits <= LAYOUT.most_bits as f64).then_some((bits as u64, hashes as u32))
}
