//! Filters that forget: what a stream needs whose memory may not grow with it.
//!
//! * [`generations`]: planes of lines that take turns, the common part of the next two;
//! * [`aging`]: two generations; the last `capacity` distinct keys are never missed;
//! * [`rolling`]: several generations; less space, and the last `capacity` keys are never missed;
//! * [`plan`]: what generations are made from; `steps`: when a generation of a window of time ends;
//! * [`stable`]: decaying cells; no such promise, a constant rate for ever.

pub mod aging;
pub mod generations;
pub mod plan;
pub mod rolling;
pub mod stable;
mod steps;

pub use aging::AgingBloomFilter;
pub use rolling::RollingBloomFilter;
pub use stable::StableBloomFilter;
