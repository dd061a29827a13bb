//! Structures made of filters of one kind: stages, opened as keys are added, and levels.
//!
//! * [`scalable`]: stages that double, at tightened rates, of any structure that can be one;
//! * [`dynamic_cuckoo`]: stages of one shape, so that a key can be removed from any;
//! * [`cascade`]: levels of each other's false positives, which separate two sets in a closed world;
//! * [`kinds`]: the structures that can be stages, from the registry;
//! * [`stages`]: the common part of chains: their stages, totals, file, and a batch of lookups stage by stage.

pub mod cascade;
pub mod dynamic_cuckoo;
pub mod kinds;
pub mod scalable;
pub mod stages;

pub use cascade::FilterCascade;
pub use dynamic_cuckoo::DynamicCuckooFilter;
pub use kinds::Kind;
pub use scalable::ScalableBloomFilter;
