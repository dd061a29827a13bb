//! pyprobables: FNV-1a of 64 bits, which begins at its basis + 31 i, mod bits; of a text its characters, not its bytes.

use super::key::Key;
use crate::hash::fnv::Fnv1a;

fn start(i: u32) -> Fnv1a {
    Fnv1a::after(31 * u64::from(i))
}

/// Position `i` of a text.
pub(super) fn of_text(key: Key<'_>, i: u32) -> u64 {
    match str::from_utf8(key.bytes) {
        Ok(text) if !text.is_ascii() => start(i).of_units(text.chars().map(u64::from)) % key.range.num_bits,
        _ => of_bytes(key, i),
    }
}

/// Position `i` of bytes.
pub(super) fn of_bytes(key: Key<'_>, i: u32) -> u64 {
    start(i).of_units(key.bytes.iter().copied().map(u64::from)) % key.range.num_bits
}
