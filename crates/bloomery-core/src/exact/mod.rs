//! Structures without false positives, in a closed world.
//!
//! * [`bit_set`]: a bit for each whole number below a bound.

pub mod bit_set;

pub use bit_set::BitSet;
