//! [`WireKeys`] and [`WireBatch`]: the hashes of many keys, those that are sent together, and their results.

use std::cell::Cell;
use std::sync::{Arc, Mutex};

use fullbloom_core::Result;
use fullbloom_core::cells::allocation::zeroed;
use fullbloom_core::key::KeyHasher;
use fullbloom_core::parallel::workers::lock;
use fullbloom_core::structure::HashSource;
use fullbloom_core::wire::plain::Batch;
use fullbloom_core::wire::{Cells, Shard};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::exchange::{Talk, WireExchange};
use super::{WireCells, arguments};
use crate::errors::{OrRaise, parameter};
use crate::keys::batch::{self, Operation};
use crate::operations::CollectHashes;
use crate::python_objects::answers::Answer;
use crate::python_objects::bytes;

/// The error if keys are read a second time and are not the same.
const CHANGED: &str = "the keys changed while the server was queried; pass a copy of them";

/// Collects the hashes of keys of any kind that contains_many() takes; nulls are not keys.
pub(super) fn collect_hashes(hasher: &KeyHasher, keys: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    let hashes = CollectHashes::default();
    batch::run(&hashes, hasher, keys, false)?;
    Ok(hashes.into_hashes())
}

/// Reads hashes of 8 bytes each, in native byte order.
pub(super) fn read_hashes(hashes: &Bound<'_, PyBytes>) -> Vec<u64> {
    hashes.as_bytes().as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word)).collect()
}

/// Copies the hashes from `start` to `stop`; returns where they begin, too.
pub(super) fn copy_part(hashes: &[u64], start: u64, stop: u64) -> (usize, Vec<u64>) {
    let stop = usize::try_from(stop).unwrap_or(usize::MAX).min(hashes.len());
    let start = usize::try_from(start).unwrap_or(usize::MAX).min(stop);
    (start, hashes[start..stop].to_vec())
}

/// Returns `answers` in the same container type as the keys, which must be those of the hashes.
pub(super) fn return_answers<'py, T: Answer + Copy>(
    hasher: &KeyHasher,
    keys: &Bound<'py, PyAny>,
    answers: &[T],
) -> PyResult<Bound<'py, PyAny>> {
    let copy = CopyAnswers { answers, at: Cell::new(0) };
    let returned = batch::run(&copy, hasher, keys, true)?;
    if copy.at.get() == answers.len() { Ok(returned) } else { Err(parameter(keys.py(), CHANGED)) }
}

/// Copies results that have arrived.
struct CopyAnswers<'a, T> {
    answers: &'a [T],
    at: Cell<usize>,
}

impl<T: Answer + Copy> Operation for CopyAnswers<'_, T> {
    type Out = T;
    const SKIPS_NULLS: bool = true;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, out: Option<&mut [T]>) -> PyResult<()> {
        let end = self.at.get() + source.len();
        let Some(answers) = self.answers.get(self.at.get()..end) else {
            return Err(parameter(py, CHANGED));
        };
        self.at.set(end);
        if let Some(out) = out {
            out.copy_from_slice(answers);
        }
        Ok(())
    }
}

/// The hashes of many keys, and their results as they arrive.
#[pyclass(frozen, module = "fullbloom._core")]
pub(crate) struct WireKeys {
    cells: Arc<Cells>,
    hashes: Vec<u64>,
    adding: bool,
    answers: Mutex<Vec<u8>>,
}

impl WireKeys {
    /// Without results yet.
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

