//! Structures without false positives, in a closed world.
//!
//! * [`bit_set`]: a bit for each whole number below a bound;
//! * [`cascade`]: two sets told apart by filters of each other's mistakes;
//! * [`zone`]: rests of whole numbers, which tell a few members from all other numbers.

pub mod bit_set;
pub mod cascade;
pub mod zone;

pub use bit_set::BitSet;
pub use cascade::FilterCascade;
pub use zone::ZoneFilter;
