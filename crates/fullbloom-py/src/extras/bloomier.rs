//! What only `BloomierMap` has: values of keys, and their replacement.

use std::cell::{Cell, RefCell};

use fullbloom_core::cells::allocation::{reserve, zeroed};
use fullbloom_core::key::source::CHUNK;
use fullbloom_core::static_filters::BloomierMap as Core;
use fullbloom_core::structure::HashSource;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::classes::bloomier::BloomierMap;
use crate::classes::shared::absent;
use crate::dataframes::results;
use crate::errors::OrRaise;
use crate::keys::batch::{self, Operation};
use crate::keys::ready;
use crate::locking::biased_lock::BiasedLock;
use crate::locking::slices;
use crate::operations::values::KeyValues;
use crate::operations::warnings::{expect_batch, hash_lookup};
use crate::operations::{Ask, AskOnThreads, write_chunks};
use crate::parameters;

/// Keys for which a batch keeps the map locked: a few milliseconds.
const LOCKED: usize = 64 * CHUNK;

/// Replaces the values of keys.
struct Assign<'a, 'py> {
    lock: &'a BiasedLock<Core>,
    values: &'a KeyValues<'py>,
    /// Keys processed so far.
    done: Cell<usize>,
}

impl Operation for Assign<'_, '_> {
    type Out = u8;
    const SKIPS_NULLS: bool = true;
    const REFUSES_NULLS: bool = true;

    fn needs_count(&self) -> PyResult<bool> {
        self.values.needs_count()
    }

    fn expect(&self, py: Python<'_>, keys: usize) -> PyResult<()> {
        let values = self.values.read(keys)?;
        let check = |map: &Core| values.largest().map_or(Ok(()), |value| map.check_settable(value));
        self.lock.read(py, check).or_raise(py)
    }

    fn run(&self, py: Python<'_>, source: &dyn HashSource, mut out: Option<&mut [u8]>) -> PyResult<()> {
        let first = self.done.get();
        let values = self.values.get(first + source.len())?;
        expect_batch(py, self.lock, source)?;
        write_chunks(self.lock, py, source, LOCKED, |map, start, hashes| {
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

/// Looks up the values of keys, some of which have no value.
struct Find<'a> {
    lock: &'a BiasedLock<Core>,
    threads: usize,
    /// For each key since the last call of `mark_missing`, or each key of the batch without such calls: 1 if it has a value.
    valid: RefCell<Vec<u8>>,
}

impl<'a> Find<'a> {
    fn new(lock: &'a BiasedLock<Core>, threads: usize) -> Self {
        Find { lock, threads, valid: RefCell::default() }
    }

    /// The results, without those of keys that have no value.
    fn finish<'py>(self, answers: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let valid = self.valid.into_inner();
        // A column has its nulls already.
        if valid.is_empty() && !answers.is_instance_of::<PyList>() && !is_array(&answers)? {
            return Ok(answers);
        }
        results::mask(answers, &valid)
    }

    fn look_up(&self, py: Python<'_>, source: &dyn HashSource, default: u64, out: &mut [u64]) -> PyResult<()> {
        let ask = |map: &Core, hashes: &[u64], values: &mut [u64]| map.get_hashes(hashes, default, values);
        AskOnThreads { lock: self.lock, ask: &ask, threads: self.threads }.run(py, source, Some(out))
    }
}

impl Operation for Find<'_> {
    type Out = u64;
    const SKIPS_NULLS: bool = false;
    const SPARSE: bool = true;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, out: Option<&mut [u64]>) -> PyResult<()> {
        let Some(out) = out else { return Ok(()) };
        let mut valid: Vec<u8> = zeroed(out.len()).or_raise(py)?;
        self.look_up(py, source, u64::MAX, out)?;
        if self.lock.read(py, |map| map.value_bits()) < u64::BITS {
            slices::detach_if_long(py, valid.len(), || {
                valid.iter_mut().zip(&*out).for_each(|(valid, &value)| *valid = u8::from(value != u64::MAX));
            });
        } else {
            // Every number may be a value: a result that changes with the default is a missing one.
            let mut again = zeroed(out.len()).or_raise(py)?;
            self.look_up(py, source, 0, &mut again)?;
            valid
                .iter_mut()
                .zip(out.iter().zip(&again))
                .for_each(|(valid, (one, other))| *valid = u8::from(one == other));
        }
        out.iter_mut().zip(&valid).filter(|(_, valid)| **valid == 0).for_each(|(value, _)| *value = 0);
        let mut all = self.valid.borrow_mut();
        reserve(&mut all, valid.len()).or_raise(py)?;
        all.append(&mut valid);
        Ok(())
    }

    fn mark_missing(&self, valid: &mut [u8]) {
        let own = std::mem::take(&mut *self.valid.borrow_mut());
        valid.iter_mut().zip(own).for_each(|(valid, own)| *valid &= own);
    }
}

