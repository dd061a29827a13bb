//! Numbers that come with keys: one each, or one for all.

use std::cell::OnceCell;

use fullbloom_core::cells::allocation::reserve;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyMapping, PyMemoryView, PySlice};

use crate::arrow::import;
use crate::arrow::meaning::Meaning;
use crate::dataframes::exports;
use crate::errors::{OrRaise, in_tree, parameter, parameter_type};
use crate::locking::slices;
use crate::parameters;

/// Numbers of an array that are copied at a time: a millisecond or less.
const COPIED: usize = 1 << 18;

/// The values of a batch.
pub(crate) enum Values {
    One(u64),
    Each(Vec<u64>),
}

impl Values {
    /// Reads `values=` (or `labels=`) of `keys` keys: a whole number, or whole numbers in any container, of which at
    /// most one more is read than there are keys.
    fn read(name: &'static str, values: &Bound<'_, PyAny>, keys: usize) -> PyResult<Self> {
        let py = values.py();
        if is_single(values)? {
            return parameters::parse_whole(name, values, 0).map(Values::One);
        }
        if values.hasattr("__len__")? {
            check_number(py, name, values.len()?, keys)?;
        }
        let numbers = match read_buffer(name, values)? {
            Some(numbers) => Some(numbers),
            None => read_column(name, values, keys)?,
        };
        let numbers = numbers.map_or_else(|| read_iterable(name, values, keys), Ok)?;
        check_number(py, name, numbers.len(), keys)?;
        Ok(Values::Each(numbers))
    }

    pub(crate) fn all(&self) -> &[u64] {
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

/// True for one value for all keys.
fn is_single(values: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(values.hasattr("__index__")? && !values.hasattr("__len__")?)
}

/// Refuses another number of values than there are keys.
fn check_number(py: Python<'_>, name: &str, values: usize, keys: usize) -> PyResult<()> {
    if values == keys { Ok(()) } else { Err(refuse_number(py, name, &values.to_string(), keys)) }
}

fn refuse_number(py: Python<'_>, name: &str, values: &str, keys: usize) -> PyErr {
    let name = name.trim_end_matches('s');
    parameter(py, format!("there must be as many {name}s as keys, got {values} {name}s for {keys} keys"))
}

/// The error for values after the value of the last key.
fn refuse_more(py: Python<'_>, name: &str, keys: usize) -> PyErr {
    refuse_number(py, name, &format!("more than {keys}"), keys)
}

/// Reads the whole numbers of any iterable.
fn read_iterable(name: &str, values: &Bound<'_, PyAny>, keys: usize) -> PyResult<Vec<u64>> {
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
            return Err(refuse_more(py, name, keys));
        }
        slices::push(py, &mut numbers, parameters::parse_whole(name, &value, 0)?)?;
    }
    Ok(numbers)
}

/// Reads the whole numbers of a column that supports the Arrow interface; `None` for other objects, and for columns that can
/// only be read as a list.
fn read_column(name: &'static str, values: &Bound<'_, PyAny>, keys: usize) -> PyResult<Option<Vec<u64>>> {
    let py = values.py();
    if !exports::supports_arrow(values)? {
        return Ok(None);
    }
    let Some(capsules) = exports::export_numbers(values)? else { return Ok(None) };
    let mut chunks = import::open(Meaning::Numbers(name), values, &capsules)?;
    let mut numbers = Vec::new();
    while let Some(chunk) = chunks.next(py)? {
        if chunk.has_nulls() {
            return Err(parameter_type(py, format!("{name} must be a whole number, got None")));
        }
        let (first, len) = (numbers.len(), chunk.source.len());
        if len > keys - first {
            return Err(refuse_more(py, name, keys));
        }
        reserve(&mut numbers, len).or_raise(py)?;
        numbers.resize(first + len, 0);
        let out = &mut numbers[first..];
        slices::run_detached(py, len, |start| {
            let end = len.min(start + COPIED);
            chunk.source.fill(start, &mut out[start..end]);
            end
        })?;
        py.check_signals()?;
    }
    Ok(Some(numbers))
}

/// Reads the whole numbers of an array, without an object for each; `None` for other objects.
fn read_buffer(name: &str, values: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u64>>> {
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
                    slices::yield_to_others(py)?;
                }
                return Ok(Some(numbers));
            })*
        };
    }
    of!(u8, u16, u32, u64, i8, i16, i32, i64);
    Ok(None)
}

/// An argument of values, which is read when the number of keys is known.
pub(crate) struct KeyValues<'py> {
    name: &'static str,
    values: Bound<'py, PyAny>,
    read: OnceCell<Values>,
}

impl<'py> KeyValues<'py> {
    /// Not read yet; `name` is that of a single value, or of the parameter.
    pub(crate) fn new(name: &'static str, values: &Bound<'py, PyAny>) -> Self {
        KeyValues { name, values: values.clone(), read: OnceCell::new() }
    }

    /// True if the number of keys must be known before the values are read.
    pub(crate) fn needs_count(&self) -> PyResult<bool> {
        Ok(!is_single(&self.values)?)
    }

    /// Reads the values, as many as there are keys.
    pub(crate) fn read(&self, keys: usize) -> PyResult<&Values> {
        if self.read.get().is_none() {
            let values = Values::read(self.name, &self.values, keys)?;
            return Ok(self.read.get_or_init(|| values));
        }
        self.get(keys)
    }

    /// The values, which must be those of `keys` keys or more.
    pub(crate) fn get(&self, keys: usize) -> PyResult<&Values> {
        match self.read.get() {
            Some(values) if keys == 0 || values.at(keys - 1).is_some() => Ok(values),
            Some(values) => Err(refuse_number(self.values.py(), self.name, &values.all().len().to_string(), keys)),
            None => self.read(keys),
        }
    }

    /// Refuses another number of keys than that for which the values were read.
    pub(crate) fn check_number(&self, keys: usize) -> PyResult<()> {
        match self.read(keys)? {
            Values::One(_) => Ok(()),
            Values::Each(values) => check_number(self.values.py(), self.name, values.len(), keys),
        }
    }
}

/// Reads keys and values: those of a mapping if `values` is missing.
pub(crate) fn read_mapping<'py>(
    keys: &Bound<'py, PyAny>,
    values: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyAny>, KeyValues<'py>)> {
    if let Some(values) = values.filter(|values| !values.is_none()) {
        return Ok((keys.clone(), KeyValues::new("values", values)));
    }
    let Ok(mapping) = keys.cast::<PyMapping>() else {
        let class = keys.get_type().name()?;
        let message = format!("values must be numbers, one for each key, unless keys is a mapping, got {class}");
        return Err(parameter_type(keys.py(), message));
    };
    let values = KeyValues::new("values", &mapping.values()?.into_any());
    Ok((mapping.keys()?.into_any(), values))
}
