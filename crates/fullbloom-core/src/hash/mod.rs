//! Hash functions, each pinned by vectors of its own specification.
//!
//! Only published, frozen functions may be used for anything that reaches a file.

pub mod fnv;
pub mod keccak;
pub mod murmur3;
pub mod murmur3_spark;
pub mod murmur64a;
pub mod siphash;
pub mod splitmix;
pub mod xxh3;
pub mod xxh64;
