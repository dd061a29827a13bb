//! [`WireText`]: a short string of a server, read in the round trip of a batch.

use fullbloom_core::wire::exchange::Exchange;
use fullbloom_core::wire::text::Text;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::exchange::{Talk, WireExchange};
use crate::errors::OrRaise;

mod arguments {
    crate::classes::declared::readers!(asking: "bool";);
}

/// The string under one key of a server, 64 KiB of it at most; the first state of an exchange has it.
#[pyclass(frozen, module = "fullbloom._core")]
pub(crate) struct WireText {
    key: Vec<u8>,
}

#[pymethods]
impl WireText {
    #[new]
    #[pyo3(signature = (key: "bytes"))]
    fn new(key: &Bound<'_, PyBytes>) -> Self {
        WireText { key: key.as_bytes().to_vec() }
    }

    /// The command, with the parameters that WireBatch.exchange() has; with `asking` behind an ASKING.
    #[pyo3(signature = (shards: "list[tuple[int, bytes, bytes]]", *, asking: "bool" = false) -> "WireExchange")]
    fn exchange(
        &self,
        py: Python<'_>,
        shards: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::asking)] asking: bool,
    ) -> PyResult<WireExchange> {
        let _ = shards;
        Ok(WireExchange::new(Talk::Text(Exchange::new(Text::new(self.key.clone()), asking).or_raise(py)?)))
    }

    /// Keeps nothing: exchanges have the answer.
    #[pyo3(signature = (exchange: "WireExchange") -> "None")]
    fn take(&self, exchange: &Bound<'_, WireExchange>) {
        let _ = exchange;
    }
}
