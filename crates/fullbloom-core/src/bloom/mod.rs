//! Bloom filters: one bit array in five layouts, and one that gives up keys for fewer false positives.
//!
//! * [`layout`]: where the bits of a key may lie;
//! * [`shape`]: layouts and schemes by name, their sizes, and the choice among them;
//! * [`kernel`]: from layout and scheme to the loops that touch bits;
//! * [`filter`]: [`BloomFilter`]; `adding`: insertion of keys;
//! * [`algebra`]: union, intersection, subset and estimates from two filters;
//! * [`surplus`]: the bits of an intersection that no key has set;
//! * [`in_place`]: the file of a filter that is written in place;
//! * [`retouched`]: a Bloom filter that trades false positives for false negatives.

mod adding;
pub mod algebra;
pub mod filter;
pub mod in_place;
pub mod kernel;
pub mod layout;
pub mod retouched;
pub mod shape;
pub mod surplus;

pub use filter::BloomFilter;
pub use retouched::RetouchedBloomFilter;
pub use shape::{BaseHash, Layout, Scheme, Shape, with_base_hash};
