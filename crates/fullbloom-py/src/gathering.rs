//! [`Gathering`]: the hashes of keys that come in pieces, for a structure that is made of all of them at once.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use fullbloom_core::key::source::CHUNK;
use fullbloom_core::key::{KeyDomains, KeyHasher};
use fullbloom_core::parallel::workers::lock;
use fullbloom_core::structure::records::{RecordSet, Records, Sorted};
use fullbloom_core::structure::{HashSource, Job};
use fullbloom_core::{Error, Result, text};
use pyo3::prelude::*;

use crate::classes::shared::bytes_of;
use crate::errors::{OrRaise, parameter};
use crate::extras::pairs::{Beside, Values};
use crate::keys::batch::Operation;
use crate::{params, turns};

/// What became of the hashes.
enum State {
    Open(Records<1>),
    Closed(Arc<RecordSet<1>>),
    /// Closing failed, and they are lost.
    Lost,
}

/// Hashes of keys that come in pieces, for build_hashed; what does not fit in half of `memory` lies in a nameless file.
#[pyclass(frozen, module = "fullbloom._core")]
pub(crate) struct Gathering {
    pub(crate) hasher: KeyHasher,
    /// Threads that may take hashes of one source.
    threads: usize,
    state: Mutex<State>,
    domains: Mutex<KeyDomains>,
}

/// Hashes of a source that several threads take between two looks for signals: 10 ms and more.
const ROUND: usize = 1 << 22;

impl Gathering {
    /// None yet, made by `hasher`.
    pub(crate) fn of(hasher: KeyHasher, memory: Option<u64>, threads: usize) -> Self {
        Gathering { hasher, threads, state: Mutex::new(State::Open(Records::new(memory))), domains: Mutex::default() }
    }

    /// Notes the domains of keys that come.
    pub(crate) fn record(&self, domains: KeyDomains) {
        let mut held = lock(&self.domains);
        *held = held.with(domains);
    }

    /// The domains of the keys that came.
    pub(crate) fn domains(&self) -> KeyDomains {
        *lock(&self.domains)
    }

    /// Takes hashes; called detached.
    pub(crate) fn push(&self, hashes: &[u64]) -> Result<()> {
        self.take(&hashes, 0..hashes.len())
    }

    /// Makes room for so many hashes, if they are many.
    fn expect(&self, hashes: usize) -> Result<()> {
        match &mut *lock(&self.state) {
            State::Open(records) => records.expect(hashes, self.threads),
            _ => Ok(()),
        }
    }

    /// Takes part of the hashes of `source`; called detached.
    fn take(&self, source: &dyn HashSource, part: Range<usize>) -> Result<()> {
        match &mut *lock(&self.state) {
            State::Open(records) => records.take(source, part, self.threads),
            _ => Err(Error::parameter("a structure was made of these keys already; gather them anew for others")),
        }
    }

    /// All that came; from now on no more are taken. Called detached.
    pub(crate) fn closed(&self) -> Result<Arc<RecordSet<1>>> {
        let mut state = lock(&self.state);
        let closed = match std::mem::replace(&mut *state, State::Lost) {
            State::Open(records) => Arc::new(records.try_into()?),
            State::Closed(closed) => closed,
            State::Lost => return Err(Error::parameter("these keys were lost; gather them anew")),
        };
        *state = State::Closed(Arc::clone(&closed));
        Ok(closed)
    }

    /// All that came, sorted, with none twice; from now on no more are taken. Called detached.
    pub(crate) fn sorted(&self, job: &Job<'_>) -> Result<Arc<Sorted<1>>> {
        self.closed()?.sorted(job)
    }
}

impl Operation for Gathering {
    type Out = u8;
    const SKIPS_NULLS: bool = true;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, _: Option<&mut [u8]>) -> PyResult<()> {
        if !source.is_empty() {
            self.record(source.domains());
        }
        turns::over(py, source.len(), || self.expect(source.len())).or_raise(py)?;
        let (round, mut failed) = (if self.threads > 1 { ROUND } else { CHUNK }, None);
        turns::detached(py, source.len(), |start| {
            let end = source.len().min(start + round);
            failed = self.take(source, start..end).err();
            if failed.is_some() { source.len() } else { end }
        })?;
        failed.map_or(Ok(()), Err).or_raise(py)
    }
}

