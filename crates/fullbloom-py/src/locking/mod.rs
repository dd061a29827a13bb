//! One filter and many threads.
//!
//! * [`biased_lock`]: the lock around a filter;
//! * [`slices`]: long batches in slices, between which other threads run and signals are checked;
//! * [`forks`]: forks wait for changes, and a child ignores the locks of its parent;
//! * [`interrupts`]: Ctrl-C inside a callback is raised after it.

pub(crate) mod biased_lock;
pub(crate) mod forks;
pub(crate) mod interrupts;
pub(crate) mod slices;
