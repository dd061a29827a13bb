//! Filters whose cells a server holds: keys to commands, replies to answers in the caller's kind. What sends and receives
//! the bytes is Python.
//!
//! * [`class`]: the shape and the hash of a filter; [`cells`]: what it can do;
//! * [`keys`]: the hashes of many keys, and their answers as they come;
//! * [`exchange`]: commands for one server, and their replies; [`text`]: a short string read along with them;
//! * [`counters`], [`counted`]: the same of a counting filter.

mod cells;
mod class;
mod counted;
mod counters;
mod exchange;
mod keys;
mod text;

pub(crate) use class::WireCells;
pub(crate) use counted::{WireCounterBatch, WireCounterKeys};
pub(crate) use counters::WireCounters;
pub(crate) use exchange::WireExchange;
pub(crate) use keys::{WireBatch, WireKeys};
pub(crate) use text::WireText;
