//! [`WireExchange`]: commands for one server, and their replies; [`WireText`]: a short string read with them.

use std::sync::Mutex;

use fullbloom_core::Result;
use fullbloom_core::parallel::workers::lock;
use fullbloom_core::wire::counted::CountedKeys;
use fullbloom_core::wire::exchange::{Exchange, State};
use fullbloom_core::wire::plain::Bits;
use fullbloom_core::wire::reply::Reply;
use fullbloom_core::wire::text::Text;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyList};

use super::arguments;
use crate::errors::{OrRaise, parameter_type};
use crate::parameters;
use crate::python_objects::bytes::{self, read_bytes};

/// From this many bytes on, other threads run in between.
const DETACHED: usize = 1 << 13;

/// The subject of the commands.
pub(super) enum Talk {
    /// The bits of a plain filter.
    Bits(Exchange<Bits>),
    /// Counters.
    Counters(Exchange<CountedKeys>),
    /// A short string.
    Text(Exchange<Text>),
}

/// Runs the same code for each subject.
macro_rules! either {
    ($talk:expr, $one:ident => $done:expr) => {
        match $talk {
            Talk::Bits($one) => $done,
            Talk::Counters($one) => $done,
            Talk::Text($one) => $done,
        }
    };
}

/// The commands of a batch for one server, and their replies.
#[pyclass(frozen, module = "fullbloom._core")]
pub(crate) struct WireExchange {
    pub(super) core: Mutex<Talk>,
}

/// Shard, owner tag, whether the string was too short for a key, bits that were set.
type ShardState<'py> = (u64, Bound<'py, PyBytes>, bool, u64);

impl WireExchange {
    /// Nothing sent yet.
    pub(super) fn new(core: Talk) -> Self {
        WireExchange { core: Mutex::new(core) }
    }

    /// Passes bytes to `take`, detached from the interpreter if they are many.
    fn feed_to<T: Send>(
        &self,
        data: &Bound<'_, PyAny>,
        take: impl Fn(&mut Talk, &[u8]) -> Result<T> + Send + Sync,
    ) -> PyResult<T> {
        let py = data.py();
        let bytes = read_bytes("data", data)?;
        let feed = || take(&mut lock(&self.core), &bytes);
        if bytes.len() < DETACHED { feed() } else { py.detach(feed) }.or_raise(py)
    }

    /// Accepts the next reply; true when all have arrived.
    fn accept_reply(&self, py: Python<'_>, reply: Reply<'_>) -> PyResult<bool> {
        either!(&mut *lock(&self.core), one => {
            one.accept(reply).or_raise(py)?;
            Ok(one.is_done())
        })
    }
}

#[pymethods]
impl WireExchange {
    /// The bytes to send.
    #[getter]
    fn buffer<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        either!(&*lock(&self.core), one => bytes::create(py, one.buffer()))
    }

    /// The number of replies that have not arrived.
    #[getter]
    fn due(&self) -> usize {
        either!(&*lock(&self.core), one => one.due())
    }

    /// True when keys are sent together as one string of bits, which a server may refuse although it accepts them one by one.
    #[getter]
    fn is_whole(&self) -> bool {
        matches!(&*lock(&self.core), Talk::Bits(one) if one.subject().is_whole())
    }

    /// Takes bytes as they arrive; True when all replies have arrived. Raises FormatError for a reply that does not match its
    /// command.
    #[pyo3(signature = (data: "bytes | bytearray | memoryview") -> "bool")]
    fn feed(&self, data: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.feed_to(data, |talk, bytes| either!(talk, one => one.feed(bytes)))
    }

    /// As feed(), if replies to other commands may follow: the number of bytes left over, None until all replies have arrived.
    #[pyo3(signature = (data: "bytes | bytearray | memoryview") -> "int | None")]
    fn feed_part(&self, data: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        self.feed_to(data, |talk, bytes| either!(talk, one => one.feed_part(bytes)))
    }

    /// Takes the next reply as a client library read it; True when all have arrived.
    #[pyo3(signature = (reply: "int | bytes | list[int | None] | None") -> "bool")]
    fn accept(&self, reply: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = reply.py();
        if reply.is_none() {
            self.accept_reply(py, Reply::Nil)
        } else if let Ok(bytes) = reply.cast::<PyBytes>() {
            self.accept_reply(py, Reply::Bulk(bytes.as_bytes()))
        } else if let Ok(number) = reply.cast::<PyInt>() {
            self.accept_reply(py, Reply::Integer(number.extract()?))
        } else if let Ok(list) = reply.cast::<PyList>() {
            let mut array = Vec::new();
            for item in list {
                let text = match item.extract::<Option<i64>>()? {
                    Some(number) => format!(":{number}\r\n"),
                    None => "_\r\n".into(),
                };
                array.extend_from_slice(text.as_bytes());
            }
            self.accept_reply(py, Reply::Array(&array))
        } else {
            let class = reply.get_type().name()?;
            Err(parameter_type(py, format!("a reply is an int, bytes, a list or None, got {class}")))
        }
    }

    /// Takes an error as the next reply: its code, a space, the text.
    #[pyo3(signature = (text: "str") -> "bool")]
    fn refuse(&self, text: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.accept_reply(text.py(), Reply::Error(parameters::text("text", text)?.as_bytes()))
    }

    /// Starts again, for the same commands sent once more; for counters, only those without a reply.
    fn restart(&self, py: Python<'_>) -> PyResult<()> {
        either!(&mut *lock(&self.core), one => one.restart().or_raise(py))
    }

    /// The errors of the server: (shard, text), each once for all consecutive replies that repeat it.
    #[getter]
    fn refusals(&self) -> Vec<(u64, String)> {
        let core = lock(&self.core);
        let refusals = either!(&*core, one => one.refusals());
        refusals.iter().map(|refusal| (refusal.shard, refusal.text.clone())).collect()
    }

    /// For each shard: (number, owner tag, whether the string was too short for a key, bits that were set).
    #[getter]
    fn states<'py>(&self, py: Python<'py>) -> PyResult<Vec<ShardState<'py>>> {
        let core = lock(&self.core);
        let state = |it: State<'_>| Ok((it.shard, bytes::create(py, it.mark)?, it.short, it.bits_set));
        either!(&*core, one => one.states().map(state).collect())
    }
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

    /// The command, with the parameters of WireBatch.exchange(); with `asking` after an ASKING.
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

    /// Stores nothing: the exchange has the result.
    #[pyo3(signature = (exchange: "WireExchange") -> "None")]
    fn take(&self, exchange: &Bound<'_, WireExchange>) {
        let _ = exchange;
    }
}