    /// Some of them, to send together; for other cells with the same hash, if `cells` is given.
    #[pyo3(signature = (start: "int", stop: "int", cells: "WireCells | None" = None) -> "WireBatch")]
    fn batch(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::start)] start: u64,
        #[pyo3(from_py_with = arguments::stop)] stop: u64,
        cells: Option<&Bound<'_, WireCells>>,
    ) -> PyResult<WireBatch> {
        let cells = cells.map_or(&self.cells, |cells| &cells.get().core);
        let (start, hashes) = copy_part(&self.hashes, start, stop);
        let core = py.detach(|| Batch::new(cells, hashes, self.adding)).or_raise(py)?;
        Ok(WireBatch::new(core, start))
    }

    /// Stores the results of a batch; a key that an earlier batch found new stays new.
    #[pyo3(signature = (batch: "WireBatch") -> "None")]
    fn take(&self, batch: &Bound<'_, WireBatch>) {
        let batch = batch.get();
        let (core, mut answers) = (lock(&batch.core), lock(&self.answers));
        let end = answers.len().min(batch.start + core.answers().len());
        let start = batch.start.min(end);
        for (answer, &new) in answers[start..end].iter_mut().zip(core.answers()) {
            *answer = if self.adding { *answer | new } else { new };
        }
    }

    /// Stores results from elsewhere, 1 or 0 for each key.
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

    /// The results in the same container type as the keys, which must be those of the hashes.
    #[pyo3(signature = (keys: "Keys") -> "Answers[bool]")]
    fn answers<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let answers = lock(&self.answers).clone();
        return_answers(self.cells.hasher(), keys, &answers)
    }
}

/// Hashes that are sent together, by shard.
#[pyclass(frozen, module = "fullbloom._core")]
pub(crate) struct WireBatch {
    core: Mutex<Batch>,
    start: usize,
}

impl WireBatch {
    /// A batch whose first key has the number `start`.
    pub(super) fn new(core: Batch, start: usize) -> Self {
        WireBatch { core: Mutex::new(core), start }
    }
}

#[pymethods]
impl WireBatch {
    fn __len__(&self) -> usize {
        lock(&self.core).answers().len()
    }

    /// The shards that contain them, ascending.
    #[getter]
    fn shards(&self) -> Vec<u64> {
        lock(&self.core).shards().collect()
    }

    /// The commands for some of its shards: (number, name of the string, a name on the same node for temporary bits). With
    /// `asking` each command follows an ASKING.
    #[pyo3(signature = (shards: "list[tuple[int, bytes, bytes]]", *, asking: "bool" = false) -> "WireExchange")]
    fn exchange(
        &self,
        py: Python<'_>,
        shards: Vec<(u64, Vec<u8>, Vec<u8>)>,
        #[pyo3(from_py_with = arguments::asking)] asking: bool,
    ) -> PyResult<WireExchange> {
        let shards = shards.into_iter().map(|(number, key, beside)| Shard { number, key, beside }).collect();
        // Locked inside: no thread waits for a lock while attached.
        let create = || lock(&self.core).exchange(shards, asking);
        let exchange = if lock(&self.core).answers().len() > 64 { py.detach(create) } else { create() };
        Ok(WireExchange::new(Talk::Bits(exchange.or_raise(py)?)))
    }

    /// From now on, sends each key by itself instead of all keys of a shard together; with `always`, in later batches, too.
    #[pyo3(signature = (*, always: "bool" = false) -> "None")]
    fn go_by_key(&self, #[pyo3(from_py_with = arguments::always)] always: bool) {
        lock(&self.core).go_by_key(always);
    }

    /// Stores the results of an exchange; a key that an earlier exchange found new stays new.
    #[pyo3(signature = (exchange: "WireExchange") -> "None")]
    fn take(&self, exchange: &Bound<'_, WireExchange>) {
        if let Talk::Bits(exchange) = &*lock(&exchange.get().core) {
            lock(&self.core).take(exchange);
        }
    }

    /// True when any key was found, or new: the result of a batch of one.
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
        bytes::create(py, lock(&self.core).answers())
    }

    /// The hashes, 8 bytes each, grouped by shard.
    #[getter]
    fn hashes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes: Vec<u8> = lock(&self.core).hashes().iter().flat_map(|hash| hash.to_ne_bytes()).collect();
        bytes::create(py, &bytes)
    }
}
