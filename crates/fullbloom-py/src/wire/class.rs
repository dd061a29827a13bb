//! [`WireCells`]: the shape and the hash of a filter that a server holds.

use std::sync::Arc;

use fullbloom_core::wire::Cells;
use pyo3::prelude::*;

/// The cells of a plain filter as strings of a server, in shards.
#[pyclass(frozen, module = "fullbloom._core")]
pub(crate) struct WireCells {
    pub(super) core: Arc<Cells>,
}
