//! What the classes share whose `add` takes something beside the key.

use std::cell::{Cell, OnceCell};

use fullbloom_core::cells::allocation::reserve;
use fullbloom_core::key::source::CHUNK;
use fullbloom_core::key::{Domain, KeyDomains, KeyHasher};
use fullbloom_core::labelled::valued::{Kind, Valued};
use fullbloom_core::structure::{Filter, HashSource};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyMapping, PyMemoryView, PySlice};

use crate::arrow::import;
use crate::arrow::meaning::Meaning;
use crate::biased_lock::BiasedLock;
use crate::classes::shared::warn_if_pairs_overfull;
use crate::errors::{OrRaise, in_tree, parameter, parameter_type};
use crate::keys::batch::{self, Operation};
use crate::operations::write_chunks;
use crate::{answers, params, turns};

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
    /// Reads `values=` (or `labels=`) of so many keys: a whole number, or whole numbers in any container, of which at
    /// most one more is read than there are keys.
    fn read(name: &'static str, values: &Bound<'_, PyAny>, keys: usize) -> PyResult<Self> {
        let py = values.py();
        if is_one(values)? {
            return params::whole(name, values, 0).map(Values::One);
        }
        if values.hasattr("__len__")? {
            check_number(py, name, values.len()?, keys)?;
        }
        let read = match of_buffer(name, values)? {
            Some(numbers) => Some(numbers),
            None => of_column(name, values, keys)?,
        };
        let numbers = read.map_or_else(|| listed(name, values, keys), Ok)?;
        check_number(py, name, numbers.len(), keys)?;
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
}

/// True of one value for all keys.
fn is_one(values: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(values.hasattr("__index__")? && !values.hasattr("__len__")?)
}

/// Refuses another number of values than there are keys.
fn check_number(py: Python<'_>, name: &str, values: usize, keys: usize) -> PyResult<()> {
    if values == keys { Ok(()) } else { Err(unequal(py, name, &values.to_string(), keys)) }
}

fn unequal(py: Python<'_>, name: &str, values: &str, keys: usize) -> PyErr {
    let name = name.trim_end_matches('s');
    parameter(py, format!("there must be as many {name}s as keys, got {values} {name}s for {keys} keys"))
}

/// The refusal of what goes on behind the value of the last key.
fn more(py: Python<'_>, name: &str, keys: usize) -> PyErr {
    unequal(py, name, &format!("more than {keys}"), keys)
}

/// Whole numbers of any iterable.
fn listed(name: &str, values: &Bound<'_, PyAny>, keys: usize) -> PyResult<Vec<u64>> {
    let py = values.py();
    let mut plain = values.clone();
    for method in ["tolist", "to_list"] {
        if values.hasattr(method)? {
            plain = values.call_method0(method).map_err(|error| in_tree(py, error))?;
            break;
        }
    }
    let mut numbers = Vec::new();
    for value in plain.try_iter()? {
        let value = value?;
        if numbers.len() == keys {
            return Err(more(py, name, keys));
        }
        turns::push(py, &mut numbers, params::whole(name, &value, 0)?)?;
    }
    Ok(numbers)
}

/// Whole numbers of a column that speaks the Arrow interface; `None` for what is none, or is had as a list only.
fn of_column(name: &'static str, values: &Bound<'_, PyAny>, keys: usize) -> PyResult<Option<Vec<u64>>> {
    let py = values.py();
    if !import::speaks(values)? || answers::is_listed(values)? {
        return Ok(None);
    }
    let lent = match import::lend(values) {
        // pandas exports through pyarrow, which need not be there.
        Err(error) if error.is_instance_of::<PyException>(py) && answers::is_pandas(values)? => return Ok(None),
        lent => lent?,
    };
    let mut chunks = import::open(Meaning::Numbers(name), values, &lent)?;
    let mut numbers = Vec::new();
    while let Some(chunk) = chunks.next(py)? {
        if chunk.has_nulls() {
            return Err(parameter_type(py, format!("{name} must be a whole number, got None")));
        }
        let (first, len) = (numbers.len(), chunk.source.len());
        if len > keys - first {
            return Err(more(py, name, keys));
        }
        reserve(&mut numbers, len).or_raise(py)?;
        numbers.resize(first + len, 0);
        let out = &mut numbers[first..];
        turns::detached(py, len, |start| {
            let end = len.min(start + COPIED);
            chunk.source.fill(start, &mut out[start..end]);
            end
        })?;
        py.check_signals()?;
    }
    Ok(Some(numbers))
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

/// Values as they were given, which are read when the number of keys is known.
pub(crate) struct Beside<'py> {
    name: &'static str,
    given: Bound<'py, PyAny>,
    read: OnceCell<Values>,
}

