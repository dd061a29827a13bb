//! Bit storage: the memory of a filter, owned or mapped.
//!
//! [`memory`] owns or maps the bytes; [`bits`] counts and combines them; [`packed`] reads and writes cells of several
//! bits. Bits are LSB-first in little-endian 64-bit words, so that byte `i >> 3`, mask `1 << (i & 7)` is bit `i`
//! everywhere.

pub mod allocation;
pub mod bits;
pub mod memory;
pub mod packed;

pub use memory::Memory;
pub use packed::PackedCells;

/// Bytes of a cache line; every filter's payload starts on such a boundary, in memory and in files.
pub const LINE_BYTES: usize = 64;
/// 64-bit words of a cache line.
pub const LINE_WORDS: usize = LINE_BYTES / 8;
