//! [`WireKeys`] and [`WireBatch`]: the hashes of many keys, those that are sent together, and their answers.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex};

use fullbloom_core::Result;
use fullbloom_core::cells::allocation::{reserve, zeroed};
use fullbloom_core::parallel::workers::lock;
use fullbloom_core::structure::HashSource;
use fullbloom_core::wire::plain::Batch;
use fullbloom_core::wire::{Cells, Shard};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::class::WireCells;
use super::exchange::{Talk, WireExchange};
use crate::answers::Answer;
use crate::errors::{OrRaise, parameter};
use crate::keys::batch::{self, Operation};
use crate::{objects, turns};

mod arguments {
    crate::classes::declared::readers!(asking: "bool"; always: "bool";);

    /// Places in a batch, from 0 on.
    macro_rules! from_zero {
        ($($name:ident)*) => {
            $(pub(super) fn $name(value: &pyo3::Bound<'_, pyo3::PyAny>) -> pyo3::PyResult<u64> {
                crate::params::whole(stringify!($name), value, 0)
            })*
        };
    }
    from_zero! { start stop }
}

/// Collects hashes.
pub(super) struct Gather(pub(super) RefCell<Vec<u64>>);

impl Operation for Gather {
    type Out = u8;
    const SKIPS_NULLS: bool = true;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, _: Option<&mut [u8]>) -> PyResult<()> {
        let mut all = self.0.borrow_mut();
        let before = all.len();
        reserve(&mut all, source.len()).or_raise(py)?;
        all.resize(before + source.len(), 0);
        let out = &mut all[before..];
        turns::over(py, out.len(), || source.fill(0, out));
        Ok(())
    }
}

/// Hands out answers that are there.
pub(super) struct Hand<'a, T> {
    pub(super) answers: &'a [T],
    pub(super) at: Cell<usize>,
}

impl<T: Answer + Copy> Operation for Hand<'_, T> {
    type Out = T;
    const SKIPS_NULLS: bool = true;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, out: Option<&mut [T]>) -> PyResult<()> {
        let end = self.at.get() + source.len();
        let Some(answers) = self.answers.get(self.at.get()..end) else {
            return Err(parameter(py, "the keys changed while the server was asked; pass a copy of them"));
        };
        self.at.set(end);
        if let Some(out) = out {
            out.copy_from_slice(answers);
        }
        Ok(())
    }
}

/// The hashes of many keys, and their answers as they come in.
#[pyclass(frozen, module = "fullbloom._core")]
pub(crate) struct WireKeys {
    cells: Arc<Cells>,
    hashes: Vec<u64>,
    adding: bool,
    answers: Mutex<Vec<u8>>,
}

impl WireKeys {
    /// None of them answered yet.
    pub(super) fn new(cells: &Arc<Cells>, hashes: Vec<u64>, adding: bool) -> Result<Self> {
        let answers = Mutex::new(zeroed(hashes.len())?);
        Ok(WireKeys { cells: Arc::clone(cells), hashes, adding, answers })
    }
}

#[pymethods]
impl WireKeys {
    fn __len__(&self) -> usize {
        self.hashes.len()
    }

    /// Some of them, to be sent together; for other cells with the same hash, if they are given.
    #[pyo3(signature = (start: "int", stop: "int", cells: "WireCells | None" = None) -> "WireBatch")]
    fn batch(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::start)] start: u64,
        #[pyo3(from_py_with = arguments::stop)] stop: u64,
        cells: Option<&Bound<'_, WireCells>>,
    ) -> PyResult<WireBatch> {
        let cells = cells.map_or(&self.cells, |cells| &cells.get().core);
        let stop = usize::try_from(stop).unwrap_or(usize::MAX).min(self.hashes.len());
        let start = usize::try_from(start).unwrap_or(usize::MAX).min(stop);
        let hashes = self.hashes[start..stop].to_vec();
        let core = py.detach(|| Batch::new(cells, hashes, self.adding)).or_raise(py)?;
        Ok(WireBatch::new(core, start))
    }

    /// Keeps the answers of a batch; what an earlier one found new stays new.
    #[pyo3(signature = (batch: "WireBatch") -> "None")]
    fn take(&self, batch: &Bound<'_, WireBatch>) {
        let batch = batch.get();
        let (core, mut answers) = (lock(&batch.core), lock(&self.answers));
        let end = answers.len().min(batch.start + core.answers().len());
        let start = batch.start.min(end);
        for (answer, &told) in answers[start..end].iter_mut().zip(core.answers()) {
            *answer = if self.adding { *answer | told } else { told };
        }
    }

    /// Takes answers that came otherwise, 1 or 0 for each key.
    #[pyo3(signature = (answers: "bytes") -> "None")]
    fn give(&self, answers: &Bound<'_, PyBytes>) -> PyResult<()> {
        let mut all = lock(&self.answers);
        if all.len() != answers.as_bytes().len() {
            let message = format!("there are {} keys and {} answers", all.len(), answers.as_bytes().len());
            return Err(parameter(answers.py(), message));
        }
        all.copy_from_slice(answers.as_bytes());
        Ok(())
    }

    /// The answers in the kind of the keys, which must be those that the hashes are of.
    #[pyo3(signature = (keys: "Keys") -> "Answers[bool]")]
    fn answers<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let answers = lock(&self.answers).clone();
        let hand = Hand { answers: &answers, at: Cell::new(0) };
        let told = batch::run(&hand, self.cells.hasher(), keys, true)?;
        if hand.at.get() != answers.len() {
            return Err(parameter(keys.py(), "the keys changed while the server was asked; pass a copy of them"));
        }
        Ok(told)
    }
}

