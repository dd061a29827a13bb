//! Structures that are built from all their keys at once: collecting the keys, then the build.
//!
//! * [`key_buffer`]: hashes of keys that come in pieces;
//! * [`methods`]: the constructors of a class;
//! * [`freeze`]: a filter's keys as a static filter; [`regenerate`]: the parameters of a filter that replaces another.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use fullbloom_core::key::{KeyDomains, KeyHasher};
use fullbloom_core::parallel::workers::lock;
use fullbloom_core::structure::records::{RecordSet, SortedRecords};
use fullbloom_core::structure::{Filter, Job};
use fullbloom_core::{Error, Result};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator};

use crate::errors::{OrRaise, parameter, parameter_type};
use crate::keys::batch::{self, Operation};
use crate::keys::ready;
use crate::operations::FindHash;
use crate::operations::values::{self, KeyValues, Values};
use crate::parameters;

use key_buffer::{CollectPairs, KeyBuffer};

pub(crate) mod freeze;
pub(crate) mod key_buffer;
pub(crate) mod methods;
pub(crate) mod regenerate;

/// Between two checks for signals and two calls of `progress`.
const PAUSE: Duration = Duration::from_millis(100);

/// Where the keys come from.
#[derive(Clone, Copy)]
pub(crate) enum KeySource<'a, 'py> {
    /// Keys of any kind that a batch takes.
    Keys(&'a Bound<'py, PyAny>),
    /// Hashes from hash_many(), or a [`KeyBuffer`].
    Hashes(&'a Bound<'py, PyAny>),
}

impl<'a, 'py> KeySource<'a, 'py> {
    /// Runs `operation` over them and drops its results.
    fn run<O: Operation>(self, operation: &O, hasher: &KeyHasher) -> PyResult<()> {
        match self {
            KeySource::Keys(keys) => batch::run(operation, hasher, keys, false),
            KeySource::Hashes(hashes) => ready::run(operation, hashes),
        }
        .map(drop)
    }

    /// The argument itself.
    fn object(self) -> &'a Bound<'py, PyAny> {
        match self {
            KeySource::Keys(object) | KeySource::Hashes(object) => object,
        }
    }

    /// Reads the hasher from seed and secret; hashes in a [`KeyBuffer`] have its hasher.
    pub(crate) fn read_hasher(self, seed: u64, secret: Option<&Bound<'_, PyAny>>) -> PyResult<KeyHasher> {
        let KeySource::Hashes(hashes) = self else { return parameters::create_hasher(seed, secret) };
        let hasher = parameters::read_hasher(seed, secret)?;
        let Ok(buffer) = hashes.cast::<KeyBuffer>() else { return Ok(hasher) };
        let own = buffer.get().hasher;
        if !is_same(&own, &hasher) && (hasher.is_keyed() || hasher.seed() != 0) {
            let message = "the hashes were collected under another seed or secret; drop seed and secret";
            return Err(parameter(hashes.py(), message));
        }
        Ok(own)
    }
}

/// The error that names both numbers of a key with two values, if the keys can be read again.
fn explain_conflict(
    py: Python<'_>,
    hasher: &KeyHasher,
    source: KeySource<'_, '_>,
    values: &Values,
    hash: u64,
) -> PyResult<()> {
    let (mut first, mut second) = (None, None);
    let visit = |row| match (values.at(row), first, second) {
        (Some(value), None, _) => first = Some((row, value)),
        (Some(other), Some((_, value)), None) if other != value => second = Some((row, other)),
        _ => {}
    };
    // An iterator has no more keys, a set may return them in another order: then the core's message suffices.
    let is_read =
        source.object().cast::<PyIterator>().is_err() && source.run(&FindHash::new(hash, visit), hasher).is_ok();
    let (true, Some((first, value)), Some((second, other))) = (is_read, first, second) else { return Ok(()) };
    Err(parameter(
        py,
        format!(
            "keys number {first} and {second} (from 0) are one key, or have one hash, with two values, {value} and \
             {other}; give each key one value, or another seed where two keys have one hash"
        ),
    ))
}

/// Whether two hashers have one seed and one secret.
fn is_same(one: &KeyHasher, other: &KeyHasher) -> bool {
    (one.seed(), one.secret_fingerprint()) == (other.seed(), other.secret_fingerprint())
}

/// Collects the hashes of `keys` in `own`, unless they are a [`KeyBuffer`] themselves.
fn collect<'a>(hasher: &KeyHasher, keys: &'a Bound<'_, PyAny>, own: &'a KeyBuffer) -> PyResult<&'a KeyBuffer> {
    let Ok(buffer) = keys.cast::<KeyBuffer>() else {
        batch::run(own, hasher, keys, false)?;
        return Ok(own);
    };
    if !is_same(&buffer.get().hasher, hasher) {
        return Err(parameter(keys.py(), "the keys were collected under another seed or secret; give the same ones"));
    }
    Ok(buffer.get())
}

/// Records in `structure` the domains of the keys that it was built from.
pub(crate) fn record_domains<F: Filter>(mut structure: F, domains: KeyDomains) -> F {
    structure.record(domains);
    structure
}

/// The keywords that every `build` takes.
pub(crate) struct BuildOptions {
    threads: usize,
    progress: Option<Py<PyAny>>,
    memory: Option<u64>,
}

