//! Files of packages for Python, little-endian. A filter of ours has not all that some of them record, so those are read
//! and not written.
//!
//! ```text
//! rbloom          u64 k, the bits
//! fastbloom-rs    the bits, of get_bytes()
//! pybloom-live    f64 rate, u64 k, u64 bits of a slice, u64 capacity, u64 count, the bits
//! pyprobables     the bits, u64 capacity, u64 count, f32 rate
//! ```

use std::f64::consts::LN_2;

use super::format::Format;
use super::frame::Frame;
use super::head::Head;
use super::order::Order;
use super::size::optimal_bits;
use crate::foreign::key_type::KeyType;
use crate::foreign::rules::probes::Probe;
use crate::foreign::rules::{Rule, Seed};

/// 128 GiB of bits; sums of 64 positions stay in 63 bits.
const MOST_BITS: u64 = 1 << 40;
const MOST_HASHES: u32 = 64;
/// Read, not written.
const READ: Frame = Frame { is_written: false, ..Frame::HEAD };

/// rbloom.
pub(super) const RBLOOM: Format = Format {
    number: 36,
    name: "rbloom",
    title: "rbloom Bloom.save",
    rule: Rule::Probe(Probe::Lcg),
    rule_in_words: "a 128-bit generator, which the key's hash starts",
    key_types: &[KeyType::Hash],
    key_type_name: "key_type",
    is_seeded: false,
    bits_step: 8,
    most_bits: MOST_BITS,
    most_hashes: MOST_HASHES,
    order: Order::Little,
    parse: parse_rbloom,
    head: |shape| u64::from(shape.num_hashes).to_le_bytes().to_vec(),
    // Almost any bytes are one.
    frame: Frame { is_detected: false, ..Frame::HEAD },
    size: size_rbloom,
    verified: "files that rbloom 1.5.4 writes, both directions",
    limits: "keys are the integers that the filter's hash_func returns",
};

/// fastbloom-rs.
pub(super) const FASTBLOOM: Format = Format {
    number: 37,
    name: "fastbloom-rs",
    title: "fastbloom-rs BloomFilter.get_bytes",
    rule: Rule::Probe(Probe::Xxh3),
    rule_in_words: "XXH3 with two seeds, start and step",
    key_types: &[KeyType::Any],
    bits_step: 64,
    parse: |_, _| Err("its bytes are the bits alone; say num_bits and num_hashes".into()),
    head: |_| Vec::new(),
    size: size_fastbloom,
    verified: "bytes that fastbloom-rs 0.5.10 writes, both directions",
    limits: "its counting filters are not read",
    ..RBLOOM
};

/// pybloom-live.
pub(super) const PYBLOOM_LIVE: Format = Format {
    number: 38,
    name: "pybloom-live",
    title: "pybloom-live BloomFilter.tofile",
    rule: Rule::Probe(Probe::Slices),
    rule_in_words: "a slice of bits for each number of XXH3 of 128 bits or SHA",
    key_types: &[KeyType::Bytes],
    bits_step: 1,
    parse: parse_pybloom,
    head: |_| Vec::new(),
    frame: READ,
    size: size_pybloom,
    verified: "files that pybloom-live 4.0.0 writes",
    limits: "read only; of keys that are not str, pass str(key); its scalable filters are not read",
    ..RBLOOM
};

/// pyprobables, of texts.
pub(super) const PYPROBABLES: Format = Format {
    number: 39,
    name: "pyprobables",
    title: "pyprobables BloomFilter.export, keys of type str",
    rule: Rule::Probe(Probe::FnvCharacters),
    rule_in_words: "k hashes by FNV-1a of characters",
    key_types: &[KeyType::Bytes],
    bits_step: 1,
    parse: parse_pyprobables,
    head: |_| Vec::new(),
    // Its numbers are at the end.
    frame: Frame { tail: PROBABLES_TAIL, finish: finish_pyprobables, is_detected: false, ..READ },
    size: size_pyprobables,
    verified: "files that pyprobables 0.7.0 writes",
    limits: "read only; the default hash function only",
    ..RBLOOM
};

/// pyprobables, of bytes.
pub(super) const PYPROBABLES_BYTES: Format = Format {
    number: 40,
    name: "pyprobables-bytes",
    title: "pyprobables BloomFilter.export, keys of type bytes",
    rule: Rule::Probe(Probe::FnvBytes),
    rule_in_words: "k hashes by FNV-1a of bytes",
    ..PYPROBABLES
};

