//! [`WireExchange`]: commands for one server, and their replies.

use std::sync::Mutex;

use bloomery_core::Result;
use bloomery_core::parallel::workers::lock;
use bloomery_core::wire::Exchange;
use bloomery_core::wire::reply::Reply;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyList};

use crate::classes::shared::bytes_of;
use crate::errors::{OrRaise, parameter_type};
use crate::{objects, params};

/// Bytes from which on other threads run meanwhile.
const DETACHED: usize = 1 << 13;

/// The commands of a batch for one server, and their replies.
#[pyclass(frozen, module = "bloomery._core")]
pub(crate) struct WireExchange {
    pub(super) core: Mutex<Exchange>,
}

/// Shard, mark, whether the string was too short for a key, bits that were set.
type State<'py> = (u64, Bound<'py, PyBytes>, bool, u64);

impl WireExchange {
    /// Nothing sent yet.
    pub(super) fn new(core: Exchange) -> Self {
        WireExchange { core: Mutex::new(core) }
    }
}

#[pymethods]
impl WireExchange {
    /// What is to be sent.
    #[getter]
    fn buffer<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        objects::bytes(py, lock(&self.core).buffer())
    }

    /// Replies that are due.
    #[getter]
    fn due(&self) -> usize {
        lock(&self.core).due()
    }

    /// Takes bytes as they come; True when all replies have. Raises FormatError for what is no answer to the commands.
    #[pyo3(signature = (data: "bytes | bytearray | memoryview") -> "bool")]
    fn feed(&self, data: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = data.py();
        let bytes = bytes_of("data", data)?;
        let fed = |bytes: &[u8]| -> Result<bool> { lock(&self.core).feed(bytes) };
        if bytes.len() < DETACHED { fed(&bytes) } else { py.detach(|| fed(&bytes)) }.or_raise(py)
    }

    /// Takes the next reply as a client library read it; True when all have come.
    #[pyo3(signature = (reply: "int | bytes | list[int] | None") -> "bool")]
    fn accept(&self, reply: &Bound<'_, PyAny>) -> PyResult<bool> {
        let mut core = lock(&self.core);
        let taken = if reply.is_none() {
            core.accept(Reply::Nil)
        } else if let Ok(bytes) = reply.cast::<PyBytes>() {
            core.accept(Reply::Bulk(bytes.as_bytes()))
        } else if let Ok(number) = reply.cast::<PyInt>() {
            core.accept(Reply::Integer(number.extract()?))
        } else if let Ok(list) = reply.cast::<PyList>() {
            let mut array = Vec::new();
            for item in list {
                array.extend_from_slice(format!(":{}\r\n", item.extract::<i64>()?).as_bytes());
            }
            core.accept(Reply::Array(&array))
        } else {
            let class = reply.get_type().name()?;
            return Err(parameter_type(reply.py(), format!("a reply is an int, bytes, a list or None, got {class}")));
        };
        taken.or_raise(reply.py())?;
        Ok(core.is_done())
    }

    /// Takes a refusal as the next reply: its code, a blank, the text.
    #[pyo3(signature = (text: "str") -> "bool")]
    fn refuse(&self, text: &Bound<'_, PyAny>) -> PyResult<bool> {
        let mut core = lock(&self.core);
        core.accept(Reply::Error(params::text("text", text)?.as_bytes())).or_raise(text.py())?;
        Ok(core.is_done())
    }

    /// Begins anew, for the same commands sent once more.
    fn restart(&self) {
        lock(&self.core).restart();
    }

    /// What the server refused: (shard, text), each once for all replies in a row that repeat it.
    #[getter]
    fn refusals(&self) -> Vec<(u64, String)> {
        lock(&self.core).refusals().iter().map(|refusal| (refusal.shard, refusal.text.clone())).collect()
    }

    /// Of each shard: (number, mark, whether the string was too short for a key, bits that were set).
    #[getter]
    fn states<'py>(&self, py: Python<'py>) -> PyResult<Vec<State<'py>>> {
        let core = lock(&self.core);
        let state =
            |(shard, mark, short, set): (u64, &[u8], bool, u64)| Ok((shard, objects::bytes(py, mark)?, short, set));
        core.states().map(state).collect()
    }
}
