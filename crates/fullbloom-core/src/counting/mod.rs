//! The counting family: cells of several bits, or flags where keys met, so that keys can be removed and counted.
//!
//! * [`filter`]: [`CountingBloomFilter`]; [`shape`]: its layouts and sizes;
//! * `algebra`: operations on two of them;
//! * [`spread`]: a key's counters anywhere in the filter (classic);
//! * [`nibbles`]: a key's counters in one cache line (blocked);
//! * [`variable_increment`]: counters that grow by a different step for each key;
//! * [`spectral`]: counts that are never too low, in three modes;
//! * [`deletable`]: a Bloom filter that remembers where its keys met.

mod algebra;
pub mod deletable;
pub mod filter;
pub mod nibbles;
pub mod shape;
pub mod spectral;
pub mod spread;
#[cfg(test)]
mod tests;
pub mod variable_increment;

pub use deletable::DeletableBloomFilter;
pub use filter::CountingBloomFilter;
pub use shape::{Layout, Shape};
pub use spectral::{Mode, SpectralBloomFilter};
pub use variable_increment::VariableIncrementFilter;
