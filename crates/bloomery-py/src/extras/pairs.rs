//! What the classes share whose `add` takes something beside the key.

use std::cell::Cell;

use bloomery_core::cells::allocation::reserve;
use bloomery_core::key::KeyHasher;
use bloomery_core::key::source::CHUNK;
use bloomery_core::labelled::valued::{Kind, Valued};
use bloomery_core::structure::HashSource;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyMapping, PyMemoryView, PySlice};

use crate::biased_lock::BiasedLock;
use crate::classes::shared::warn_if_pairs_overfull;
use crate::errors::{OrRaise, in_tree, parameter, parameter_type};
use crate::keys::HASHED_AT_A_TIME;
use crate::keys::batch::{self, Operation};
use crate::operations::write_chunks;
use crate::{params, turns};

/// Keys a batch keeps a filter for itself: a few milliseconds.
const HELD: usize = 64 * CHUNK;

/// Numbers of an array that are copied at a time: a millisecond or less.
const COPIED: usize = 1 << 18;

/// Values of a batch: one each, or one for all.
pub(crate) enum Values {
    One(u64),
    Each(Vec<u64>),
}

impl Values {
    /// Reads `values=` (or `labels=`): a whole number, or whole numbers in any container.
    pub(crate) fn read(name: &str, values: &Bound<'_, PyAny>) -> PyResult<Self> {
        if values.hasattr("__index__")? && !values.hasattr("__len__")? {
            return params::whole(name, values, 0).map(Values::One);
        }
        if let Some(numbers) = of_buffer(name, values)? {
            return Ok(Values::Each(numbers));
        }
        let mut plain = values.clone();
        for method in ["tolist", "to_list", "to_pylist"] {
            if values.hasattr(method)? {
                plain = values.call_method0(method).map_err(|error| in_tree(values.py(), error))?;
                break;
            }
        }
        let mut numbers = Vec::new();
        for value in plain.try_iter()? {
            reserve(&mut numbers, 1).or_raise(values.py())?;
            numbers.push(params::whole(name, &value?, 0)?);
            if numbers.len().is_multiple_of(HASHED_AT_A_TIME) {
                turns::breathe(values.py())?;
            }
        }
        Ok(Values::Each(numbers))
    }

    fn all(&self) -> &[u64] {
        match self {
            Values::One(value) => std::slice::from_ref(value),
            Values::Each(values) => values,
        }
    }

    /// The value of key number `i`.
    #[inline]
    pub(crate) fn at(&self, i: usize) -> Option<u64> {
        match self {
            Values::One(value) => Some(*value),
            Values::Each(values) => values.get(i).copied(),
        }
    }

    /// The largest value.
    pub(crate) fn largest(&self) -> Option<u64> {
        self.all().iter().max().copied()
    }

    /// Refuses another number of keys than there are values.
    pub(crate) fn check_number(&self, py: Python<'_>, keys: usize) -> PyResult<()> {
        match self {
            Values::Each(values) if values.len() != keys => {
                Err(parameter(py, format!("there must be as many values as keys, got {} for {keys}", values.len())))
            }
            _ => Ok(()),
        }
    }
}

/// Whole numbers of an array, without an object for each; `None` for what is no such array.
fn of_buffer(name: &str, values: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u64>>> {
    let (py, Ok(view)) = (values.py(), PyMemoryView::from(values)) else { return Ok(None) };
    macro_rules! of {
        ($($T:ty),*) => {
            $(if let Ok(buffer) = PyBuffer::<$T>::get(values) && buffer.dimensions() == 1 {
                let (len, mut numbers) = (buffer.item_count(), Vec::new());
                reserve(&mut numbers, len).or_raise(py)?;
                for start in (0..len).step_by(COPIED) {
                    let some = view.get_item(PySlice::new(py, start as isize, len.min(start + COPIED) as isize, 1))?;
                    for number in PyBuffer::<$T>::get(&some)?.to_vec(py)? {
                        let wrong = || parameter(py, format!("{name} must be between 0 and 2**64 - 1, got {number}"));
                        numbers.push(u64::try_from(number).map_err(|_| wrong())?);
                    }
                    turns::breathe(py)?;
                }
                return Ok(Some(numbers));
            })*
        };
    }
    of!(u8, u16, u32, u64, i8, i16, i32, i64);
    Ok(None)
}

/// Keys and values: those of a mapping where no values are given.
pub(crate) fn of_mapping<'py>(
    keys: &Bound<'py, PyAny>,
    values: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyAny>, Values)> {
    if let Some(values) = values.filter(|values| !values.is_none()) {
        return Ok((keys.clone(), Values::read("values", values)?));
    }
    let Ok(mapping) = keys.cast::<PyMapping>() else {
        let class = keys.get_type().name()?;
        let message = format!("values must be numbers, one for each key, unless keys is a mapping, got {class}");
        return Err(parameter_type(keys.py(), message));
    };
    let values = Values::read("values", &mapping.values()?.into_any())?;
    Ok((mapping.keys()?.into_any(), values))
}

/// Adding pairs.
struct Put<'a, V: Kind> {
    lock: &'a BiasedLock<Valued<V>>,
    values: &'a Values,
    /// Pairs added so far.
    done: Cell<usize>,
}

