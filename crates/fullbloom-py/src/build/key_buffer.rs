//! [`KeyBuffer`]: the hashes of keys that come in pieces, for a structure that is built from all of them at once.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use fullbloom_core::key::source::CHUNK;
use fullbloom_core::key::{KeyDomains, KeyHasher};
use fullbloom_core::parallel::workers::lock;
use fullbloom_core::structure::records::{RecordSet, Records, SortedRecords};
use fullbloom_core::structure::{HashSource, Job};
use fullbloom_core::{Error, Result, text};
use pyo3::prelude::*;

use crate::errors::{OrRaise, parameter};
use crate::keys::batch::Operation;
use crate::locking::slices;
use crate::operations::each_chunk;
use crate::operations::values::{KeyValues, Values};
use crate::parameters;
use crate::python_objects::bytes::read_bytes;

/// The state of the hashes.
enum State {
    Open(Records<1>),
    Closed(Arc<RecordSet<1>>),
    /// Closing failed, and the hashes are lost.
    Lost,
}

/// Hashes of keys that come in pieces, for build_hashed; hashes beyond half of `memory` are in a nameless file.
#[pyclass(frozen, module = "fullbloom._core")]
pub(crate) struct KeyBuffer {
    pub(crate) hasher: KeyHasher,
    /// Threads that may append hashes of one source.
    threads: usize,
    state: Mutex<State>,
    domains: Mutex<KeyDomains>,
}

/// Hashes of a source that several threads append between two checks for signals: 10 ms and more.
const ROUND: usize = 1 << 22;

impl KeyBuffer {
    /// An empty buffer for hashes by `hasher`.
    pub(crate) fn create(hasher: KeyHasher, memory: Option<u64>, threads: usize) -> Self {
        KeyBuffer { hasher, threads, state: Mutex::new(State::Open(Records::new(memory))), domains: Mutex::default() }
    }

    /// Records the domains of new keys.
    pub(crate) fn record(&self, domains: KeyDomains) {
        let mut known = lock(&self.domains);
        *known = known.with(domains);
    }

    /// The domains of the keys.
    pub(crate) fn domains(&self) -> KeyDomains {
        *lock(&self.domains)
    }

    /// Appends hashes; called detached.
    pub(crate) fn push(&self, hashes: &[u64]) -> Result<()> {
        self.append(&hashes, 0..hashes.len())
    }

    /// Reserves memory for `hashes` hashes, if they are many.
    fn expect(&self, hashes: usize) -> Result<()> {
        match &mut *lock(&self.state) {
            State::Open(records) => records.expect(hashes, self.threads),
            _ => Ok(()),
        }
    }

    /// Appends part of the hashes of `source`; called detached.
    fn append(&self, source: &dyn HashSource, part: Range<usize>) -> Result<()> {
        match &mut *lock(&self.state) {
            State::Open(records) => records.take(source, part, self.threads),
            _ => Err(Error::parameter("a structure was built from these keys already; collect them again for another")),
        }
    }

    /// Closes the buffer to more keys and returns all of them. Called detached.
    pub(crate) fn close(&self) -> Result<Arc<RecordSet<1>>> {
        let mut state = lock(&self.state);
        let closed = match std::mem::replace(&mut *state, State::Lost) {
            State::Open(records) => Arc::new(records.try_into()?),
            State::Closed(closed) => closed,
            State::Lost => return Err(Error::parameter("these keys were lost; collect them again")),
        };
        *state = State::Closed(Arc::clone(&closed));
        Ok(closed)
    }

    /// Closes the buffer and sorts its distinct hashes. Called detached.
    pub(crate) fn sort(&self, job: &Job<'_>) -> Result<Arc<SortedRecords<1>>> {
        self.close()?.sort(job)
    }
}

