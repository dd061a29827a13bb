//! Filters that answer with more than yes or no: a depth, a label, a value.
//!
//! * [`layered`]: how often a key was added, as the number of layers that hold it;
//! * [`valued`]: cells that are joined in a lattice, the common part of the next two;
//! * [`spatial`]: which of several areas a key is in;
//! * [`compact`]: a value a key, never below the truth.

pub mod compact;
pub mod layered;
pub mod spatial;
pub mod valued;

pub use compact::CompactApproximator;
pub use layered::LayeredBloomFilter;
pub use spatial::SpatialBloomFilter;
pub use valued::Lattice;