impl BuildOptions {
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
        Ok(BuildOptions {
            threads,
            progress: progress.map(|progress| progress.clone().unbind()),
            memory: parameters::optional_whole("memory", memory, 1)?,
        })
    }

    /// The keywords except memory, which bounds the collecting.
    pub(crate) fn keywords<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let words = PyDict::new(py);
        words.set_item("threads", self.threads)?;
        words.set_item("progress", self.progress.as_ref())?;
        Ok(words)
    }

    /// Collects the keys and builds a structure from them.
    pub(crate) fn build<T: Filter>(
        &self,
        hasher: &KeyHasher,
        source: KeySource<'_, '_>,
        build: impl FnOnce(&RecordSet<1>, &Job<'_>) -> Result<T> + Send,
    ) -> PyResult<T> {
        let own = KeyBuffer::create(*hasher, self.memory, self.threads);
        let buffer = match source {
            KeySource::Hashes(hashes) if hashes.cast::<KeyBuffer>().is_ok() => hashes.cast::<KeyBuffer>()?.get(),
            _ => {
                source.run(&own, hasher)?;
                &own
            }
        };
        let built = self.run(source.object().py(), |job| build(&*buffer.close()?, job))?;
        Ok(record_domains(built, buffer.domains()))
    }

    /// Collects the keys of two sets, each within half of the memory, and builds a structure from both; either may be a
    /// [`KeyBuffer`] under the same hasher. Returns the domains of the keys, too.
    pub(crate) fn build_from_two<T: Send>(
        &self,
        hasher: &KeyHasher,
        [one, other]: [&Bound<'_, PyAny>; 2],
        build: impl FnOnce(&SortedRecords<1>, &SortedRecords<1>, &Job<'_>) -> Result<T> + Send,
    ) -> PyResult<(T, KeyDomains)> {
        let half = self.memory.map(|memory| memory / 2);
        let own = [0, 1].map(|_| KeyBuffer::create(*hasher, half, self.threads));
        let (first, second) = (collect(hasher, one, &own[0])?, collect(hasher, other, &own[1])?);
        let built = self.run(one.py(), |job| build(&*first.sort(job)?, &*second.sort(job)?, job))?;
        Ok((built, first.domains().with(second.domains())))
    }

    /// Collects pairs and builds a structure from them; the keys may be a mapping without `values`.
    pub(crate) fn build_pairs<T: Filter>(
        &self,
        hasher: &KeyHasher,
        source: KeySource<'_, '_>,
        values: Option<&Bound<'_, PyAny>>,
        build: impl FnOnce(&RecordSet<2>, &Job<'_>) -> Result<T> + Send,
    ) -> PyResult<T> {
        let py = source.object().py();
        let (keys, values) = match source {
            KeySource::Keys(keys) => values::read_mapping(keys, values)?,
            KeySource::Hashes(hashes) => {
                let values = values.cloned().unwrap_or_else(|| py.None().into_bound(py));
                (hashes.clone(), KeyValues::new("values", &values))
            }
        };
        let source = match source {
            KeySource::Keys(_) => KeySource::Keys(&keys),
            KeySource::Hashes(_) => KeySource::Hashes(&keys),
        };
        let pairs = CollectPairs::new(&values, self.memory);
        source.run(&pairs, hasher)?;
        let domains = pairs.domains();
        let (records, values) = pairs.finish()?;
        let (keys, differing) = self.run(py, |job| {
            let keys = RecordSet::try_from(records)?;
            let differing = keys.sort(job)?.differing();
            Ok((keys, differing))
        })?;
        if let Some([[hash, _], _]) = differing {
            explain_conflict(py, hasher, source, values, hash)?;
        }
        self.run(py, |job| build(&keys, job)).map(|built| record_domains(built, domains))
    }

    /// Collects keys and sorts them, for a structure that is chosen by their number.
    fn collect_sorted(&self, hasher: KeyHasher, keys: &Bound<'_, PyAny>) -> PyResult<(KeyBuffer, u64)> {
        let buffer = KeyBuffer::create(hasher, self.memory, self.threads);
        batch::run(&buffer, &hasher, keys, false)?;
        let distinct = self.run(keys.py(), |job| Ok(buffer.sort(job)?.len()))?;
        Ok((buffer, distinct))
    }

    /// Runs long work detached; checks for signals and calls `progress` now and then, an exception of which ends it.
    fn run<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&Job<'_>) -> Result<T> + Send) -> PyResult<T> {
        let (last, raised) = (Mutex::new(Instant::now()), Mutex::new(None));
        let report = |py: Python<'_>, done: u64, total: u64| -> PyResult<()> {
            py.check_signals()?;
            self.progress.as_ref().map_or(Ok(()), |progress| progress.call1(py, (done, total)).map(drop))
        };
        let watch = |done: u64, total: u64| {
            // If another thread reports at this moment, there is nothing to add.
            let Ok(mut last) = last.try_lock() else { return Ok(()) };
            if last.elapsed() < PAUSE {
                return Ok(());
            }
            *last = Instant::now();
            Python::attach(|py| report(py, done, total)).map_err(|error| {
                lock(&raised).get_or_insert(error);
                Error::parameter("ended by the caller")
            })
        };
        let result = py.detach(|| work(&Job::with_watch(self.threads, &watch)));
        if let Some(error) = lock(&raised).take() {
            return Err(error);
        }
        let result = result.or_raise(py)?;
        report(py, 1, 1)?;
        Ok(result)
    }
}
