//! Filters that forget: for streams, in bounded memory.
//!
//! * [`generations`]: planes of lines used in rotation, the common part of the next two;
//! * [`aging`]: two generations; the last `capacity` distinct keys are never missed;
//! * [`rolling`]: several generations; less space, and the last `capacity` keys are never missed;
//! * [`plan`]: parameters and sizes of generations; `steps`: the end of a generation of a window of time;
//! * [`stable`]: decaying cells; no such guarantee, but a constant rate.

pub mod aging;
pub mod generations;
pub mod plan;
pub mod rolling;
pub mod stable;
mod steps;

pub use aging::AgingBloomFilter;
pub use rolling::RollingBloomFilter;
pub use stable::StableBloomFilter;
