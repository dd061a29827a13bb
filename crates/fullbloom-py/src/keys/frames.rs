//! Frames of pandas and Polars whose Arrow form would not be the keys: rows are tuples of what the columns hold.

use fullbloom_core::key::KeyHasher;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::listed::{is_missing, objects};
use crate::answers;
use crate::arrow::import::{self, Chunk};
use crate::errors::key_type;

/// A frame that is not exported as it is.
pub(super) enum Frame<'a, 'py> {
    /// Of pandas: its export has the index as a column, and nulls in the place of NaN among floats.
    Pandas(&'a Bound<'py, PyAny>),
    /// Of Polars, with columns of Python objects: their Arrow form holds handles, not the objects.
    PolarsObjects(&'a Bound<'py, PyAny>),
}

impl<'a, 'py> Frame<'a, 'py> {
    /// `keys`, if it is such a frame.
    pub(super) fn of(keys: &'a Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        if answers::is_frame(keys, "pandas")? {
            return Ok(Some(Frame::Pandas(keys)));
        }
        if answers::is_frame(keys, "polars")? {
            let object = keys.py().import("polars")?.getattr("Object")?;
            let dtypes = keys.getattr("dtypes")?.cast_into::<PyList>()?;
            if dtypes.contains(object)? {
                return Ok(Some(Frame::PolarsObjects(keys)));
            }
        }
        Ok(None)
    }

    /// Its capsules, by way of pyarrow; an error where that is not there or knows no type for a column.
    pub(super) fn lend(&self) -> PyResult<Bound<'py, PyAny>> {
        let Frame::Pandas(keys) = self else {
            return Err(key_type(self.frame().py(), "a column of Python objects has no Arrow form that holds keys"));
        };
        let py = keys.py();
        let pyarrow = py.import("pyarrow")?;
        let (columns, names) = (PyList::empty(py), PyList::empty(py));
        for (i, column) in self.columns()?.iter().enumerate() {
            let floats = answers::is_pandas_floats(column)?;
            let column = if floats { column.call_method0("to_numpy")? } else { column.clone() };
            columns.append(pyarrow.call_method1("array", (column,))?)?;
            names.append(i.to_string())?;
        }
        let table = pyarrow.getattr("Table")?.call_method1("from_arrays", (columns, names))?;
        import::lend(&table)
    }

    /// Its rows as they are in Python.
    pub(super) fn rows(&self, hasher: &KeyHasher) -> PyResult<Chunk> {
        let frame = self.frame();
        if frame.getattr("shape")?.get_item(1)?.extract::<usize>()? < 2 {
            return Err(import::too_few_columns(frame));
        }
        match self {
            Frame::PolarsObjects(_) => objects(hasher, &frame.call_method0("iter_rows")?, |row| {
                row.cast::<PyTuple>().is_ok_and(|row| row.iter().any(|part| part.is_none()))
            }),
            Frame::Pandas(_) => {
                // Among floats NaN is a key, elsewhere it is what pandas writes for a missing value.
                let floats = self.columns()?.iter().map(answers::is_pandas_floats).collect::<PyResult<Vec<_>>>()?;
                let is_null = |row: &Bound<'py, PyAny>| {
                    row.cast::<PyTuple>().is_ok_and(|row| {
                        row.iter().zip(&floats).any(|(part, &is_float)| !is_float && is_missing(&part))
                    })
                };
                objects(hasher, &frame.call_method1("itertuples", (false, frame.py().None()))?, is_null)
            }
        }
    }

    fn frame(&self) -> &'a Bound<'py, PyAny> {
        match self {
            Frame::Pandas(frame) | Frame::PolarsObjects(frame) => frame,
        }
    }

    /// The columns by place: two may have one name.
    fn columns(&self) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let frame = self.frame();
        let number: usize = frame.getattr("shape")?.get_item(1)?.extract()?;
        let places = frame.getattr("iloc")?;
        let all = pyo3::types::PySlice::full(frame.py());
        (0..number).map(|i| places.get_item((&all, i))).collect()
    }
}
