//! Results as columns of the library that the keys come from.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyDict, PyList};

use super::{is_frame, package};
use crate::errors::in_tree;

/// A pandas Series with the index and name of `keys`; `answer` itself if `keys` is not from pandas.
pub(crate) fn wrap_in_series<'py>(keys: &Bound<'py, PyAny>, answer: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if answer.is_none() || package(keys) != "pandas" || !keys.hasattr("index")? {
        return Ok(answer);
    }
    let py = keys.py();
    let options = PyDict::new(py);
    options.set_item("index", keys.getattr("index")?)?;
    options.set_item("name", if is_frame(keys, "pandas")? { None } else { Some(keys.getattr("name")?) })?;
    py.import("pandas")?.call_method("Series", (answer,), Some(&options))
}

/// Replaces those results in `answer`, which is not an Arrow column, for which `valid` has a 0: by None in a list, by NA in a
/// pandas Series, by masking in a NumPy array.
pub(crate) fn mask<'py>(answer: Bound<'py, PyAny>, valid: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let py = answer.py();
    if let Ok(list) = answer.cast::<PyList>() {
        for (i, _) in valid.iter().enumerate().filter(|(_, valid)| **valid == 0) {
            list.set_item(i, py.None())?;
        }
        return Ok(answer);
    }
    let absent = PyByteArray::new(py, &valid.iter().map(|valid| valid ^ 1).collect::<Vec<_>>());
    let mask = py.import("numpy")?.call_method1("frombuffer", (absent, "bool"))?;
    if package(&answer) == "pandas" {
        return answer.call_method1("astype", ("UInt64",))?.call_method1("mask", (mask,));
    }
    let options = PyDict::new(py);
    options.set_item("mask", mask)?;
    py.import("numpy.ma")?.call_method("MaskedArray", (answer,), Some(&options))
}

/// Wraps `parts`, our Arrow columns, as the library of `keys` has columns: pyarrow arrays, a Polars or pandas Series, or our
/// own Arrow objects for every other library.
pub(crate) fn wrap_columns<'py>(
    keys: &Bound<'py, PyAny>,
    parts: Vec<Bound<'py, PyAny>>,
    streamed: bool,
    arrow_type: &str,
) -> PyResult<Bound<'py, PyAny>> {
    convert_columns(keys, parts, streamed, arrow_type).map_err(|error| in_tree(keys.py(), error))
}

/// [`wrap_columns`], with the errors of the library.
fn convert_columns<'py>(
    keys: &Bound<'py, PyAny>,
    parts: Vec<Bound<'py, PyAny>>,
    streamed: bool,
    arrow_type: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    let chunked = || {
        let pyarrow = py.import("pyarrow")?;
        let arrays = parts.iter().map(|part| pyarrow.call_method1("array", (part,)));
        let arrays = PyList::new(py, arrays.collect::<PyResult<Vec<_>>>()?)?;
        pyarrow.call_method1("chunked_array", (arrays, pyarrow.call_method0(arrow_type)?))
    };
    match package(keys).as_str() {
        "pyarrow" => match &parts[..] {
            [only] if !streamed => py.import("pyarrow")?.call_method1("array", (only,)),
            _ => chunked(),
        },
        "polars" => {
            let polars = py.import("polars")?;
            let name = if is_frame(keys, "polars")? { "".into_bound_py_any(py)? } else { keys.getattr("name")? };
            // The constructor ignores a name beside an Arrow object.
            let series =
                parts.iter().map(|part| polars.call_method1("Series", (&name, part))?.call_method1("alias", (&name,)));
            let series = PyList::new(py, series.collect::<PyResult<Vec<_>>>()?)?;
            match series.len() {
                0 => {
                    let class = if arrow_type == "bool_" { "Boolean" } else { "UInt64" };
                    polars.call_method1("Series", (name, PyList::empty(py), polars.getattr(class)?))
                }
                1 => series.get_item(0),
                _ => polars.call_method1("concat", (series,)),
            }
        }
        "pandas" => {
            let whole = chunked()?;
            let nulls: usize = whole.getattr("null_count")?.extract()?;
            if nulls == 0 {
                return wrap_in_series(keys, whole.call_method0("to_pandas")?.getattr("array")?);
            }
            // pandas' own nullable type if there are nulls; to_pandas() would go through float64, which no hash survives.
            let nullable = if arrow_type == "bool_" { "boolean" } else { "UInt64" };
            let options = PyDict::new(py);
            options.set_item("dtype", nullable)?;
            let values = whole.call_method0("to_pylist")?;
            wrap_in_series(keys, py.import("pandas")?.call_method("array", (values,), Some(&options))?)
        }
        _ => match <[Bound<'py, PyAny>; 1]>::try_from(parts) {
            Ok([only]) => Ok(only),
            Err(parts) => Ok(PyList::new(py, parts)?.into_any()),
        },
    }
}
