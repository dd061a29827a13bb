//! [`WireExchange`]: commands for one server, and their replies.

use std::sync::Mutex;

use fullbloom_core::Result;
use fullbloom_core::parallel::workers::lock;
use fullbloom_core::wire::counted::Counted;
use fullbloom_core::wire::exchange::{Exchange, State};
use fullbloom_core::wire::plain::Bits;
use fullbloom_core::wire::reply::Reply;
use fullbloom_core::wire::text::Text;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyList};

use crate::classes::shared::bytes_of;
use crate::errors::{OrRaise, parameter_type};
use crate::{objects, params};

/// Bytes from which on other threads run meanwhile.
const DETACHED: usize = 1 << 13;

/// What commands are about.
pub(super) enum Talk {
    /// The bits of a plain filter.
    Bits(Exchange<Bits>),
    /// Counters.
    Counters(Exchange<Counted>),
    /// A short string.
    Text(Exchange<Text>),
}

/// Does the same with either.
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

/// Shard, mark, whether the string was too short for a key, bits that were set.
type Told<'py> = (u64, Bound<'py, PyBytes>, bool, u64);

impl WireExchange {
    /// Nothing sent yet.
    pub(super) fn new(core: Talk) -> Self {
        WireExchange { core: Mutex::new(core) }
    }

    /// Hands bytes on, detached from the interpreter if they are many.
    fn fed<T: Send>(
        &self,
        data: &Bound<'_, PyAny>,
        take: impl Fn(&mut Talk, &[u8]) -> Result<T> + Send + Sync,
    ) -> PyResult<T> {
        let py = data.py();
        let bytes = bytes_of("data", data)?;
        let fed = || take(&mut lock(&self.core), &bytes);
        if bytes.len() < DETACHED { fed() } else { py.detach(fed) }.or_raise(py)
    }

    /// Takes the next reply; true when all have come.
    fn taken(&self, py: Python<'_>, reply: Reply<'_>) -> PyResult<bool> {
        either!(&mut *lock(&self.core), one => {
            one.accept(reply).or_raise(py)?;
            Ok(one.is_done())
        })
    }
}

#[pymethods]
impl WireExchange {
    /// What is to be sent.
    #[getter]
    fn buffer<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        either!(&*lock(&self.core), one => objects::bytes(py, one.buffer()))
    }

    /// Replies that are due.
    #[getter]
    fn due(&self) -> usize {
        either!(&*lock(&self.core), one => one.due())
    }

    /// True when keys go together as one string of bits, which a server may refuse that takes them one by one.
    #[getter]
    fn is_whole(&self) -> bool {
        matches!(&*lock(&self.core), Talk::Bits(one) if one.subject().is_whole())
    }

    /// Takes bytes as they come; True when all replies have. Raises FormatError for what is no answer to the commands.
    #[pyo3(signature = (data: "bytes | bytearray | memoryview") -> "bool")]
    fn feed(&self, data: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.fed(data, |talk, bytes| either!(talk, one => one.feed(bytes)))
    }

    /// As feed(), where replies to other commands may follow: how many bytes were left over, None while replies are due.
    #[pyo3(signature = (data: "bytes | bytearray | memoryview") -> "int | None")]
    fn feed_part(&self, data: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        self.fed(data, |talk, bytes| either!(talk, one => one.feed_part(bytes)))
    }

    /// Takes the next reply as a client library read it; True when all have come.
    #[pyo3(signature = (reply: "int | bytes | list[int | None] | None") -> "bool")]
    fn accept(&self, reply: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = reply.py();
        if reply.is_none() {
            self.taken(py, Reply::Nil)
        } else if let Ok(bytes) = reply.cast::<PyBytes>() {
            self.taken(py, Reply::Bulk(bytes.as_bytes()))
        } else if let Ok(number) = reply.cast::<PyInt>() {
            self.taken(py, Reply::Integer(number.extract()?))
        } else if let Ok(list) = reply.cast::<PyList>() {
            let mut array = Vec::new();
            for item in list {
                let text = match item.extract::<Option<i64>>()? {
                    Some(number) => format!(":{number}\r\n"),
                    None => "_\r\n".into(),
                };
                array.extend_from_slice(text.as_bytes());
            }
            self.taken(py, Reply::Array(&array))
        } else {
            let class = reply.get_type().name()?;
            Err(parameter_type(py, format!("a reply is an int, bytes, a list or None, got {class}")))
        }
    }

    /// Takes a refusal as the next reply: its code, a blank, the text.
    #[pyo3(signature = (text: "str") -> "bool")]
    fn refuse(&self, text: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.taken(text.py(), Reply::Error(params::text("text", text)?.as_bytes()))
    }

    /// Begins anew, for the same commands sent once more; of counters, those to which no reply came.
    fn restart(&self, py: Python<'_>) -> PyResult<()> {
        either!(&mut *lock(&self.core), one => one.restart().or_raise(py))
    }

    /// What the server refused: (shard, text), each once for all replies in a row that repeat it.
    #[getter]
    fn refusals(&self) -> Vec<(u64, String)> {
        let core = lock(&self.core);
        let refusals = either!(&*core, one => one.refusals());
        refusals.iter().map(|refusal| (refusal.shard, refusal.text.clone())).collect()
    }

    /// Of each shard: (number, mark, whether the string was too short for a key, bits that were set).
    #[getter]
    fn states<'py>(&self, py: Python<'py>) -> PyResult<Vec<Told<'py>>> {
        let core = lock(&self.core);
        let state = |it: State<'_>| Ok((it.shard, objects::bytes(py, it.mark)?, it.short, it.bits_set));
        either!(&*core, one => one.states().map(state).collect())
    }
}