impl Operation for KeyBuffer {
    type Out = u8;
    const SKIPS_NULLS: bool = true;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, _: Option<&mut [u8]>) -> PyResult<()> {
        if !source.is_empty() {
            self.record(source.domains());
        }
        slices::detach_if_long(py, source.len(), || self.expect(source.len())).or_raise(py)?;
        let (round, mut failed) = (if self.threads > 1 { ROUND } else { CHUNK }, None);
        slices::run_detached(py, source.len(), |start| {
            let end = source.len().min(start + round);
            failed = self.append(source, start..end).err();
            if failed.is_some() { source.len() } else { end }
        })?;
        failed.map_or(Ok(()), Err).or_raise(py)
    }
}

/// Collects hashes and the values that come with them.
pub(crate) struct CollectPairs<'a, 'py> {
    values: &'a KeyValues<'py>,
    records: RefCell<Records<2>>,
    /// Pairs collected so far.
    done: Cell<usize>,
    domains: Cell<KeyDomains>,
}

impl<'a, 'py> CollectPairs<'a, 'py> {
    /// Without pairs yet.
    pub(crate) fn new(values: &'a KeyValues<'py>, memory: Option<u64>) -> Self {
        CollectPairs {
            values,
            records: RefCell::new(Records::new(memory)),
            done: Cell::new(0),
            domains: Cell::default(),
        }
    }

    /// The domains of the keys.
    pub(crate) fn domains(&self) -> KeyDomains {
        self.domains.get()
    }

    /// All pairs and their values, if there is a key for each value.
    pub(crate) fn finish(self) -> PyResult<(Records<2>, &'a Values)> {
        self.values.check_number(self.done.get())?;
        Ok((self.records.into_inner(), self.values.get(self.done.get())?))
    }
}

impl Operation for CollectPairs<'_, '_> {
    type Out = u8;
    const SKIPS_NULLS: bool = true;
    const REFUSES_NULLS: bool = true;

    fn needs_count(&self) -> PyResult<bool> {
        self.values.needs_count()
    }

    fn expect(&self, _: Python<'_>, keys: usize) -> PyResult<()> {
        self.values.read(keys).map(drop)
    }

    fn run(&self, py: Python<'_>, source: &dyn HashSource, _: Option<&mut [u8]>) -> PyResult<()> {
        let first = self.done.get();
        let values = self.values.get(first + source.len())?;
        if !source.is_empty() {
            self.domains.set(self.domains.get().with(source.domains()));
        }
        let records = &mut *self.records.try_borrow_mut().map_err(|_| parameter(py, "the build has begun already"))?;
        each_chunk(py, source, |start, hashes| {
            hashes.iter().enumerate().try_for_each(|(i, &hash)| {
                let few = || Error::parameter("there must be as many values as keys, got fewer");
                records.push([hash, values.at(first + start + i).ok_or_else(few)?])
            })
        })?;
        self.done.set(first + source.len());
        Ok(())
    }
}

#[pymethods]
impl KeyBuffer {
    #[new]
    #[pyo3(signature = (*, seed: "int" = 0, secret: "bytes | None" = None, memory: "int | None" = None))]
    fn new(
        #[pyo3(from_py_with = parameters::seed)] seed: u64,
        secret: Option<&Bound<'_, PyAny>>,
        memory: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let memory = parameters::optional_whole("memory", memory, 1)?;
        Ok(Self::create(parameters::read_hasher(seed, secret)?, memory, 1))
    }

    /// Appends the lines of `block`, including a last one without newline; returns how many.
    #[pyo3(signature = (block: "bytes | bytearray | memoryview") -> "int")]
    fn lines(&self, block: &Bound<'_, PyAny>) -> PyResult<u64> {
        let bytes = read_bytes("block", block)?;
        let py = block.py();
        if !bytes.is_empty() {
            self.record(text::LINES);
        }
        py.detach(|| text::hash_records(&self.hasher, &bytes, |hashes| self.push(hashes))).or_raise(py)
    }
}
