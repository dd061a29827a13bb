//! Tables of fingerprints: structures that store a short image of each key rather than bits of a common pool, so that
//! most of them support removal.
//!
//! * [`cuckoo`]: two buckets per key, with moves to make space;
//! * [`d_left`]: fingerprints with counts in the least loaded of d buckets;
//! * [`quotient`]: fingerprints in sorted runs, found by rank and select;
//! * [`prefix`]: one bin a key, which keeps the smallest fingerprints.

pub mod cuckoo;
pub mod d_left;
pub mod prefix;
pub mod quotient;

pub use cuckoo::{CuckooFilter, CuckooShape};
pub use d_left::DLeftCountingFilter;
pub use prefix::PrefixFilter;
pub use quotient::QuotientFilter;
