//! The classic family: one bit array, four layouts, and the chain that grows.
//!
//! * [`shape`]: layouts, their sizes, and the choice among them;
//! * [`kernel`]: from layout and scheme to the loops that touch bits;
//! * [`filter`] holds [`BloomFilter`];
//! * [`algebra`]: union, intersection, subset and the estimates made from two filters;
//! * [`stored`]: to and from the container;
//! * [`retouched`]: a Bloom filter that trades false positives for false negatives.

pub mod algebra;
pub mod filter;
pub mod kernel;
pub mod retouched;
pub mod shape;
pub mod stored;

pub use filter::BloomFilter;
pub use retouched::RetouchedBloomFilter;
pub use shape::{Layout, Shape};
