//! Ethereum's logs bloom: 256 bytes, one big-endian number, in every block header and receipt.

use super::contents::Contents;
use super::format::Format;
use super::head::Head;
use super::layout::BitLayout;
use super::order::Order;
use super::tail::Tail;
use crate::foreign::key_type::KeyType;
use crate::foreign::rules::probes::Probe;
use crate::foreign::rules::{Rule, Seed};

const BITS: u64 = 2048;

/// The format.
pub(super) const LOGS_BLOOM: Format = Format {
    number: 35,
    name: "ethereum",
    program: "ethereum",
    title: "Ethereum logs bloom",
    rule_in_words: "three pairs of bytes of Keccak-256",
    key_types: &[KeyType::Bytes],
    key_type_name: "key_type",
    contents: Contents::Bits(BitLayout {
        rule: Rule::Probe(Probe::Ethereum),
        is_bare: false,
        is_seeded: false,
        bits_step: BITS,
        most_bits: BITS,
        most_hashes: 3,
        order: Order::Little,
        parse,
        head: |_| Vec::new(),
        tail: Tail::NONE,
        size: |_, _| Some((BITS, 3)),
    }),
    // Any 256 bytes are one.
    is_detected: false,
    is_written: true,
    own: None,
    verified: "the published vector of go-ethereum",
    limits: "always 2,048 bits and three hashes, so no rate is kept",
};

fn parse(_: &[u8], len: u64) -> Result<Head, String> {
    if len != BITS / 8 {
        return Err(format!("its length is {len}, not 256"));
    }
    Ok(Head { len: 0, num_hashes: 3, seed: Seed::NONE, num_bits: BITS })
}
