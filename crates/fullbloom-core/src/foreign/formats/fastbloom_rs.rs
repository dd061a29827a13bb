//! fastbloom-rs: the bits, as `get_bytes()` returns them.

use std::f64::consts::LN_2;

use super::contents::Contents;
use super::format::Format;
use super::layout::BitLayout;
use super::numbers::{MOST_BITS, MOST_HASHES, check_shape};
use super::order::Order;
use super::tail::Tail;
use crate::foreign::key_type::KeyType;
use crate::foreign::rules::Rule;
use crate::foreign::rules::probes::Probe;

/// The format.
pub(super) const FASTBLOOM: Format = Format {
    number: 37,
    name: "fastbloom-rs",
    program: "fastbloom-rs",
    title: "fastbloom-rs BloomFilter.get_bytes",
    rule_in_words: "XXH3 with two seeds, start and step",
    key_types: &[KeyType::Any],
    key_type_name: "key_type",
    contents: Contents::Bits(BitLayout {
        rule: Rule::Probe(Probe::FastbloomRs),
        is_bare: true,
        is_seeded: false,
        bits_step: 64,
        most_bits: MOST_BITS,
        most_hashes: MOST_HASHES,
        order: Order::Little,
        parse: BitLayout::BARE,
        head: |_| Vec::new(),
        tail: Tail::NONE,
        size,
    }),
    is_detected: false,
    is_written: true,
    own: None,
    verified: "bytes that fastbloom-rs 0.5.10 writes, both directions",
    limits: "its counting filters are not read",
};

fn size(capacity: u64, fpr: f64) -> Option<(u64, u32)> {
    let bits = (-(capacity as f64) * fpr.ln() / LN_2.powi(2)).ceil() as u64;
    let bits = bits.checked_next_multiple_of(64)?;
    check_shape(bits as f64, (bits as f64 * LN_2 / capacity as f64).ceil())
}
