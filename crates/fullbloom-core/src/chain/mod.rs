//! Structures made of filters of one kind: stages, opened as keys come, and levels.
//!
//! * [`scalable`]: stages that double, at tightened rates, of any structure that can be one;
//! * [`dynamic_cuckoo`]: stages of one shape, so that a key can be taken out of any;
//! * [`cascade`]: levels of each other's mistakes, which tell two sets apart in a closed world;
//! * [`kinds`]: the structures that can be stages, from the registry;
//! * [`stages`]: what chains of stages have: stages, their numbers together, their file, and a batch of lookups stage by stage.

pub mod cascade;
pub mod dynamic_cuckoo;
pub mod kinds;
pub mod scalable;
pub mod stages;

pub use cascade::FilterCascade;
pub use dynamic_cuckoo::DynamicCuckooFilter;
pub use kinds::Kind;
pub use scalable::ScalableBloomFilter;