impl<'py> Beside<'py> {
    /// Not read yet; `name` is that of one, or of the parameter.
    pub(crate) fn of(name: &'static str, given: &Bound<'py, PyAny>) -> Self {
        Beside { name, given: given.clone(), read: OnceCell::new() }
    }

    /// True when the number of keys must be known before the values are read.
    pub(crate) fn needs_count(&self) -> PyResult<bool> {
        Ok(!is_one(&self.given)?)
    }

    /// The values, as many as there are keys.
    pub(crate) fn values(&self, keys: usize) -> PyResult<&Values> {
        if self.read.get().is_none() {
            let values = Values::read(self.name, &self.given, keys)?;
            return Ok(self.read.get_or_init(|| values));
        }
        self.known(keys)
    }

    /// The values that were read; there must be those of so many keys.
    pub(crate) fn known(&self, keys: usize) -> PyResult<&Values> {
        match self.read.get() {
            Some(values) if keys == 0 || values.at(keys - 1).is_some() => Ok(values),
            Some(values) => Err(unequal(self.given.py(), self.name, &values.all().len().to_string(), keys)),
            None => self.values(keys),
        }
    }

    /// Refuses another number of keys than the values were read for.
    pub(crate) fn check_number(&self, keys: usize) -> PyResult<()> {
        match self.values(keys)? {
            Values::One(_) => Ok(()),
            Values::Each(values) => check_number(self.given.py(), self.name, values.len(), keys),
        }
    }
}

/// Keys and values: those of a mapping where no values are given.
pub(crate) fn of_mapping<'py>(
    keys: &Bound<'py, PyAny>,
    values: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyAny>, Beside<'py>)> {
    if let Some(values) = values.filter(|values| !values.is_none()) {
        return Ok((keys.clone(), Beside::of("values", values)));
    }
    let Ok(mapping) = keys.cast::<PyMapping>() else {
        let class = keys.get_type().name()?;
        let message = format!("values must be numbers, one for each key, unless keys is a mapping, got {class}");
        return Err(parameter_type(keys.py(), message));
    };
    let values = Beside::of("values", &mapping.values()?.into_any());
    Ok((mapping.keys()?.into_any(), values))
}