/// True for a NumPy array.
fn is_array(answers: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(answers.get_type().module()?.to_string().starts_with("numpy"))
}

#[pymethods]
impl BloomierMap {
    /// The value of a key, never wrong for one it was built from; `default` for one that is certainly absent.
    ///
    /// An absent key has some value at the rate of false positives.
    #[pyo3(signature = (key: "Key", default: "Any" = None, /) -> "int | Any")]
    fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (py, hash) = (key.py(), hash_lookup(&self.lock, &self.hasher, key)?);
        match self.lock.read(py, |map| map.get_hash(hash)) {
            Some(value) => Ok(Some(value.into_pyobject(py)?.into_any())),
            None => Ok(default),
        }
    }

    /// One value per key, in the same container type; takes what contains_many takes.
    ///
    /// default: the result for a key that is certainly absent, a whole number; with None its result is missing, as with get():
    /// None in a list, null in a column of Arrow, Polars or pandas, masked in a NumPy array. threads: how many may be used;
    /// the GIL is released. Cost: three cache lines per key, one more if values can be changed: some 10 ns.
    #[pyo3(signature = (keys: "Keys", *, default: "int | None" = None, threads: "int" = 1) -> "Answers[int | None]")]
    fn get_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = default)] default: Option<u64>,
        #[pyo3(from_py_with = parameters::threads)] threads: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(default) = default else {
            let find = Find::new(&self.lock, threads);
            let answers = batch::run(&find, &self.hasher, keys, true)?;
            return find.finish(answers);
        };
        let ask = |map: &Core, hashes: &[u64], values: &mut [u64]| map.get_hashes(hashes, default, values);
        batch::run(&AskOnThreads { lock: &self.lock, ask: &ask, threads }, &self.hasher, keys, true)
    }

    /// The values of ready 64-bit hashes (see hash_many), `default` where they are certainly absent: an int or None for
    /// one, as get_many returns for a batch.
    ///
    /// >>> from fullbloom import BloomierMap, hash_key
    /// >>> ages = BloomierMap.build({"ada": 36, "alan": 41}, check_bits=30)
    /// >>> ages.get_hashed(hash_key("ada")), ages.get_hashed([hash_key("alan"), 1], default=7)
    /// (36, [41, 7])
    #[pyo3(signature = (hashes: "Hashes | SupportsIndex", *, default: "int | None" = None) -> "Answers[int | None]")]
    fn get_hashed<'py>(
        &self,
        hashes: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = default)] default: Option<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = hashes.py();
        if let Some(hash) = ready::read_single(hashes)? {
            let value = self.lock.read(py, |map| map.get_hash(hash)).or(default);
            return Ok(value.into_pyobject(py)?.into_any());
        }
        let Some(default) = default else {
            let find = Find::new(&self.lock, 1);
            let answers = ready::run(&find, hashes)?;
            return find.finish(answers);
        };
        let ask = |map: &Core, hashes: &[u64], values: &mut [u64]| map.get_hashes(hashes, default, values);
        ready::run(&Ask { lock: &self.lock, ask: &ask }, hashes)
    }

    /// Gives many keys other values, as many as keys or one for all; answers, for each, whether it was there.
    ///
    /// All values are checked before the first is written; nulls are refused. A key that it was not built from replaces, at the
    /// rate of false positives, the value of a stored one: pass stored keys only. Raises
    /// ParameterError, KeyTypeError, and ReadOnlyFilter unless it was built with mutable=True and lies in memory.
    #[pyo3(signature = (keys: "Keys", values: "Numbers") -> "Answers[bool]")]
    fn set_many<'py>(&self, keys: &Bound<'py, PyAny>, values: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let values = KeyValues::new("values", values);
        let assign = Assign { lock: &self.lock, values: &values, done: Cell::new(0) };
        let answers = batch::run(&assign, &self.hasher, keys, true)?;
        values.check_number(assign.done.get())?;
        Ok(answers)
    }

    /// It stores no keys to iterate over, and brackets alone would make it a sequence.
    #[classattr]
    fn __iter__() -> Option<bool> {
        None
    }

    /// The value of a key; KeyError for one that is certainly absent.
    fn __getitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        let hash = hash_lookup(&self.lock, &self.hasher, key)?;
        self.lock.read(key.py(), |map| map.get_hash(hash)).ok_or_else(|| absent(key))
    }

    /// Replaces the value of a stored key; KeyError for one that is certainly absent. See set_many.
    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, hash) = (key.py(), hash_lookup(&self.lock, &self.hasher, key)?);
        let value = parameters::parse_whole("value", value, 0)?;
        let known = self.lock.write(py, |map| map.set_hash(hash, value)).or_raise(py)?;
        if known { Ok(()) } else { Err(absent(key)) }
    }
}

/// Reads `default=`.
fn default(value: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    if value.is_none() { Ok(None) } else { parameters::parse_whole("default", value, 0).map(Some) }
}
