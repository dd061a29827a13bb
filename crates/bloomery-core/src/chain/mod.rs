//! Chains of filters that grow with their keys: stages of one kind, opened as keys come.
//!
//! * [`scalable`]: stages that double, at tightened rates, of any structure that can be one;
//! * [`dynamic_cuckoo`]: stages of one shape, so that a key can be taken out of any;
//! * [`kinds`]: the structures that can be stages, from the registry;
//! * [`stages`]: what both have: stages, their numbers together, their file;
//! * [`asking`]: a batch stage by stage.

pub mod asking;
pub mod dynamic_cuckoo;
pub mod kinds;
pub mod scalable;
pub mod stages;

pub use dynamic_cuckoo::DynamicCuckooFilter;
pub use kinds::Kind;
pub use scalable::ScalableBloomFilter;