/// Gives every chunk of hashes to `take`, detached, with the place of its first; an error ends it.
pub(crate) fn each_chunk(
    py: Python<'_>,
    source: &dyn HashSource,
    mut take: impl FnMut(usize, &[u64]) -> Result<()> + Send,
) -> PyResult<()> {
    let (mut hashes, mut failed) = ([0u64; CHUNK], None);
    turns::detached(py, source.len(), |start| {
        let hashes = &mut hashes[..CHUNK.min(source.len() - start)];
        source.fill(start, hashes);
        failed = take(start, hashes).err();
        if failed.is_some() { source.len() } else { start + hashes.len() }
    })?;
    failed.map_or(Ok(()), Err).or_raise(py)
}

/// Hashes and the values that they come with.
pub(crate) struct Pairs<'a, 'py> {
    values: &'a Beside<'py>,
    records: RefCell<Records<2>>,
    /// Pairs taken so far.
    done: Cell<usize>,
    domains: Cell<KeyDomains>,
}

impl<'a, 'py> Pairs<'a, 'py> {
    /// None yet.
    pub(crate) fn of(values: &'a Beside<'py>, memory: Option<u64>) -> Self {
        Pairs { values, records: RefCell::new(Records::new(memory)), done: Cell::new(0), domains: Cell::default() }
    }

    /// The domains of the keys that came.
    pub(crate) fn domains(&self) -> KeyDomains {
        self.domains.get()
    }

    /// All pairs and their values, if there was a key for each value.
    pub(crate) fn finish(self) -> PyResult<(Records<2>, &'a Values)> {
        self.values.check_number(self.done.get())?;
        Ok((self.records.into_inner(), self.values.known(self.done.get())?))
    }
}

impl Operation for Pairs<'_, '_> {
    type Out = u8;
    const SKIPS_NULLS: bool = true;
    const REFUSES_NULLS: bool = true;

    fn needs_count(&self) -> PyResult<bool> {
        self.values.needs_count()
    }

    fn expect(&self, _: Python<'_>, keys: usize) -> PyResult<()> {
        self.values.values(keys).map(drop)
    }

    fn run(&self, py: Python<'_>, source: &dyn HashSource, _: Option<&mut [u8]>) -> PyResult<()> {
        let first = self.done.get();
        let values = self.values.known(first + source.len())?;
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

/// Where a hash stands in a batch.
pub(crate) struct Sought {
    hash: u64,
    rows: RefCell<Vec<usize>>,
    /// Hashes looked at so far.
    done: Cell<usize>,
}

impl Sought {
    /// Nowhere yet.
    pub(crate) fn of(hash: u64) -> Self {
        Sought { hash, rows: RefCell::default(), done: Cell::new(0) }
    }

    /// The rows where it stands, in order.
    pub(crate) fn rows(self) -> Vec<usize> {
        self.rows.into_inner()
    }
}

impl Operation for Sought {
    type Out = u8;
    const SKIPS_NULLS: bool = true;
    const REFUSES_NULLS: bool = true;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, _: Option<&mut [u8]>) -> PyResult<()> {
        let (first, sought, mut found) = (self.done.get(), self.hash, Vec::new());
        each_chunk(py, source, |start, hashes| {
            let rows = (0..hashes.len()).filter(|&i| hashes[i] == sought);
            found.extend(rows.map(|i| first + start + i));
            Ok(())
        })?;
        self.rows.borrow_mut().append(&mut found);
        self.done.set(first + source.len());
        Ok(())
    }
}

#[pymethods]
impl Gathering {
    #[new]
    #[pyo3(signature = (*, seed: "int" = 0, secret: "bytes | None" = None, memory: "int | None" = None))]
    fn new(
        #[pyo3(from_py_with = params::seed)] seed: u64,
        secret: Option<&Bound<'_, PyAny>>,
        memory: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let memory = memory.filter(|memory| !memory.is_none());
        let memory = memory.map(|memory| params::whole("memory", memory, 1)).transpose()?;
        Ok(Self::of(params::given_hasher(seed, secret)?, memory, 1))
    }

    /// Takes the lines of `block`, a last one without newline among them; how many.
    #[pyo3(signature = (block: "bytes | bytearray | memoryview") -> "int")]
    fn lines(&self, block: &Bound<'_, PyAny>) -> PyResult<u64> {
        let bytes = bytes_of("block", block)?;
        let py = block.py();
        if !bytes.is_empty() {
            self.record(text::LINES);
        }
        py.detach(|| text::hashed(&self.hasher, &bytes, |hashes| self.push(hashes))).or_raise(py)
    }
}
