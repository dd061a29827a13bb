//! Keys from Python: one at a time, from lists and iterables, from buffers and Arrow columns.
//!
//! Every path ends in [`fullbloom_core::key::KeyHasher`], so all agree on every key.

pub(crate) mod batch;
pub(crate) mod buffer;
pub(crate) mod column;
mod decimals;
mod encoding;
mod filters;
mod frames;
mod listed;
mod moments;
mod parts;
pub(crate) mod queries;
pub(crate) mod ready;
mod refusal;
pub(crate) mod scalar;
mod sink;
pub(crate) mod ticks;
mod wide_text;
