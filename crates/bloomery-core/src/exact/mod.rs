//! Structures without false positives, in a closed world.
//!
//! * [`bit_set`]: a bit for each whole number below a bound;
//! * [`cascade`]: two sets told apart by filters of each other's mistakes.

pub mod bit_set;
pub mod cascade;

pub use bit_set::BitSet;
pub use cascade::FilterCascade;
