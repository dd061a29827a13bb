//! rbloom: u64 k, the bits; little-endian.

use std::f64::consts::LN_2;

use super::contents::Contents;
use super::format::Format;
use super::head::Head;
use super::layout::BitLayout;
use super::numbers::{MOST_BITS, MOST_HASHES, check_shape, hashes, word};
use super::order::Order;
use super::size::optimal_bits;
use super::tail::Tail;
use crate::foreign::key_type::KeyType;
use crate::foreign::rules::probes::Probe;
use crate::foreign::rules::{Rule, Seed};

/// The format.
pub(super) const RBLOOM: Format = Format {
    number: 36,
    name: "rbloom",
    program: "rbloom",
    title: "rbloom Bloom.save",
    rule_in_words: "a 128-bit generator, which the key's hash starts",
    key_types: &[KeyType::Hash],
    key_type_name: "key_type",
    contents: Contents::Bits(BitLayout {
        rule: Rule::Probe(Probe::Rbloom),
        is_bare: false,
        is_seeded: false,
        bits_step: 8,
        most_bits: MOST_BITS,
        most_hashes: MOST_HASHES,
        order: Order::Little,
        parse,
        head: |shape| u64::from(shape.num_hashes).to_le_bytes().to_vec(),
        tail: Tail::NONE,
        size,
    }),
    // Almost any bytes are one.
    is_detected: false,
    is_written: true,
    own: None,
    verified: "files that rbloom 1.5.4 writes, both directions",
    limits: "keys are the integers that the filter's hash_func returns",
};

fn parse(head: &[u8], len: u64) -> Result<Head, String> {
    let num_hashes = hashes(word(head, 0)?)?;
    let bytes = len.saturating_sub(8);
    if bytes == 0 {
        return Err("no bits follow its number of hashes".into());
    }
    Ok(Head { len: 8, num_hashes, seed: Seed::NONE, num_bits: bytes.saturating_mul(8) })
}

fn size(capacity: u64, fpr: f64) -> Option<(u64, u32)> {
    let bits = -(capacity as f64) * fpr.ln() / LN_2.powi(2);
    let whole = optimal_bits(capacity, fpr).checked_next_multiple_of(8)?.max(8);
    check_shape(whole as f64, (bits / capacity as f64 * LN_2).floor())
}
