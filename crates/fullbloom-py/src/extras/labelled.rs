//! Methods of classes whose `add` takes a label or a value with each key, and of `LayeredBloomFilter`: depths.

use std::cell::Cell;

use fullbloom_core::key::source::CHUNK;
use fullbloom_core::key::{Domain, KeyDomains, KeyHasher};
use fullbloom_core::labelled::valued::{Kind, Valued};
use fullbloom_core::structure::{Countable, Filter, HashSource};
use pyo3::prelude::*;

use crate::classes::compact::CompactApproximator;
use crate::classes::layered::LayeredBloomFilter;
use crate::classes::spatial::SpatialBloomFilter;
use crate::errors::OrRaise;
use crate::keys::batch::{self, Operation};
use crate::keys::scalar::hash_key_in;
use crate::locking::biased_lock::BiasedLock;
use crate::operations::values::{KeyValues, Values};
use crate::operations::warnings::{hash_lookup, warn_if_pairs_overfull};
use crate::operations::{Ask, write_chunks};
use crate::parameters;

/// Keys for which a batch keeps a filter locked: a few milliseconds.
const LOCKED: usize = 64 * CHUNK;

/// Adds pairs.
struct Put<'a, 'py, V: Kind> {
    lock: &'a BiasedLock<Valued<V>>,
    values: &'a KeyValues<'py>,
    /// Pairs added so far.
    done: Cell<usize>,
}

impl<V: Kind> Operation for Put<'_, '_, V> {
    type Out = u8;
    const SKIPS_NULLS: bool = true;
    const REFUSES_NULLS: bool = true;

    fn needs_count(&self) -> PyResult<bool> {
        self.values.needs_count()
    }

    fn expect(&self, py: Python<'_>, keys: usize) -> PyResult<()> {
        let values = self.values.read(keys)?;
        let encodable = |filter: &Valued<V>| values.all().iter().try_for_each(|&value| filter.encode(value).map(drop));
        self.lock.detach(py, |session| session.read(encodable)).or_raise(py)
    }

    fn run(&self, py: Python<'_>, source: &dyn HashSource, mut out: Option<&mut [u8]>) -> PyResult<()> {
        let first = self.done.get();
        let values = self.values.get(first + source.len())?;
        let one = [values.all().first().copied().unwrap_or_default(); CHUNK];
        let values = match values {
            Values::One(_) => None,
            Values::Each(all) => all.get(first..first + source.len()),
        };
        self.lock.detach(py, |session| session.write(|filter| filter.expect_writes(source.len())));
        let added = write_chunks(self.lock, py, source, LOCKED, |filter, start, hashes| {
            let end = start + hashes.len();
            let values = values.map_or(&one[..hashes.len()], |values| &values[start..end]);
            filter.put_hashes(hashes, values, out.as_deref_mut().map(|out| &mut out[start..end]))?;
            filter.record(source.domains());
            Ok(())
        });
        self.done.set(first + source.len());
        added
    }
}

/// Adds one pair and warns if the filter is over capacity.
fn put_one<V: Kind>(
    py: Python<'_>,
    lock: &BiasedLock<Valued<V>>,
    (hash, domain): (u64, Domain),
    value: u64,
) -> PyResult<bool>
where
    Valued<V>: Filter,
{
    let put = |filter: &mut Valued<V>| {
        let added = filter.put_hash(hash, value)?;
        filter.record(KeyDomains::of(domain));
        Ok(added)
    };
    let added = lock.write(py, put).or_raise(py)?;
    warn_if_pairs_overfull(py, lock)?;
    Ok(added)
}

/// Adds many pairs; every value is checked before the first pair is added.
fn put_many<'py, V: Kind>(
    lock: &BiasedLock<Valued<V>>,
    hasher: &KeyHasher,
    keys: &Bound<'py, PyAny>,
    values: &KeyValues<'py>,
    wanted: bool,
) -> PyResult<Bound<'py, PyAny>>
where
    Valued<V>: Filter,
{
    let py = keys.py();
    let put = Put { lock, values, done: Cell::new(0) };
    let results = batch::run(&put, hasher, keys, wanted);
    warn_if_pairs_overfull(py, lock)?;
    let results = results?;
    values.check_number(put.done.get())?;
    Ok(results)
}

