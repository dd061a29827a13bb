//! pyprobables: the bits, u64 capacity, u64 count, f32 rate; little-endian. A filter of ours has no count, so such files are
//! read and not written.

use std::f64::consts::LN_2;

use super::contents::Contents;
use super::format::Format;
use super::head::Head;
use super::layout::BitLayout;
use super::numbers::{MOST_BITS, MOST_HASHES, check_shape, word};
use super::order::Order;
use super::tail::Tail;
use crate::foreign::key_type::KeyType;
use crate::foreign::rules::probes::Probe;
use crate::foreign::rules::{Rule, Seed};

/// Of texts.
pub(super) const TEXTS: Format = Format {
    number: 39,
    name: "pyprobables",
    program: "pyprobables",
    title: "pyprobables BloomFilter.export, keys of type str",
    rule_in_words: "k hashes by FNV-1a of characters",
    key_types: &[KeyType::Bytes],
    key_type_name: "key_type",
    contents: Contents::Bits(LAYOUT),
    // Its numbers are at the end.
    is_detected: false,
    is_written: false,
    own: None,
    verified: "files that pyprobables 0.7.0 writes",
    limits: "read only; the default hash function only",
};

/// Of bytes.
pub(super) const BYTES: Format = Format {
    number: 40,
    name: "pyprobables-bytes",
    title: "pyprobables BloomFilter.export, keys of type bytes",
    rule_in_words: "k hashes by FNV-1a of bytes",
    contents: Contents::Bits(BitLayout { rule: Rule::Probe(Probe::PyprobablesBytes), ..LAYOUT }),
    ..TEXTS
};

const LAYOUT: BitLayout = BitLayout {
    rule: Rule::Probe(Probe::Pyprobables),
    is_bare: false,
    is_seeded: false,
    bits_step: 1,
    most_bits: MOST_BITS,
    most_hashes: MOST_HASHES,
    order: Order::Little,
    parse,
    head: |_| Vec::new(),
    tail: Tail { len: TAIL, finish, ..Tail::NONE },
    size,
};

const TAIL: usize = 20;

/// The bits are at most these: [`finish`] knows them.
fn parse(_: &[u8], len: u64) -> Result<Head, String> {
    let bytes = len.saturating_sub(TAIL as u64);
    if bytes == 0 || bytes > MOST_BITS / 8 {
        return Err(format!("its length is {len}, with {TAIL} bytes of numbers"));
    }
    Ok(Head { len: 0, num_hashes: 1, seed: Seed::NONE, num_bits: bytes * 8 })
}

fn finish(head: Head, tail: &[u8]) -> Result<(Head, Option<u16>), String> {
    let (capacity, fpr) = (word(tail, 0)?, tail[16..].first_chunk().map_or(0.0, |bytes| f32::from_le_bytes(*bytes)));
    if !(fpr > 0.0 && fpr < 1.0) {
        return Err(format!("its false_positive_rate is {fpr}, not between 0 and 1"));
    }
    let shape = (capacity > 0).then(|| size(capacity, fpr.into())).flatten();
    let (num_bits, num_hashes) = shape.ok_or_else(|| format!("its estimated_elements is {capacity}"))?;
    let (wanted, present) = (num_bits.div_ceil(8), head.num_bits / 8);
    if wanted != present {
        return Err(format!("its {capacity} estimated_elements take {wanted} bytes, and there are {present}"));
    }
    Ok((Head { num_bits, num_hashes, ..head }, None))
}

fn size(capacity: u64, fpr: f64) -> Option<(u64, u32)> {
    /// The package's own constants.
    const LN_2_SQUARED: f64 = 0.480_453_013_918_2;
    let fpr = f64::from(fpr as f32);
    let bits = (-(capacity as f64) * fpr.ln() / LN_2_SQUARED).ceil();
    // Python rounds halves to the even number.
    let hashes = (LN_2 * bits / capacity as f64).round_ties_even();
    if hashes < 1.0 {
        return None;
    }
    check_shape(bits, hashes)
}