/// Adding pairs.
struct Put<'a, 'py, V: Kind> {
    lock: &'a BiasedLock<Valued<V>>,
    values: &'a Beside<'py>,
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
        let values = self.values.values(keys)?;
        let encodable = |filter: &Valued<V>| values.all().iter().try_for_each(|&value| filter.encode(value).map(drop));
        self.lock.detach(py, |session| session.read(encodable)).or_raise(py)
    }

    fn run(&self, py: Python<'_>, source: &dyn HashSource, mut out: Option<&mut [u8]>) -> PyResult<()> {
        let first = self.done.get();
        let values = self.values.known(first + source.len())?;
        let one = [values.all().first().copied().unwrap_or_default(); CHUNK];
        let values = match values {
            Values::One(_) => None,
            Values::Each(all) => all.get(first..first + source.len()),
        };
        self.lock.detach(py, |session| session.write(|filter| filter.expect_writes(source.len())));
        let added = write_chunks(self.lock, py, source, HELD, |filter, start, hashes| {
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

/// Adds one pair and gives the warning when it is due.
pub(crate) fn put_one<V: Kind>(
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
pub(crate) fn put_many<'py, V: Kind>(
    lock: &BiasedLock<Valued<V>>,
    hasher: &KeyHasher,
    keys: &Bound<'py, PyAny>,
    values: &Beside<'py>,
    wanted: bool,
) -> PyResult<Bound<'py, PyAny>>
where
    Valued<V>: Filter,
{
    let py = keys.py();
    let put = Put { lock, values, done: Cell::new(0) };
    let answers = batch::run(&put, hasher, keys, wanted);
    warn_if_pairs_overfull(py, lock)?;
    let answers = answers?;
    values.check_number(put.done.get())?;
    Ok(answers)
}

/// Methods of classes whose keys come with a `$value` (many `$values`), asked by `$get`, `$get_many`.
macro_rules! pair_methods {
    ($Class:ident, $value:ident, $values:ident, $get:ident, $get_many:ident, $meaning:literal) => {
        #[pymethods]
        impl $Class {
            /// True when the key was probably added, False when it certainly was not.
            fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
                use fullbloom_core::structure::Filter;
                let hash = crate::domains::looked_up(&self.lock, &self.hasher, key)?;
                Ok(self.lock.read(py, |filter| filter.contains_hash(hash)))
            }

            #[doc = concat!(
                "Adds a key with its ", stringify!($value), "; True when the key was certainly new.\n\n",
                "Raises KeyTypeError, ParameterError, ReadOnlyFilter; warns CapacityWarning once past capacity.")]
            #[pyo3(signature = (key: "Key", $value: "int"))]
            fn add(&self, key: &Bound<'_, PyAny>, $value: &Bound<'_, PyAny>) -> PyResult<bool> {
                let hashed = crate::keys::scalar::hash_key_in(&self.hasher, key)?;
                let value = crate::params::whole(stringify!($value), $value, 0)?;
                crate::extras::pairs::put_one(key.py(), &self.lock, hashed, value)
            }

            #[doc = concat!(
                "Adds many keys, with as many ", stringify!($values), " (or one for all); answers nothing.\n\n",
                "All ", stringify!($values), " are checked before the first key is added. Nulls are refused.")]
            #[pyo3(signature = (keys: "Keys", $values: "Numbers") -> "None")]
            fn update(&self, keys: &Bound<'_, PyAny>, $values: &Bound<'_, PyAny>) -> PyResult<()> {
                let values = crate::extras::pairs::Beside::of(stringify!($value), $values);
                crate::extras::pairs::put_many(&self.lock, &self.hasher, keys, &values, false).map(drop)
            }

            /// As update, and answers, for each key, whether it was new; as contains_many answers.
            #[pyo3(signature = (keys: "Keys", $values: "Numbers") -> "Answers[bool]")]
            fn add_many<'py>(
                &self,
                keys: &Bound<'py, PyAny>,
                $values: &Bound<'py, PyAny>,
            ) -> PyResult<Bound<'py, PyAny>> {
                let values = crate::extras::pairs::Beside::of(stringify!($value), $values);
                crate::extras::pairs::put_many(&self.lock, &self.hasher, keys, &values, true)
            }

            #[doc = $meaning]
            #[pyo3(signature = (key: "Key", /))]
            fn $get(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
                let hash = crate::domains::looked_up(&self.lock, &self.hasher, key)?;
                Ok(self.lock.read(key.py(), |filter| filter.get_hash(hash)))
            }

            #[doc = concat!("One ", stringify!($value), " a key, in the caller's kind; takes what contains_many takes.")]
            #[pyo3(signature = (keys: "Keys") -> "Answers[int]")]
            fn $get_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                let ask = &fullbloom_core::labelled::valued::Valued::get_hashes;
                crate::keys::batch::run(&crate::operations::Ask { lock: &self.lock, ask }, &self.hasher, keys, true)
            }

            /// Forgets every key.
            fn clear(&self, py: Python<'_>) -> PyResult<()> {
                use fullbloom_core::structure::Filter;
                let cleared = self.lock.change(py, |filter| {
                    filter.clear().map(|()| filter.hasher_mut().added_mut().clear())
                });
                crate::errors::OrRaise::or_raise(cleared, py)
            }
        }
    };
}

pub(super) use pair_methods;
