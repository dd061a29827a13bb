//! How the keys of a column or table are read: by the Arrow interface, or otherwise if its Arrow form would not be the keys.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyList, PySlice, PyString, PyTuple};

use super::{is_frame, is_pandas_floats, is_polars_objects, package, pandas_kind};
use crate::errors::key_type;

/// Longest name of a column that an error shows, in bytes.
const LONGEST_NAME: usize = 100;

/// The keys of a column or table.
pub(crate) enum Export<'py> {
    /// Arrow capsules.
    Capsules(Bound<'py, PyAny>),
    /// The NumPy array of a Series, whose results get the index and name of the Series.
    Array(Bound<'py, PyAny>),
    /// Python objects, and which of them are nulls.
    Objects(Bound<'py, PyAny>, Missing),
}

/// Which Python objects of a column or table are nulls.
pub(crate) enum Missing {
    /// `None`.
    None,
    /// What pandas treats as missing in a column of objects.
    Pandas,
    /// Rows with a `None`.
    RowsWithNone,
    /// Rows with a missing value in a column that is not marked here: among floats NaN is a key.
    PandasRows(Vec<bool>),
}

impl Missing {
    /// Whether `item` is a null.
    pub(crate) fn is_null(&self, item: &Bound<'_, PyAny>) -> bool {
        let row = || item.cast::<PyTuple>().ok();
        match self {
            Missing::None => item.is_none(),
            Missing::Pandas => is_missing(item),
            Missing::RowsWithNone => row().is_some_and(|row| row.iter().any(|part| part.is_none())),
            Missing::PandasRows(floats) => {
                let is_null = |(part, &is_float): (Bound<'_, PyAny>, &bool)| !is_float && is_missing(&part);
                row().is_some_and(|row| row.iter().zip(floats).any(is_null))
            }
        }
    }
}

/// Whether pandas treats `item` of a column of objects as missing.
fn is_missing(item: &Bound<'_, PyAny>) -> bool {
    item.is_none()
        || item.cast::<PyFloat>().is_ok_and(|float| float.value().is_nan())
        || item.get_type().name().is_ok_and(|name| name == "NAType" || name == "NaTType")
}

/// True if `keys` supports the Arrow PyCapsule interface.
pub(crate) fn supports_arrow(keys: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(keys.hasattr("__arrow_c_array__")? || keys.hasattr("__arrow_c_stream__")?)
}

/// Exports the Arrow capsules of `keys`: a pair for an array, a single one for a stream. Runs the exporter's code.
pub(crate) fn export_capsules<'py>(keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let array = keys.hasattr("__arrow_c_array__")?;
    keys.call_method0(if array { "__arrow_c_array__" } else { "__arrow_c_stream__" })
}

/// Exports a column or table of keys that supports the Arrow interface. Runs the exporter's code.
pub(crate) fn export<'py>(keys: &Bound<'py, PyAny>) -> PyResult<Export<'py>> {
    let py = keys.py();
    if is_pandas_floats(keys)? {
        return keys.call_method0("to_numpy").map(Export::Array);
    }
    // Their Arrow form holds handles of Polars', not the keys.
    if is_polars_objects(keys)? {
        return Ok(Export::Objects(keys.call_method0("to_list")?, Missing::None));
    }
    if is_frame(keys, "pandas")? {
        return match export_pandas_frame(keys) {
            Err(error) if error.is_instance_of::<PyException>(py) => list_pandas_rows(keys),
            exported => exported.map(Export::Capsules),
        };
    }
    if is_frame(keys, "polars")? && has_objects(keys)? {
        check_columns(keys)?;
        return Ok(Export::Objects(keys.call_method0("iter_rows")?, Missing::RowsWithNone));
    }
    match export_capsules(keys) {
        // pandas exports through pyarrow, which may be missing or has no type for mixed objects, long integers or sparse
        // columns: NumPy has them all.
        Err(error) if error.is_instance_of::<PyException>(py) && keys.hasattr("to_numpy")? => {
            if has_missing(keys)? {
                return Ok(Export::Objects(keys.call_method0("to_list")?, Missing::Pandas));
            }
            keys.call_method0("to_numpy").map(Export::Array)
        }
        exported => exported.map(Export::Capsules),
    }
}

