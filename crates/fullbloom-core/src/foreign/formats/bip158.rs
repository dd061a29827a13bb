//! BIP 158, the compact filters of Bitcoin's blocks: see [`golomb`](crate::foreign::golomb).

use super::contents::Contents;
use super::format::Format;
use crate::foreign::key_type::KeyType;

/// The format.
pub(super) const BLOCK: Format = Format {
    number: 42,
    name: "bip158",
    program: "bitcoin",
    title: "Bitcoin BIP 158 basic block filter",
    rule_in_words: "SipHash-2-4, keyed with the hash of the block, in a Golomb-Rice coded set",
    key_types: &[KeyType::Bytes],
    key_type_name: "key_type",
    contents: Contents::GolombSet,
    // A set of no keys is one byte.
    is_detected: false,
    is_written: true,
    own: None,
    verified: "the ten published blocks of the BIP, byte for byte in both directions",
    limits: "static: nothing can be added; block_hash= is required, the bytes do not contain it",
};
