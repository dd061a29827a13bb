//! Structures without false positives, in a closed world.
//!
//! * [`bit_set`]: a bit for each integer below a bound;
//! * [`zone`]: remainders of integers, which distinguish a few members from all other numbers.

pub mod bit_set;
pub mod zone;

pub use bit_set::BitSet;
pub use zone::ZoneFilter;
