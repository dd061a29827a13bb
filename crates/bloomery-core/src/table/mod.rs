//! Tables of fingerprints: a key is stored as some bits of its hash, so that it can be taken out
//! again.
//!
//! * [`quotient`]: fingerprints in sorted runs, found by rank and select.

pub mod quotient;

pub use quotient::QuotientFilter;
