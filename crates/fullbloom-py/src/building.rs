//! Structures that are made of all their keys at once: gathering these, then the work, which is watched.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use fullbloom_core::key::{KeyDomains, KeyHasher};
use fullbloom_core::parallel::workers::lock;
use fullbloom_core::structure::records::{RecordSet, Sorted};
use fullbloom_core::structure::{Filter, Job};
use fullbloom_core::{Error, Result};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator};

use crate::errors::{OrRaise, parameter, parameter_type};
use crate::extras::pairs::{Beside, Values};
use crate::gathering::{Gathering, Pairs, Sought};
use crate::keys::batch::{self, Operation};
use crate::keys::ready;
use crate::params;

/// Between two looks for signals and two calls of `progress`.
const PAUSE: Duration = Duration::from_millis(100);

/// Where the keys come from.
#[derive(Clone, Copy)]
pub(crate) enum Given<'a, 'py> {
    /// Keys of any kind that a batch takes.
    Keys(&'a Bound<'py, PyAny>),
    /// Hashes that hash_many() gave, or a [`Gathering`].
    Hashes(&'a Bound<'py, PyAny>),
}

impl<'a, 'py> Given<'a, 'py> {
    /// Runs `operation` over them, whose answers are not wanted.
    fn run<O: Operation>(self, operation: &O, hasher: &KeyHasher) -> PyResult<()> {
        match self {
            Given::Keys(keys) => batch::run(operation, hasher, keys, false),
            Given::Hashes(hashes) => ready::run(operation, hashes),
        }
        .map(drop)
    }

    /// What was given.
    fn object(self) -> &'a Bound<'py, PyAny> {
        match self {
            Given::Keys(given) | Given::Hashes(given) => given,
        }
    }
}

/// The error that tells where a key stands that comes with two values, if what was given can be read once more.
fn clash(py: Python<'_>, hasher: &KeyHasher, given: Given<'_, '_>, values: &Values, hash: u64) -> PyResult<()> {
    let found = Sought::of(hash);
    // An iterator has no more keys to give, a set may give them in another order: then the core says what it knows.
    if given.object().cast::<PyIterator>().is_ok() || given.run(&found, hasher).is_err() {
        return Ok(());
    }
    let mut rows = found.rows().into_iter().filter_map(|row| Some((row, values.at(row)?)));
    let Some((first, value)) = rows.next() else { return Ok(()) };
    rows.find(|(_, other)| *other != value).map_or(Ok(()), |(second, other)| {
        Err(parameter(
            py,
            format!(
                "keys number {first} and {second} (from 0) are one key, or have one hash, with two values, {value} and \
                 {other}; give each key one value, or another seed where two keys have one hash"
            ),
        ))
    })
}

/// How ready hashes were made: as a [`Gathering`] says, else by seed and secret.
pub(crate) fn hasher_of(
    hashes: &Bound<'_, PyAny>,
    seed: u64,
    secret: Option<&Bound<'_, PyAny>>,
) -> PyResult<KeyHasher> {
    let given = params::given_hasher(seed, secret)?;
    let Ok(gathering) = hashes.cast::<Gathering>() else { return Ok(given) };
    let own = gathering.get().hasher;
    let same = (own.seed(), own.secret_fingerprint()) == (given.seed(), given.secret_fingerprint());
    if !same && (given.is_keyed() || given.seed() != 0) {
        return Err(parameter(
            hashes.py(),
            "the hashes were gathered under another seed or secret; drop seed and secret",
        ));
    }
    Ok(own)
}

/// The hashes of `keys`, gathered in `own` unless they are a [`Gathering`] themselves.
fn filled<'a>(hasher: &KeyHasher, keys: &'a Bound<'_, PyAny>, own: &'a Gathering) -> PyResult<&'a Gathering> {
    let Ok(gathering) = keys.cast::<Gathering>() else {
        batch::run(own, hasher, keys, false)?;
        return Ok(own);
    };
    let known = gathering.get().hasher;
    if (known.seed(), known.secret_fingerprint()) != (hasher.seed(), hasher.secret_fingerprint()) {
        return Err(parameter(keys.py(), "the keys were gathered under another seed or secret; give the same ones"));
    }
    Ok(gathering.get())
}

