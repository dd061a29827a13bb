//! pybloom-live: f64 rate, u64 k, u64 bits of a slice, u64 capacity, u64 count, the bits; little-endian. A filter of ours has
//! no count, so such files are read and not written.

use std::f64::consts::LN_2;

use super::contents::Contents;
use super::format::Format;
use super::head::Head;
use super::layout::BitLayout;
use super::numbers::{MOST_BITS, MOST_HASHES, check_shape, hashes, word};
use super::order::Order;
use super::tail::Tail;
use crate::foreign::key_type::KeyType;
use crate::foreign::rules::probes::Probe;
use crate::foreign::rules::{Rule, Seed};

/// The format.
pub(super) const PYBLOOM_LIVE: Format = Format {
    number: 38,
    name: "pybloom-live",
    program: "pybloom-live",
    title: "pybloom-live BloomFilter.tofile",
    rule_in_words: "a slice of bits for each number of XXH3 of 128 bits or SHA",
    key_types: &[KeyType::Bytes],
    key_type_name: "key_type",
    contents: Contents::Bits(BitLayout {
        rule: Rule::Probe(Probe::PybloomLive),
        is_bare: false,
        is_seeded: false,
        bits_step: 1,
        most_bits: MOST_BITS,
        most_hashes: MOST_HASHES,
        order: Order::Little,
        parse,
        head: |_| Vec::new(),
        tail: Tail::NONE,
        size,
    }),
    is_detected: true,
    is_written: false,
    own: None,
    verified: "files that pybloom-live 4.0.0 writes",
    limits: "read only; of keys that are not str, pass str(key); its scalable filters are not read",
};

fn parse(head: &[u8], len: u64) -> Result<Head, String> {
    const HEAD: u64 = 40;
    let fpr = f64::from_bits(word(head, 0)?);
    if !(fpr > 0.0 && fpr < 1.0) {
        return Err(format!("its error_rate is {fpr}, not between 0 and 1"));
    }
    let (num_hashes, slice) = (hashes(word(head, 8)?)?, word(head, 16)?);
    let bits = slice.checked_mul(num_hashes.into()).filter(|bits| (1..=MOST_BITS).contains(bits));
    let num_bits = bits.ok_or_else(|| format!("its bits_per_slice is {slice}"))?;
    let (wanted, present) = (num_bits.div_ceil(8), len.saturating_sub(HEAD));
    if len < HEAD || wanted != present {
        return Err(format!(
            "its {num_hashes} slices of {slice} bits take {wanted} bytes, and {present} follow its header"
        ));
    }
    Ok(Head { len: HEAD as usize, num_hashes, seed: Seed::NONE, num_bits })
}

fn size(capacity: u64, fpr: f64) -> Option<(u64, u32)> {
    let slices = ((1.0 / fpr).ln() / LN_2).ceil().max(1.0);
    let slice = (capacity as f64 * fpr.ln().abs() / (slices * LN_2.powi(2))).ceil();
    check_shape(slices * slice, slices)
}
