//! Filters whose cells a server holds: keys to commands, replies to results in the same container type as the keys. Python
//! code sends and receives the bytes.
//!
//! * [`cells`]: what a filter can do; [`keys`]: the hashes of many keys, and their results as they arrive;
//! * [`exchange`]: commands for one server and their replies, and a short string that is read with them;
//! * [`counters`], [`counted`]: the same for a counting filter.

use std::sync::Arc;

use fullbloom_core::wire::Cells;
use pyo3::prelude::*;

mod cells;
mod counted;
mod counters;
mod exchange;
mod keys;

pub(crate) use counted::{WireCounterBatch, WireCounterKeys};
pub(crate) use counters::WireCounters;
pub(crate) use exchange::{WireExchange, WireText};
pub(crate) use keys::{WireBatch, WireKeys};

/// The cells of a plain filter as strings of a server, in shards.
#[pyclass(frozen, module = "fullbloom._core")]
pub(crate) struct WireCells {
    core: Arc<Cells>,
}

/// The arguments of all methods.
mod arguments {
    crate::parameters::readers!(
        adding: "bool"; all: "bool"; always: "bool"; asking: "bool"; capacity: "int"; counter_bits: "int"; hash: "str"; layout: "str";
        native: "bool"; num_bits: "int"; num_counters: "int"; num_hashes: "int"; scheme: "str | None"; shards: "int"; strict: "bool";
    );

    /// Readers of whole numbers from 0 on.
    macro_rules! from_zero {
        ($($name:ident)*) => {
            $(pub(super) fn $name(value: crate::parameters::Argument<'_>) -> pyo3::PyResult<u64> {
                crate::parameters::parse_whole(stringify!($name), value, 0)
            })*
        };
    }
    from_zero! { ones shard start stop }
}
