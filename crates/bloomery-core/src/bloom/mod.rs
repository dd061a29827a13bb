//! The classic family: one bit array, four layouts, and the chain that grows.
//!
//! * [`shape`]: layouts and schemes by name, their sizes, and the choice among them;
//! * [`kernel`]: from layout and scheme to the loops that touch bits;
//! * [`filter`] holds [`BloomFilter`];
//! * [`algebra`]: union, intersection, subset and the estimates made from two filters;
//! * [`in_place`]: the file of a filter that is written in place;
//! * [`retouched`]: a Bloom filter that trades false positives for false negatives.

pub mod algebra;
pub mod filter;
pub mod in_place;
pub mod kernel;
pub mod retouched;
pub mod shape;

pub use filter::BloomFilter;
pub use retouched::RetouchedBloomFilter;
pub use shape::{Layout, Scheme, Shape};