/// Exports the capsules of a column of whole numbers that supports the Arrow interface; `None` if its numbers can only be
/// read as a list. Runs the exporter's code.
pub(crate) fn export_numbers<'py>(numbers: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if pandas_kind(numbers)? == 'O' || is_polars_objects(numbers)? {
        return Ok(None);
    }
    match export_capsules(numbers) {
        // pandas exports through pyarrow, which may be missing.
        Err(error) if error.is_instance_of::<PyException>(numbers.py()) && is_pandas(numbers)? => Ok(None),
        exported => exported.map(Some),
    }
}

/// True for a column of pandas.
fn is_pandas(keys: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(package(keys) == "pandas" && keys.hasattr("to_list")?)
}

/// True for a pandas Series of Python objects, dates or durations with missing values.
fn has_missing(keys: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(matches!(pandas_kind(keys)?, 'O' | 'M' | 'm') && keys.getattr("hasnans")?.is_truthy()?)
}

/// Whether a Polars frame has columns of Python objects: their Arrow form holds handles, not the objects.
fn has_objects(frame: &Bound<'_, PyAny>) -> PyResult<bool> {
    let object = frame.py().import("polars")?.getattr("Object")?;
    frame.getattr("dtypes")?.cast_into::<PyList>()?.contains(object)
}

/// Exports the capsules of a pandas frame by way of pyarrow: its own export has the index as a column, and nulls instead of
/// NaN among floats. An error if pyarrow is missing or has no type for a column.
fn export_pandas_frame<'py>(frame: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = frame.py();
    let pyarrow = py.import("pyarrow")?;
    let (arrays, names) = (PyList::empty(py), PyList::empty(py));
    for (i, column) in columns(frame)?.iter().enumerate() {
        let floats = is_pandas_floats(column)?;
        let column = if floats { column.call_method0("to_numpy")? } else { column.clone() };
        arrays.append(pyarrow.call_method1("array", (column,))?)?;
        names.append(i.to_string())?;
    }
    export_capsules(&pyarrow.getattr("Table")?.call_method1("from_arrays", (arrays, names))?)
}

/// The rows of a pandas frame as Python objects.
fn list_pandas_rows<'py>(frame: &Bound<'py, PyAny>) -> PyResult<Export<'py>> {
    check_columns(frame)?;
    let floats = columns(frame)?.iter().map(is_pandas_floats).collect::<PyResult<Vec<_>>>()?;
    let rows = frame.call_method1("itertuples", (false, frame.py().None()))?;
    Ok(Export::Objects(rows, Missing::PandasRows(floats)))
}

/// The number of columns of a frame.
fn count_columns(frame: &Bound<'_, PyAny>) -> PyResult<usize> {
    frame.getattr("shape")?.get_item(1)?.extract()
}

/// The columns of a pandas frame by position: two may have one name.
fn columns<'py>(frame: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let (positions, all) = (frame.getattr("iloc")?, PySlice::full(frame.py()));
    (0..count_columns(frame)?).map(|i| positions.get_item((&all, i))).collect()
}

/// Refuses a frame of fewer than two columns.
fn check_columns(frame: &Bound<'_, PyAny>) -> PyResult<()> {
    if count_columns(frame)? < 2 { Err(too_few_columns(frame)) } else { Ok(()) }
}

/// The error for keys of fewer than two columns; names the only column if its name is known.
#[cold]
pub(crate) fn too_few_columns(keys: &Bound<'_, PyAny>) -> PyErr {
    let names = keys.getattr("column_names").or_else(|_| keys.getattr("columns")).and_then(|names| names.try_iter());
    let name = names.ok().and_then(|mut names| names.next()?.ok()).filter(|name| name.is_instance_of::<PyString>());
    let name = name.and_then(|name| Some(name.repr().ok()?.to_string())).filter(|name| name.len() <= LONGEST_NAME);
    let column = name.map_or_else(String::new, |name| format!(", frame[{name}]"));
    let what = "a table, frame or struct of one column or none holds no keys by itself";
    let remedy = format!("pass one column of it{column}, or tuples of one, [(key,) for key in column]");
    key_type(keys.py(), format!("{what}; {remedy}"))
}
