//! What only `BloomierMap` has: values of keys, and others in their place.

use std::cell::Cell;

use bloomery_core::key::source::CHUNK;
use bloomery_core::static_filters::BloomierMap as Core;
use bloomery_core::structure::HashSource;
use pyo3::prelude::*;

use super::pairs::Values;
use crate::biased_lock::BiasedLock;
use crate::classes::bloomier::BloomierMap;
use crate::classes::shared::absent;
use crate::errors::{OrRaise, parameter};
use crate::keys::batch::{self, Operation};
use crate::keys::ready;
use crate::keys::scalar::hash_key;
use crate::operations::{Ask, AskOnThreads, write_chunks};
use crate::params;

/// Keys a batch keeps the map for itself: a few milliseconds.
const HELD: usize = 64 * CHUNK;

/// Giving keys other values.
struct Assign<'a> {
    lock: &'a BiasedLock<Core>,
    values: &'a Values,
    /// Keys dealt with so far.
    done: Cell<usize>,
}

impl Operation for Assign<'_> {
    type Out = u8;
    const SKIPS_NULLS: bool = true;
    const REFUSES_NULLS: bool = true;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, mut out: Option<&mut [u8]>) -> PyResult<()> {
        let (first, values) = (self.done.get(), self.values);
        let last = (first + source.len()).checked_sub(1);
        if last.is_some_and(|last| values.at(last).is_none()) {
            return Err(parameter(py, "there must be as many values as keys, got fewer"));
        }
        write_chunks(self.lock, py, source, HELD, |map, start, hashes| {
            for (i, &hash) in hashes.iter().enumerate() {
                let Some(value) = values.at(first + start + i) else { continue };
                let known = map.set_hash(hash, value)?;
                if let Some(out) = out.as_deref_mut() {
                    out[start + i] = u8::from(known);
                }
            }
            Ok(())
        })?;
        self.done.set(first + source.len());
        Ok(())
    }
}

#[pymethods]
impl BloomierMap {
    /// The value of a key, never wrong for one it was built of; `default` for one that is certainly absent.
    ///
    /// An absent key has some value at the rate of false positives.
    #[pyo3(signature = (key: "Key", default: "Any" = None, /) -> "int | Any")]
    fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (py, hash) = (key.py(), hash_key(&self.hasher, key)?);
        match self.lock.read(py, |map| map.get_hash(hash)) {
            Some(value) => Ok(Some(value.into_pyobject(py)?.into_any())),
            None => Ok(default),
        }
    }

    /// One value a key, `default` where it is certainly absent, in the caller's kind; takes what contains_many takes.
    ///
    /// threads: how many may be used; the GIL is released. Cost: three cache lines a key, one more where values can be
    /// changed: some 10 ns.
    #[pyo3(signature = (keys: "Keys", *, default: "int" = 0, threads: "int" = 1) -> "Answers[int]")]
    fn get_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = default)] default: u64,
        #[pyo3(from_py_with = params::threads)] threads: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let ask = |map: &Core, hashes: &[u64], values: &mut [u64]| map.get_hashes(hashes, default, values);
        batch::run(&AskOnThreads { lock: &self.lock, ask: &ask, threads }, &self.hasher, keys, true)
    }

    /// The values of ready 64-bit hashes (see hash_many), `default` where they are certainly absent: an int for one, as
    /// get_many answers for a batch.
    ///
    /// >>> from bloomery import BloomierMap, hash_key
    /// >>> ages = BloomierMap.build({"ada": 36, "alan": 41}, check_bits=30)
    /// >>> ages.get_hashed(hash_key("ada")), ages.get_hashed([hash_key("alan"), 1], default=7)
    /// (36, [41, 7])
    #[pyo3(signature = (hashes: "Hashes | SupportsIndex", *, default: "int" = 0) -> "Answers[int]")]
    fn get_hashed<'py>(
        &self,
        hashes: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = default)] default: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = hashes.py();
        if let Some(hash) = ready::single(hashes)? {
            let value = self.lock.read(py, |map| map.get_hash(hash)).unwrap_or(default);
            return Ok(value.into_pyobject(py)?.into_any());
        }
        let ask = |map: &Core, hashes: &[u64], values: &mut [u64]| map.get_hashes(hashes, default, values);
        ready::run(&Ask { lock: &self.lock, ask: &ask }, hashes)
    }

    /// Gives many keys other values, as many as keys or one for all; answers, for each, whether it was there.
    ///
    /// All values are checked before the first is written; nulls are refused. A key that it was not built of takes, at the
    /// rate of false positives, the place of a stored one, whose value is lost: give it stored keys only. Raises
    /// ParameterError, KeyTypeError, and ReadOnlyFilter unless it was built with mutable=True and lies in memory.
    #[pyo3(signature = (keys: "Keys", values: "Numbers") -> "Answers[bool]")]
    fn set_many<'py>(&self, keys: &Bound<'py, PyAny>, values: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, values) = (keys.py(), Values::read("values", values)?);
        if keys.hasattr("__len__")? {
            values.check_number(py, keys.len()?)?;
        }
        let settable = |map: &Core| values.largest().map_or(Ok(()), |value| map.check_settable(value));
        self.lock.read(py, settable).or_raise(py)?;
        let assign = Assign { lock: &self.lock, values: &values, done: Cell::new(0) };
        let answers = batch::run(&assign, &self.hasher, keys, true)?;
        values.check_number(py, assign.done.get())?;
        Ok(answers)
    }

    /// It keeps no keys to go through, and brackets alone would make a sequence of it.
    #[classattr]
    fn __iter__() -> Option<bool> {
        None
    }

    /// The value of a key; KeyError for one that is certainly absent.
    fn __getitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        let hash = hash_key(&self.hasher, key)?;
        self.lock.read(key.py(), |map| map.get_hash(hash)).ok_or_else(|| absent(key))
    }

    /// Gives a stored key another value; KeyError for one that is certainly absent. set_many says what else.
    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, hash) = (key.py(), hash_key(&self.hasher, key)?);
        let value = params::whole("value", value, 0)?;
        let known = self.lock.write(py, |map| map.set_hash(hash, value)).or_raise(py)?;
        if known { Ok(()) } else { Err(absent(key)) }
    }
}

/// Reads `default=`.
fn default(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    params::whole("default", value, 0)
}
