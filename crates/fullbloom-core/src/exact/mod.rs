//! Structures without false positives, in a closed world.
//!
//! * [`bit_set`]: a bit for each whole number below a bound;
//! * [`zone`]: rests of whole numbers, which tell a few members from all other numbers.

pub mod bit_set;
pub mod zone;

pub use bit_set::BitSet;
pub use zone::ZoneFilter;
