//! The dumps of `xor_singleheader`, and of its Python package pyfusefilter: see
//! [`fingerprints`](crate::foreign::fingerprints).

use super::contents::Contents;
use super::format::Format;
use crate::foreign::fingerprints::{Family, FingerprintLayout};
use crate::foreign::key_type::KeyType;

const fn xor(width: u32) -> Contents {
    Contents::Fingerprints(FingerprintLayout { family: Family::Xor, width, tail: 0 })
}

const fn fuse(width: u32, tail: usize) -> Contents {
    Contents::Fingerprints(FingerprintLayout { family: Family::Fuse, width, tail })
}

/// Xor filters of 8 bits.
pub(super) const XOR8: Format = Format {
    number: 44,
    name: "xor8",
    program: "xor_singleheader",
    title: "xor_singleheader xor8, pyfusefilter Xor8",
    rule_in_words: "Murmur3's finalizer of key and seed, three cells in three blocks",
    key_types: &[KeyType::Printed, KeyType::Word],
    key_type_name: "key_type",
    contents: xor(8),
    is_detected: true,
    is_written: true,
    own: None,
    verified: "both directions against pyfusefilter 1.3",
    limits: "static: nothing can be added; seed and cells are ours, pyfusefilter's depend on fresh memory",
};

/// Xor filters of 16 bits.
pub(super) const XOR16: Format = Format {
    number: 45,
    name: "xor16",
    title: "xor_singleheader xor16, pyfusefilter Xor16",
    contents: xor(16),
    ..XOR8
};

/// Binary fuse filters of 8 bits.
pub(super) const FUSE8: Format = Format {
    number: 46,
    name: "fuse8",
    title: "xor_singleheader binary_fuse8, pyfusefilter Fuse8",
    rule_in_words: "Murmur3's finalizer of key and seed, three cells in three neighbouring segments",
    contents: fuse(8, 0),
    limits: "static: nothing can be added; packed dumps (binary_fuse8_pack) are not read",
    ..XOR8
};

/// Binary fuse filters of 16 bits. The program counts four bytes behind the cells, which it never writes.
pub(super) const FUSE16: Format = Format {
    number: 47,
    name: "fuse16",
    title: "xor_singleheader binary_fuse16, pyfusefilter Fuse16",
    contents: fuse(16, 4),
    limits: "static: nothing can be added; packed dumps (binary_fuse16_pack) are not read",
    ..FUSE8
};
