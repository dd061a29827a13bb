//! The counting family: cells of several bits, so that keys can be taken out and counted.
//!
//! * [`shape`]: layouts, their sizes, and the choice among them;
//! * [`spread`]: a key's cells anywhere in the filter (classic);
//! * [`nibbles`]: a key's counters in one cache line (blocked);
//! * [`filter`] holds [`CountingBloomFilter`].

pub mod filter;
pub mod nibbles;
pub mod shape;
pub mod spread;

pub use filter::CountingBloomFilter;
pub use shape::{Layout, Shape};