/// Hashes that are sent together, by shard.
#[pyclass(frozen, module = "fullbloom._core")]
pub(crate) struct WireBatch {
    core: Mutex<Batch>,
    start: usize,
}

impl WireBatch {
    /// Hashes of one key or more, of which those before `start` are in other batches.
    pub(super) fn new(core: Batch, start: usize) -> Self {
        WireBatch { core: Mutex::new(core), start }
    }
}

#[pymethods]
impl WireBatch {
    fn __len__(&self) -> usize {
        lock(&self.core).answers().len()
    }

    /// The shards that they lie in, rising.
    #[getter]
    fn shards(&self) -> Vec<u64> {
        lock(&self.core).shards().collect()
    }

    /// The commands for some of its shards: (number, name of the string, a name on the same node for bits on their way).
    /// With `asking` each goes behind an ASKING.
    #[pyo3(signature = (shards: "list[tuple[int, bytes, bytes]]", *, asking: "bool" = false) -> "WireExchange")]
    fn exchange(
        &self,
        py: Python<'_>,
        shards: Vec<(u64, Vec<u8>, Vec<u8>)>,
        #[pyo3(from_py_with = arguments::asking)] asking: bool,
    ) -> PyResult<WireExchange> {
        let shards = shards.into_iter().map(|(number, key, beside)| Shard { number, key, beside }).collect();
        // Locked inside: who waits for a lock holds no interpreter.
        let make = || lock(&self.core).exchange(shards, asking);
        let made = if lock(&self.core).answers().len() > 64 { py.detach(make) } else { make() };
        Ok(WireExchange::new(Talk::Bits(made.or_raise(py)?)))
    }

    /// Sends each key by itself from here on, where it might have gone with all others of its shard; those of later
    /// batches, too, if `always`.
    #[pyo3(signature = (*, always: "bool" = false) -> "None")]
    fn go_by_key(&self, #[pyo3(from_py_with = arguments::always)] always: bool) {
        lock(&self.core).go_by_key(always);
    }

    /// Keeps the answers of an exchange; what an earlier one found new stays new.
    #[pyo3(signature = (exchange: "WireExchange") -> "None")]
    fn take(&self, exchange: &Bound<'_, WireExchange>) {
        if let Talk::Bits(exchange) = &*lock(&exchange.get().core) {
            lock(&self.core).take(exchange);
        }
    }

    /// True when any key was found, or new: the answer of a batch of one.
    #[getter]
    fn any(&self) -> bool {
        lock(&self.core).answers().contains(&1)
    }

    /// How many keys were found, or new.
    #[getter]
    fn count(&self) -> u64 {
        lock(&self.core).answers().iter().map(|&answer| u64::from(answer)).sum()
    }

    /// 1 for each key that was found, or new, in the order of the keys; 0 for the others.
    #[getter]
    fn answers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        objects::bytes(py, lock(&self.core).answers())
    }

    /// The hashes, 8 bytes each, those of a shard together.
    #[getter]
    fn hashes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes: Vec<u8> = lock(&self.core).hashes().iter().flat_map(|hash| hash.to_ne_bytes()).collect();
        objects::bytes(py, &bytes)
    }
}
