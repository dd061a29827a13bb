//! The counting family: cells of several bits, or memory of where keys met, so that keys can be taken
//! out and counted.
//!
//! * [`shape`]: layouts of counters, their sizes, and the choice among them;
//! * [`spread`]: a key's counters anywhere in the filter (classic);
//! * [`nibbles`]: a key's counters in one cache line (blocked);
//! * [`filter`] holds [`CountingBloomFilter`];
//! * [`variable`]: counters that grow by a different step for each key;
//! * [`dleft`]: fingerprints with counts in the least loaded of d buckets;
//! * [`deletable`]: a Bloom filter that remembers where its keys met;
//! * [`retouched`]: a Bloom filter that trades false positives for false negatives;
//! * [`spectral`]: counts that never fall short, in three modes; [`apart`] holds some of them exactly.

pub mod apart;
pub mod deletable;
pub mod dleft;
pub mod dleft_shape;
pub mod filter;
pub mod nibbles;
pub mod positions;
pub mod retouched;
pub mod shape;
pub mod spectral;
pub mod spread;
pub mod variable;

pub use deletable::DeletableBloomFilter;
pub use dleft::DLeftCountingFilter;
pub use filter::CountingBloomFilter;
pub use retouched::RetouchedBloomFilter;
pub use shape::{Layout, Shape};
pub use spectral::SpectralFilter;
pub use variable::VariableIncrementFilter;