impl<V: Kind> Operation for Put<'_, V> {
    type Out = u8;
    const SKIPS_NULLS: bool = true;
    const REFUSES_NULLS: bool = true;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, mut out: Option<&mut [u8]>) -> PyResult<()> {
        let first = self.done.get();
        let one = [self.values.all().first().copied().unwrap_or_default(); CHUNK];
        let values = match self.values {
            Values::One(_) => None,
            Values::Each(all) => Some(all.get(first..first + source.len()).ok_or_else(|| unequal::<V>(py, all.len()))?),
        };
        self.lock.detach(py, |session| session.write(|filter| filter.expect_writes(source.len())));
        let added = write_chunks(self.lock, py, source, HELD, |filter, start, hashes| {
            let end = start + hashes.len();
            let values = values.map_or(&one[..hashes.len()], |values| &values[start..end]);
            filter.put_hashes(hashes, values, out.as_deref_mut().map(|out| &mut out[start..end]))
        });
        self.done.set(first + source.len());
        added
    }
}

fn unequal<V: Kind>(py: Python<'_>, values: usize) -> PyErr {
    parameter(py, format!("there must be as many {0}s as keys, got {values} {0}s for another number", V::WORD))
}

/// Adds one pair and gives the warning when it is due.
pub(crate) fn put_one<V: Kind>(py: Python<'_>, lock: &BiasedLock<Valued<V>>, hash: u64, value: u64) -> PyResult<bool> {
    let added = lock.write(py, |filter| filter.put_hash(hash, value)).or_raise(py)?;
    warn_if_pairs_overfull(py, lock)?;
    Ok(added)
}

/// Adds many pairs; every value is checked before the first pair is added.
pub(crate) fn put_many<'py, V: Kind>(
    lock: &BiasedLock<Valued<V>>,
    hasher: &KeyHasher,
    keys: &Bound<'py, PyAny>,
    values: &Values,
    wanted: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    let each = matches!(values, Values::Each(_));
    if each && keys.hasattr("__len__")? && keys.len()? != values.all().len() {
        return Err(unequal::<V>(py, values.all().len()));
    }
    let encodable = |filter: &Valued<V>| values.all().iter().try_for_each(|&value| filter.encode(value).map(drop));
    lock.detach(py, |session| session.read(encodable)).or_raise(py)?;
    let put = Put { lock, values, done: Cell::new(0) };
    let answers = batch::run(&put, hasher, keys, wanted);
    warn_if_pairs_overfull(py, lock)?;
    let answers = answers?;
    if each && put.done.get() != values.all().len() {
        return Err(unequal::<V>(py, values.all().len()));
    }
    Ok(answers)
}

/// Methods of classes whose keys come with a `$value` (many `$values`), asked by `$get`, `$get_many`.
macro_rules! pair_methods {
    ($Class:ident, $value:ident, $values:ident, $get:ident, $get_many:ident, $meaning:literal) => {
        #[pymethods]
        impl $Class {
            /// True when the key was probably added, False when it certainly was not.
            fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
                use bloomery_core::structure::Filter;
                let hash = crate::keys::scalar::hash_key(&self.hasher, key)?;
                Ok(self.lock.read(py, |filter| filter.contains_hash(hash)))
            }

            #[doc = concat!(
                "Adds a key with its ", stringify!($value), "; True when the key was certainly new.\n\n",
                "Raises KeyTypeError, ParameterError, ReadOnlyFilter; warns CapacityWarning once past capacity.")]
            #[pyo3(signature = (key: "Key", $value: "int"))]
            fn add(&self, key: &Bound<'_, PyAny>, $value: &Bound<'_, PyAny>) -> PyResult<bool> {
                let hash = crate::keys::scalar::hash_key(&self.hasher, key)?;
                let value = crate::params::whole(stringify!($value), $value, 0)?;
                crate::extras::pairs::put_one(key.py(), &self.lock, hash, value)
            }

            #[doc = concat!(
                "Adds many keys, with as many ", stringify!($values), " (or one for all); answers nothing.\n\n",
                "All ", stringify!($values), " are checked before the first key is added. Nulls are refused.")]
            #[pyo3(signature = (keys: "Keys", $values: "Numbers") -> "None")]
            fn update(&self, keys: &Bound<'_, PyAny>, $values: &Bound<'_, PyAny>) -> PyResult<()> {
                let values = crate::extras::pairs::Values::read(stringify!($value), $values)?;
                crate::extras::pairs::put_many(&self.lock, &self.hasher, keys, &values, false).map(drop)
            }

            /// As update, and answers, for each key, whether it was new; as contains_many answers.
            #[pyo3(signature = (keys: "Keys", $values: "Numbers") -> "Answers[bool]")]
            fn add_many<'py>(
                &self,
                keys: &Bound<'py, PyAny>,
                $values: &Bound<'py, PyAny>,
            ) -> PyResult<Bound<'py, PyAny>> {
                let values = crate::extras::pairs::Values::read(stringify!($value), $values)?;
                crate::extras::pairs::put_many(&self.lock, &self.hasher, keys, &values, true)
            }

            #[doc = $meaning]
            #[pyo3(signature = (key: "Key", /))]
            fn $get(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
                let hash = crate::keys::scalar::hash_key(&self.hasher, key)?;
                Ok(self.lock.read(key.py(), |filter| filter.get_hash(hash)))
            }

            #[doc = concat!("One ", stringify!($value), " a key, in the caller's kind; takes what contains_many takes.")]
            #[pyo3(signature = (keys: "Keys") -> "Answers[int]")]
            fn $get_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                let ask = &bloomery_core::labelled::valued::Valued::get_hashes;
                crate::keys::batch::run(&crate::operations::Ask { lock: &self.lock, ask }, &self.hasher, keys, true)
            }

            /// Forgets every key.
            fn clear(&self, py: Python<'_>) -> PyResult<()> {
                let cleared = self.lock.change(py, |filter| filter.clear());
                crate::errors::OrRaise::or_raise(cleared, py)
            }
        }
    };
}

pub(super) use pair_methods;
