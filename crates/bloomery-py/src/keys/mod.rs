//! Keys from Python: one at a time, from lists and iterables, from buffers and Arrow columns.
//!
//! Every path ends in [`bloomery_core::key::KeyHasher`], so all agree on every key.

pub(crate) mod batch;
pub(crate) mod buffer;
pub(crate) mod column;
pub(crate) mod ready;
pub(crate) mod scalar;