const PROBABLES_TAIL: usize = 20;

fn word(bytes: &[u8], at: usize) -> Result<u64, String> {
    let word = bytes.get(at..).and_then(<[u8]>::first_chunk);
    word.map(|word| u64::from_le_bytes(*word)).ok_or_else(|| "it ends within its numbers".into())
}

fn hashes(number: u64) -> Result<u32, String> {
    let fits = u32::try_from(number).ok().filter(|hashes| (1..=MOST_HASHES).contains(hashes));
    fits.ok_or_else(|| format!("its number of hashes is {number}, not between 1 and {MOST_HASHES}"))
}

fn parse_rbloom(head: &[u8], len: u64) -> Result<Head, String> {
    let num_hashes = hashes(word(head, 0)?)?;
    let bytes = len.saturating_sub(8);
    if bytes == 0 {
        return Err("no bits follow its number of hashes".into());
    }
    Ok(Head { len: 8, num_hashes, seed: Seed::NONE, num_bits: bytes.saturating_mul(8) })
}

fn parse_pybloom(head: &[u8], len: u64) -> Result<Head, String> {
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

/// The bits are at most these: [`finish_pyprobables`] knows them.
fn parse_pyprobables(_: &[u8], len: u64) -> Result<Head, String> {
    let bytes = len.saturating_sub(PROBABLES_TAIL as u64);
    if bytes == 0 || bytes > MOST_BITS / 8 {
        return Err(format!("its length is {len}, with {PROBABLES_TAIL} bytes of numbers"));
    }
    Ok(Head { len: 0, num_hashes: 1, seed: Seed::NONE, num_bits: bytes * 8 })
}

fn finish_pyprobables(head: Head, tail: &[u8]) -> Result<(Head, Option<u16>), String> {
    let (capacity, fpr) = (word(tail, 0)?, tail[16..].first_chunk().map_or(0.0, |bytes| f32::from_le_bytes(*bytes)));
    if !(fpr > 0.0 && fpr < 1.0) {
        return Err(format!("its false_positive_rate is {fpr}, not between 0 and 1"));
    }
    let shape = (capacity > 0).then(|| size_pyprobables(capacity, fpr.into())).flatten();
    let (num_bits, num_hashes) = shape.ok_or_else(|| format!("its estimated_elements is {capacity}"))?;
    let (wanted, present) = (num_bits.div_ceil(8), head.num_bits / 8);
    if wanted != present {
        return Err(format!("its {capacity} estimated_elements take {wanted} bytes, and there are {present}"));
    }
    Ok((Head { num_bits, num_hashes, ..head }, None))
}

fn checked(bits: f64, hashes: f64) -> Option<(u64, u32)> {
    let fits = bits <= MOST_BITS as f64 && hashes <= f64::from(MOST_HASHES);
    fits.then_some(((bits as u64).max(1), (hashes as u32).max(1)))
}

fn size_rbloom(capacity: u64, fpr: f64) -> Option<(u64, u32)> {
    let bits = -(capacity as f64) * fpr.ln() / LN_2.powi(2);
    let whole = optimal_bits(capacity, fpr).checked_next_multiple_of(8)?.max(8);
    checked(whole as f64, (bits / capacity as f64 * LN_2).floor())
}

fn size_fastbloom(capacity: u64, fpr: f64) -> Option<(u64, u32)> {
    let bits = (-(capacity as f64) * fpr.ln() / LN_2.powi(2)).ceil() as u64;
    let bits = bits.checked_next_multiple_of(64)?;
    checked(bits as f64, (bits as f64 * LN_2 / capacity as f64).ceil())
}

fn size_pybloom(capacity: u64, fpr: f64) -> Option<(u64, u32)> {
    let slices = ((1.0 / fpr).ln() / LN_2).ceil().max(1.0);
    let slice = (capacity as f64 * fpr.ln().abs() / (slices * LN_2.powi(2))).ceil();
    checked(slices * slice, slices)
}

fn size_pyprobables(capacity: u64, fpr: f64) -> Option<(u64, u32)> {
    /// The package's own constants.
    const LN_2_SQUARED: f64 = 0.480_453_013_918_2;
    let fpr = f64::from(fpr as f32);
    let bits = (-(capacity as f64) * fpr.ln() / LN_2_SQUARED).ceil();
    // Python rounds halves to the even number.
    let hashes = (LN_2 * bits / capacity as f64).round_ties_even();
    if hashes < 1.0 {
        return None;
    }
    checked(bits, hashes)
}
