//! Structures that are made of all their keys at once: gathering these, then the work, which is watched.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use bloomery_core::key::KeyHasher;
use bloomery_core::key::source::CHUNK;
use bloomery_core::parallel::workers::lock;
use bloomery_core::structure::records::{Record, Records, Sorted};
use bloomery_core::structure::{HashSource, Job};
use bloomery_core::{Error, Result};
use pyo3::prelude::*;

use crate::errors::{OrRaise, parameter_type};
use crate::keys::batch::{self, Operation};
use crate::keys::ready;
use crate::{params, turns};

/// Between two looks for signals and two calls of `progress`.
const PAUSE: Duration = Duration::from_millis(100);

/// Where the keys come from.
#[derive(Clone, Copy)]
pub(crate) enum Given<'a, 'py> {
    /// Keys of any kind that a batch takes.
    Keys(&'a Bound<'py, PyAny>),
    /// Hashes that hash_many() gave.
    Hashes(&'a Bound<'py, PyAny>),
}

/// How the work is done: the keywords that every `build` takes.
pub(crate) struct How {
    threads: usize,
    progress: Option<Py<PyAny>>,
    memory: Option<u64>,
}

impl How {
    /// Reads the keywords.
    pub(crate) fn read(
        threads: usize,
        progress: Option<&Bound<'_, PyAny>>,
        memory: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let progress = progress.filter(|progress| !progress.is_none());
        if let Some(progress) = progress.filter(|progress| !progress.is_callable()) {
            let class = progress.get_type().name()?;
            let message = format!("progress must be a function of (done, total), or None, got a {class}");
            return Err(parameter_type(progress.py(), message));
        }
        let memory = memory.filter(|memory| !memory.is_none());
        Ok(How {
            threads,
            progress: progress.map(|progress| progress.clone().unbind()),
            memory: memory.map(|memory| params::whole("memory", memory, 1)).transpose()?,
        })
    }

    /// Gathers the keys and makes a structure of them.
    pub(crate) fn build<T: Send>(
        &self,
        py: Python<'_>,
        hasher: &KeyHasher,
        given: Given<'_, '_>,
        make: impl FnOnce(&Sorted<1>, &Job<'_>) -> Result<T> + Send,
    ) -> PyResult<T> {
        let gather = Gather { records: Mutex::new(Records::new(self.memory)) };
        match given {
            Given::Keys(keys) => batch::run(&gather, hasher, keys, false)?,
            Given::Hashes(hashes) => ready::run(&gather, hashes)?,
        };
        let records = gather.records.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.watched(py, |job| make(&records.sorted(job)?, job))
    }

    /// Does long work detached; looks for signals and calls `progress` now and then, an exception of which ends it.
    fn watched<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&Job<'_>) -> Result<T> + Send) -> PyResult<T> {
        let (last, raised) = (Mutex::new(Instant::now()), Mutex::new(None));
        let tell = |py: Python<'_>, done: u64, total: u64| -> PyResult<()> {
            py.check_signals()?;
            self.progress.as_ref().map_or(Ok(()), |progress| progress.call1(py, (done, total)).map(drop))
        };
        let watch = |done: u64, total: u64| {
            // Who finds another thread telling has nothing to add.
            let Ok(mut last) = last.try_lock() else { return Ok(()) };
            if last.elapsed() < PAUSE {
                return Ok(());
            }
            *last = Instant::now();
            Python::attach(|py| tell(py, done, total)).map_err(|error| {
                lock(&raised).get_or_insert(error);
                Error::parameter("ended by the caller")
            })
        };
        let made = py.detach(|| work(&Job::watched(self.threads, &watch)));
        if let Some(error) = lock(&raised).take() {
            return Err(error);
        }
        let made = made.or_raise(py)?;
        tell(py, 1, 1)?;
        Ok(made)
    }
}

/// Gathering.
pub(crate) struct Gather {
    records: Mutex<Records<1>>,
}