/// Methods of classes whose keys come with a `$value` (several: `$values`), which `$get` and `$get_many` look up.
macro_rules! pair_methods {
    ($Class:ident, $value:ident, $values:ident, $get:ident, $get_many:ident, $meaning:literal) => {
        #[pymethods]
        impl $Class {
            /// True when the key was probably added, False when it certainly was not.
            fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
                let hash = hash_lookup(&self.lock, &self.hasher, key)?;
                Ok(self.lock.read(py, |filter| filter.contains_hash(hash)))
            }

            #[doc = concat!(
                "Adds a key with its ", stringify!($value), "; True when the key was certainly new.\n\n",
                "Raises KeyTypeError, ParameterError, ReadOnlyFilter; warns CapacityWarning once past capacity.")]
            #[pyo3(signature = (key: "Key", $value: "int"))]
            fn add(&self, key: &Bound<'_, PyAny>, $value: &Bound<'_, PyAny>) -> PyResult<bool> {
                let hashed = hash_key_in(&self.hasher, key)?;
                let value = parameters::parse_whole(stringify!($value), $value, 0)?;
                put_one(key.py(), &self.lock, hashed, value)
            }

            #[doc = concat!(
                "Adds many keys, with as many ", stringify!($values), " (or one for all).\n\n",
                "All ", stringify!($values), " are checked before the first key is added. Nulls are refused.")]
            #[pyo3(signature = (keys: "Keys", $values: "Numbers") -> "None")]
            fn update(&self, keys: &Bound<'_, PyAny>, $values: &Bound<'_, PyAny>) -> PyResult<()> {
                let values = KeyValues::new(stringify!($value), $values);
                put_many(&self.lock, &self.hasher, keys, &values, false).map(drop)
            }

            /// As update, and returns, for each key, whether it was new; as contains_many returns results.
            #[pyo3(signature = (keys: "Keys", $values: "Numbers") -> "Answers[bool]")]
            fn add_many<'py>(
                &self,
                keys: &Bound<'py, PyAny>,
                $values: &Bound<'py, PyAny>,
            ) -> PyResult<Bound<'py, PyAny>> {
                let values = KeyValues::new(stringify!($value), $values);
                put_many(&self.lock, &self.hasher, keys, &values, true)
            }

            #[doc = $meaning]
            #[pyo3(signature = (key: "Key", /))]
            fn $get(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
                let hash = hash_lookup(&self.lock, &self.hasher, key)?;
                Ok(self.lock.read(key.py(), |filter| filter.get_hash(hash)))
            }

            #[doc = concat!("One ", stringify!($value), " per key, in the same container type; takes what contains_many takes.")]
            #[pyo3(signature = (keys: "Keys") -> "Answers[int]")]
            fn $get_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                let ask = &Valued::get_hashes;
                batch::run(&Ask { lock: &self.lock, ask }, &self.hasher, keys, true)
            }

            /// Forgets every key.
            fn clear(&self, py: Python<'_>) -> PyResult<()> {
                let clear = |filter: &mut Valued<_>| filter.clear().map(|()| filter.hasher_mut().domains_mut().clear());
                self.lock.change(py, clear).or_raise(py)
            }
        }
    };
}

pair_methods!(
    SpatialBloomFilter,
    label,
    labels,
    label,
    label_many,
    "The label of a key: 0 when it is certainly in no area, never below its own."
);

#[pymethods]
impl SpatialBloomFilter {
    /// Number of areas, the largest label.
    #[getter]
    fn areas(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, |f| f.largest())
    }

    /// Cells that hold each label, label 1 first: O(nbytes).
    #[pyo3(signature = () -> "list[int]")]
    fn label_cells(&self, py: Python<'_>) -> Vec<u64> {
        self.lock.look(py, |f| f.label_cells())
    }

    /// Rate at which a key of no area is given each label now, label 1 first: O(nbytes).
    #[pyo3(signature = () -> "list[float]")]
    fn label_rates(&self, py: Python<'_>) -> Vec<f64> {
        self.lock.look(py, |f| f.label_rates())
    }
}

pair_methods!(
    CompactApproximator,
    value,
    values,
    get,
    get_many,
    "The value of a key: never below the join of those added with it; the bottom when there was none."
);

#[pymethods]
impl LayeredBloomFilter {
    /// Leading layers that hold the key: 0 when it was certainly never added, never below
    /// min(times added, layers).
    #[pyo3(signature = (key: "Key", /))]
    fn depth(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        let hash = hash_lookup(&self.lock, &self.hasher, key)?;
        Ok(self.lock.read(key.py(), |f| f.depth_hash(hash)))
    }

    /// One depth per key, in the same container type; takes what contains_many takes.
    #[pyo3(signature = (keys: "Keys") -> "Answers[int]")]
    fn depth_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        batch::run(&Ask { lock: &self.lock, ask: &Countable::count_hashes }, &self.hasher, keys, true)
    }

    /// Estimated number of keys in each layer, first to last: keys that were added at least once, twice, ...
    #[pyo3(signature = () -> "list[float]")]
    fn layer_counts(&self, py: Python<'_>) -> Vec<f64> {
        self.lock.look(py, |f| f.layer_counts())
    }
}