/// A structure that was made of keys of these domains.
pub(crate) fn holding<F: Filter>(mut made: F, domains: KeyDomains) -> F {
    made.record(domains);
    made
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
            let message = format!("progress must be a function of (done, total), or None, got {class}");
            return Err(parameter_type(progress.py(), message));
        }
        let memory = memory.filter(|memory| !memory.is_none());
        Ok(How {
            threads,
            progress: progress.map(|progress| progress.clone().unbind()),
            memory: memory.map(|memory| params::whole("memory", memory, 1)).transpose()?,
        })
    }

    /// The keywords, but for memory, which gathering was told.
    pub(crate) fn keywords<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let words = PyDict::new(py);
        words.set_item("threads", self.threads)?;
        words.set_item("progress", self.progress.as_ref())?;
        Ok(words)
    }

    /// Gathers the keys and makes a structure of them.
    pub(crate) fn build<T: Filter>(
        &self,
        py: Python<'_>,
        hasher: &KeyHasher,
        given: Given<'_, '_>,
        make: impl FnOnce(&RecordSet<1>, &Job<'_>) -> Result<T> + Send,
    ) -> PyResult<T> {
        if let Given::Hashes(hashes) = given
            && let Ok(gathering) = hashes.cast::<Gathering>()
        {
            let gathering = gathering.get();
            let made = self.watched(py, |job| make(&*gathering.closed()?, job))?;
            return Ok(holding(made, gathering.domains()));
        }
        let gathering = Gathering::of(*hasher, self.memory, self.threads);
        given.run(&gathering, hasher)?;
        let made = self.watched(py, |job| make(&*gathering.closed()?, job))?;
        Ok(holding(made, gathering.domains()))
    }

    /// Gathers the keys of two sets, each within half of the memory, and makes a structure of both; either may be a
    /// [`Gathering`] under the same hasher. The domains of the keys come with it.
    pub(crate) fn build_of_two<T: Send>(
        &self,
        hasher: &KeyHasher,
        [one, other]: [&Bound<'_, PyAny>; 2],
        make: impl FnOnce(&Sorted<1>, &Sorted<1>, &Job<'_>) -> Result<T> + Send,
    ) -> PyResult<(T, KeyDomains)> {
        let half = self.memory.map(|memory| memory / 2);
        let own = [0, 1].map(|_| Gathering::of(*hasher, half, self.threads));
        let (first, second) = (filled(hasher, one, &own[0])?, filled(hasher, other, &own[1])?);
        let made = self.watched(one.py(), |job| make(&*first.sorted(job)?, &*second.sorted(job)?, job))?;
        Ok((made, first.domains().with(second.domains())))
    }

    /// Gathers pairs and makes a structure of them.
    pub(crate) fn build_pairs<T: Filter>(
        &self,
        py: Python<'_>,
        hasher: &KeyHasher,
        given: Given<'_, '_>,
        values: &Beside<'_>,
        make: impl FnOnce(&RecordSet<2>, &Job<'_>) -> Result<T> + Send,
    ) -> PyResult<T> {
        let pairs = Pairs::of(values, self.memory);
        given.run(&pairs, hasher)?;
        let domains = pairs.domains();
        let (records, values) = pairs.finish()?;
        let (keys, differing) = self.watched(py, |job| {
            let keys = RecordSet::try_from(records)?;
            let differing = keys.sorted(job)?.differing();
            Ok((keys, differing))
        })?;
        if let Some([[hash, _], _]) = differing {
            clash(py, hasher, given, values, hash)?;
        }
        self.watched(py, |job| make(&keys, job)).map(|made| holding(made, domains))
    }

    /// Gathers keys and sorts them, for a structure that is chosen then.
    pub(crate) fn gathered(&self, hasher: KeyHasher, keys: &Bound<'_, PyAny>) -> PyResult<(Gathering, u64)> {
        let gathering = Gathering::of(hasher, self.memory, self.threads);
        batch::run(&gathering, &hasher, keys, false)?;
        let distinct = self.watched(keys.py(), |job| Ok(gathering.sorted(job)?.len()))?;
        Ok((gathering, distinct))
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
                secret: "bytes | bool | None" = None, threads: "int" = 1,
                progress: "Callable[[int, int], object] | None" = None, memory: "int | None" = None
            ))]
            #[allow(clippy::too_many_arguments)] // the public signature
            fn build(
                keys: &Bound<'_, PyAny>,
                $(#[pyo3(from_py_with = arguments::$p)] $p: fullbloom_core::parameter_type!($pt),)*
                $(#[pyo3(from_py_with = arguments::$k)] $k: fullbloom_core::parameter_type!($kt),)*
                #[pyo3(from_py_with = params::seed)] seed: u64,
                secret: Option<&Bound<'_, PyAny>>,
                #[pyo3(from_py_with = params::threads)] threads: usize,
                progress: Option<&Bound<'_, PyAny>>,
                memory: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<Self> {
                let hasher = params::hasher(seed, secret)?;
                let how = How::read(threads, progress, memory)?;
                how.build(keys.py(), &hasher, Given::Keys(keys), |keys, job| {
                    Core::build(keys, $($p,)* $($k,)* hasher, job)
                }).map(Self::wrap)
            }

            /// As build, of ready 64-bit hashes: what hash_many gives with the same seed and secret.
            #[staticmethod]
            #[pyo3(signature = (
                hashes: "Hashes", $($p: $pt $(= $pd)?,)* *, $($k: $kt = $kd,)* seed: "int" = 0,
                secret: "bytes | None" = None, threads: "int" = 1,
                progress: "Callable[[int, int], object] | None" = None, memory: "int | None" = None
            ))]
            #[allow(clippy::too_many_arguments)] // the public signature
            fn build_hashed(
                hashes: &Bound<'_, PyAny>,
                $(#[pyo3(from_py_with = arguments::$p)] $p: fullbloom_core::parameter_type!($pt),)*
                $(#[pyo3(from_py_with = arguments::$k)] $k: fullbloom_core::parameter_type!($kt),)*
                #[pyo3(from_py_with = params::seed)] seed: u64,
                secret: Option<&Bound<'_, PyAny>>,
                #[pyo3(from_py_with = params::threads)] threads: usize,
                progress: Option<&Bound<'_, PyAny>>,
                memory: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<Self> {
                let hasher = crate::building::hasher_of(hashes, seed, secret)?;
                let how = How::read(threads, progress, memory)?;
                how.build(hashes.py(), &hasher, Given::Hashes(hashes), |keys, job| {
                    Core::build(keys, $($p,)* $($k,)* hasher, job)
                }).map(Self::wrap)
            }
        }
    };
}

/// [`build_methods!`] of a class whose keys come with values.
macro_rules! build_pairs_methods {
    ($Class:ident [] [$({$k:ident $kt:tt $kd:tt})*]) => {
        #[pymethods]
        impl $Class {
            #[doc = concat!(
                "The ", stringify!($Class), " of many keys and as many values, or one for all.\n\n",
                "keys: what contains_many takes; nulls are refused. values: whole numbers in any container; none where keys is\n",
                "a mapping. threads: how many may be used; the GIL is released. progress: called with (done, total) now and\n",
                "then; an exception of it ends the work, as Ctrl-C does. memory: bytes that gathering and building may take;\n",
                "what does not fit lies in a nameless file of the folder for temporary files. The class says the rest.")]
            #[staticmethod]
            #[pyo3(signature = (
                keys: "Keys", values: "Numbers | None" = None, *, $($k: $kt = $kd,)* seed: "int" = 0,
                secret: "bytes | bool | None" = None, threads: "int" = 1,
                progress: "Callable[[int, int], object] | None" = None, memory: "int | None" = None
            ))]
            #[allow(clippy::too_many_arguments)] // the public signature
            fn build(
                keys: &Bound<'_, PyAny>,
                values: Option<&Bound<'_, PyAny>>,
                $(#[pyo3(from_py_with = arguments::$k)] $k: fullbloom_core::parameter_type!($kt),)*
                #[pyo3(from_py_with = params::seed)] seed: u64,
                secret: Option<&Bound<'_, PyAny>>,
                #[pyo3(from_py_with = params::threads)] threads: usize,
                progress: Option<&Bound<'_, PyAny>>,
                memory: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<Self> {
                let hasher = params::hasher(seed, secret)?;
                let how = How::read(threads, progress, memory)?;
                let (keys, values) = crate::extras::pairs::of_mapping(keys, values)?;
                how.build_pairs(keys.py(), &hasher, Given::Keys(&keys), &values, |pairs, job| {
                    Core::build(pairs, $($k,)* hasher, job)
                }).map(Self::wrap)
            }

            /// As build, of ready 64-bit hashes: what hash_many gives with the same seed and secret.
            #[staticmethod]
            #[pyo3(signature = (
                hashes: "Hashes", values: "Numbers", *, $($k: $kt = $kd,)* seed: "int" = 0,
                secret: "bytes | None" = None, threads: "int" = 1,
                progress: "Callable[[int, int], object] | None" = None, memory: "int | None" = None
            ))]
            #[allow(clippy::too_many_arguments)] // the public signature
            fn build_hashed(
                hashes: &Bound<'_, PyAny>,
                values: &Bound<'_, PyAny>,
                $(#[pyo3(from_py_with = arguments::$k)] $k: fullbloom_core::parameter_type!($kt),)*
                #[pyo3(from_py_with = params::seed)] seed: u64,
                secret: Option<&Bound<'_, PyAny>>,
                #[pyo3(from_py_with = params::threads)] threads: usize,
                progress: Option<&Bound<'_, PyAny>>,
                memory: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<Self> {
                let hasher = params::given_hasher(seed, secret)?;
                let how = How::read(threads, progress, memory)?;
                let values = crate::extras::pairs::Beside::of("values", values);
                how.build_pairs(hashes.py(), &hasher, Given::Hashes(hashes), &values, |pairs, job| {
                    Core::build(pairs, $($k,)* hasher, job)
                }).map(Self::wrap)
            }
        }
    };
}

pub(crate) use {build_methods, build_pairs_methods};