impl Operation for Gather {
    type Out = u8;
    const SKIPS_NULLS: bool = true;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, _: Option<&mut [u8]>) -> PyResult<()> {
        let (mut hashes, mut failed) = ([0u64; CHUNK], None);
        turns::detached(py, source.len(), |start| {
            let hashes = &mut hashes[..CHUNK.min(source.len() - start)];
            source.fill(start, hashes);
            let mut records = lock(&self.records);
            failed = hashes.iter().try_for_each(|&hash| records.push(Record::from([hash]))).err();
            if failed.is_some() { source.len() } else { start + hashes.len() }
        })?;
        failed.map_or(Ok(()), Err).or_raise(py)
    }
}

/// The constructors of a class of structures that are built.
macro_rules! build_methods {
    ($Class:ident [$({$p:ident $pt:tt [$($pd:tt)?]})*] [$({$k:ident $kt:tt $kd:tt})*]) => {
        #[pymethods]
        impl $Class {
            #[doc = concat!(
                "The ", stringify!($Class), " of many keys; takes what contains_many takes, skips nulls.\n\n",
                "threads: how many may be used; the GIL is released. progress: called with (done, total) now and then; an\n",
                "exception of it ends the work, as Ctrl-C does. memory: bytes that gathering and building may take; what does\n",
                "not fit lies in a nameless file of the folder for temporary files. The class says the rest.")]
            #[staticmethod]
            #[pyo3(signature = (
                keys: "Keys", $($p: $pt $(= $pd)?,)* *, $($k: $kt = $kd,)* seed: "int" = 0,
                secret: "bytes | bool | None" = None, threads: "int" = shared::ONE,
                progress: "Callable[[int, int], object] | None" = None, memory: "int | None" = None
            ))]
            #[allow(clippy::too_many_arguments)] // the public signature
            fn build(
                keys: &Bound<'_, PyAny>,
                $(#[pyo3(from_py_with = arguments::$p)] $p: bloomery_core::parameter_type!($pt),)*
                $(#[pyo3(from_py_with = arguments::$k)] $k: bloomery_core::parameter_type!($kt),)*
                #[pyo3(from_py_with = params::seed)] seed: u64,
                secret: Option<&Bound<'_, PyAny>>,
                threads: shared::Threads,
                progress: Option<&Bound<'_, PyAny>>,
                memory: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<Self> {
                let hasher = params::hasher(seed, secret)?;
                let how = How::read(threads.0, progress, memory)?;
                how.build(keys.py(), &hasher, Given::Keys(keys), |keys, job| {
                    Core::build(keys, $($p,)* $($k,)* hasher, job)
                }).map(Self::wrap)
            }

            /// As build, of ready 64-bit hashes: what hash_many gives with the same seed and secret.
            #[staticmethod]
            #[pyo3(signature = (
                hashes: "Hashes", $($p: $pt $(= $pd)?,)* *, $($k: $kt = $kd,)* seed: "int" = 0,
                secret: "bytes | None" = None, threads: "int" = shared::ONE,
                progress: "Callable[[int, int], object] | None" = None, memory: "int | None" = None
            ))]
            #[allow(clippy::too_many_arguments)] // the public signature
            fn build_hashed(
                hashes: &Bound<'_, PyAny>,
                $(#[pyo3(from_py_with = arguments::$p)] $p: bloomery_core::parameter_type!($pt),)*
                $(#[pyo3(from_py_with = arguments::$k)] $k: bloomery_core::parameter_type!($kt),)*
                #[pyo3(from_py_with = params::seed)] seed: u64,
                secret: Option<&Bound<'_, PyAny>>,
                threads: shared::Threads,
                progress: Option<&Bound<'_, PyAny>>,
                memory: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<Self> {
                let hasher = params::given_hasher(seed, secret)?;
                let how = How::read(threads.0, progress, memory)?;
                how.build(hashes.py(), &hasher, Given::Hashes(hashes), |keys, job| {
                    Core::build(keys, $($p,)* $($k,)* hasher, job)
                }).map(Self::wrap)
            }
        }
    };
}
pub(crate) use build_methods;
