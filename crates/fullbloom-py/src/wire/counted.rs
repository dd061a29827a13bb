//! [`WireCounterKeys`] and [`WireCounterBatch`]: the hashes of many keys of a counting filter, those that are sent together,
//! and what was told of them.

use std::cell::Cell;
use std::sync::{Arc, Mutex};

use fullbloom_core::Result;
use fullbloom_core::cells::allocation::zeroed;
use fullbloom_core::parallel::workers::lock;
use fullbloom_core::wire::counted::Batch;
use fullbloom_core::wire::counters::Verb;
use fullbloom_core::wire::{Counters, Shard};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::exchange::{Talk, WireExchange};
use super::keys::Hand;
use crate::errors::{OrRaise, parameter};
use crate::keys::batch;
use crate::objects;

mod arguments {
    crate::classes::declared::readers!(asking: "bool"; adding: "bool"; all: "bool";);

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

/// The hashes of many keys, and what is told of them as it comes.
#[pyclass(frozen, module = "fullbloom._core")]
pub(crate) struct WireCounterKeys {
    counters: Arc<Counters>,
    hashes: Vec<u64>,
    answers: Mutex<Vec<u8>>,
}

impl WireCounterKeys {
    /// Nothing told yet.
    pub(super) fn new(counters: &Arc<Counters>, hashes: Vec<u64>) -> Result<Self> {
        let answers = Mutex::new(zeroed(hashes.len())?);
        Ok(WireCounterKeys { counters: Arc::clone(counters), hashes, answers })
    }

    /// What was told in the kind of the keys.
    fn hand<'py, T>(&self, keys: &Bound<'py, PyAny>, of: impl Fn(u8) -> T) -> PyResult<Bound<'py, PyAny>>
    where
        T: crate::answers::Answer + Copy,
    {
        let answers: Vec<T> = lock(&self.answers).iter().map(|&told| of(told)).collect();
        let hand = Hand { answers: &answers, at: Cell::new(0) };
        let told = batch::run(&hand, self.counters.hasher(), keys, true)?;
        if hand.at.get() != answers.len() {
            return Err(parameter(keys.py(), "the keys changed while the server was asked; pass a copy of them"));
        }
        Ok(told)
    }
}

#[pymethods]
impl WireCounterKeys {
    fn __len__(&self) -> usize {
        self.hashes.len()
    }

    /// Some of them, to be sent together: to be counted, or added.
    #[pyo3(signature = (start: "int", stop: "int", *, adding: "bool" = false) -> "WireCounterBatch")]
    fn batch(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::start)] start: u64,
        #[pyo3(from_py_with = arguments::stop)] stop: u64,
        #[pyo3(from_py_with = arguments::adding)] adding: bool,
    ) -> PyResult<WireCounterBatch> {
        let stop = usize::try_from(stop).unwrap_or(usize::MAX).min(self.hashes.len());
        let start = usize::try_from(start).unwrap_or(usize::MAX).min(stop);
        let (hashes, verb) = (self.hashes[start..stop].to_vec(), if adding { Verb::Add } else { Verb::Count });
        let core = py.detach(|| Batch::new(&self.counters, hashes, verb)).or_raise(py)?;
        Ok(WireCounterBatch { core: Mutex::new(core), start })
    }

    /// Keeps what a batch was told.
    #[pyo3(signature = (batch: "WireCounterBatch") -> "None")]
    fn take(&self, py: Python<'_>, batch: &Bound<'_, WireCounterBatch>) -> PyResult<()> {
        let batch = batch.get();
        let told = lock(&batch.core).answers().or_raise(py)?;
        let mut answers = lock(&self.answers);
        for (answer, told) in answers.iter_mut().skip(batch.start).zip(told) {
            *answer = told;
        }
        Ok(())
    }

    /// For each key, in the kind of the keys: was it new, was it there. They must be those that the hashes are of.
    #[pyo3(signature = (keys: "Keys") -> "Answers[bool]")]
    fn answers<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.hand(keys, |told| u8::from(told > 0))
    }

    /// For each key, in the kind of the keys: how often it is there.
    #[pyo3(signature = (keys: "Keys") -> "Answers[int]")]
    fn counts<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.hand(keys, u64::from)
    }

    /// What was told of each, a byte a key.
    #[getter]
    fn told<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        objects::bytes(py, &lock(&self.answers))
    }
}

/// Hashes that are sent together, by shard.
#[pyclass(frozen, module = "fullbloom._core")]
pub(crate) struct WireCounterBatch {
    core: Mutex<Batch>,
    start: usize,
}

#[pymethods]
impl WireCounterBatch {
    fn __len__(&self) -> usize {
        lock(&self.core).len()
    }

    /// What is to be sent next: the removal of the keys that a count has found; what such a removal has to give back.
    fn then(&self, py: Python<'_>) -> PyResult<WireCounterBatch> {
        let core = lock(&self.core).then().or_raise(py)?;
        Ok(WireCounterBatch { core: Mutex::new(core), start: self.start })
    }

    /// The shards that its keys lie in, rising.
    #[getter]
    fn shards(&self) -> Vec<u64> {
        lock(&self.core).shards().collect()
    }

    /// The commands for some of its shards, (number, name of the string, one beside it), without keys of which a reply has come. With
    /// `asking` each goes behind an ASKING.
    #[pyo3(signature = (shards: "list[tuple[int, bytes, bytes]]", *, asking: "bool" = false) -> "WireExchange")]
    fn exchange(
        &self,
        py: Python<'_>,
        shards: Vec<(u64, Vec<u8>, Vec<u8>)>,
        #[pyo3(from_py_with = arguments::asking)] asking: bool,
    ) -> PyResult<WireExchange> {
        let shards = shards.into_iter().map(|(number, key, beside)| Shard { number, key, beside }).collect();
        // Locked inside: who waits for a lock holds no interpreter.
        let made = py.detach(|| lock(&self.core).exchange(shards, asking)).or_raise(py)?;
        Ok(WireExchange::new(Talk::Counters(made)))
    }

    /// Keeps what an exchange was told.
    #[pyo3(signature = (exchange: "WireExchange") -> "None")]
    fn take(&self, exchange: &Bound<'_, WireExchange>) {
        if let Talk::Counters(exchange) = &*lock(&exchange.get().core) {
            lock(&self.core).take(exchange);
        }
    }

    /// The hashes, 8 bytes each: of keys that were there, or new; of all.
    #[pyo3(signature = (*, all: "bool") -> "bytes")]
    fn hashes<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arguments::all)] all: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes: Vec<u8> = lock(&self.core).hashes(all).flat_map(u64::to_ne_bytes).collect();
        objects::bytes(py, &bytes)
    }
}
