//! Hash functions, each pinned by vectors of its own specification.
//!
//! Only published, frozen functions may be used for anything that reaches a file.

pub mod siphash;
pub mod splitmix;
pub mod xxh3;
