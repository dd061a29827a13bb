//! Answers in the caller's kind: list for list, NumPy for NumPy, Arrow for Arrow.
//!
//! No library is imported here that the caller's object does not come from.

use fullbloom_core::cells::allocation::zeroed;
use pyo3::IntoPyObjectExt;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyDict, PyList};

use crate::arrow::ArrowColumn;
use crate::arrow::export::Cell;
use crate::errors::{OrRaise, in_tree};
use crate::gathered::{Gathered, Hashes, Marks};
use crate::turns;

/// What comes out for one key: a mark or a hash.
pub(crate) trait Answer: Cell + Default + Send + Sync + 'static {
    /// NumPy's name of the type.
    const NUMPY_TYPE: &'static str;
    /// pyarrow's name of the type's factory.
    const ARROW_TYPE: &'static str;
    /// What gathers answers to a list.
    type Gathered<'py>: Gathered<'py, Self>;
    /// Gathers up to `room` answers.
    fn gather(py: Python<'_>, room: usize) -> PyResult<Self::Gathered<'_>>;
    /// A list of Python objects. Other threads may run between two portions: 3M marks took 9 ms at once.
    fn to_list<'py>(py: Python<'py>, answers: &[Self]) -> PyResult<Bound<'py, PyAny>> {
        let mut gathered = Self::gather(py, answers.len())?;
        for portion in answers.chunks(turns::OBJECTS_A_TURN) {
            gathered.extend(portion)?;
            turns::breathe(py)?;
        }
        gathered.finish()
    }
}

/// A 0/1 mark.
impl Answer for u8 {
    const NUMPY_TYPE: &'static str = "bool";
    const ARROW_TYPE: &'static str = "bool_";

    type Gathered<'py> = Marks<'py>;

    fn gather(py: Python<'_>, room: usize) -> PyResult<Marks<'_>> {
        Ok(Marks::with_room(py, room))
    }
}

/// A hash.
impl Answer for u64 {
    const NUMPY_TYPE: &'static str = "uint64";
    const ARROW_TYPE: &'static str = "uint64";

    type Gathered<'py> = Hashes<'py>;

    fn gather(py: Python<'_>, room: usize) -> PyResult<Hashes<'_>> {
        Hashes::with_room(py, room)
    }
}

/// The package an object's class comes from.
pub(crate) fn package(object: &Bound<'_, PyAny>) -> String {
    let module = object.get_type().module().map(|m| m.to_string()).unwrap_or_default();
    module.split('.').next().unwrap_or_default().to_string()
}

/// True for a Polars Series of Python objects.
pub(crate) fn is_polars_objects(keys: &Bound<'_, PyAny>) -> PyResult<bool> {
    if package(keys) != "polars" || !keys.hasattr("dtype")? {
        return Ok(false);
    }
    keys.getattr("dtype")?.eq(keys.py().import("polars")?.getattr("Object")?)
}

/// True for a frame of this package.
pub(crate) fn is_frame(keys: &Bound<'_, PyAny>, of: &str) -> PyResult<bool> {
    Ok(package(keys) == of && keys.hasattr("columns")? && keys.hasattr("shape")?)
}

/// The NumPy type of a pandas Series, by its letter; 0 for other types, and what is no Series.
fn pandas_kind(keys: &Bound<'_, PyAny>) -> PyResult<char> {
    if package(keys) != "pandas" || !keys.hasattr("dtype")? {
        return Ok('\0');
    }
    let dtype = keys.getattr("dtype")?;
    if package(&dtype) == "numpy" { dtype.getattr("kind")?.extract() } else { Ok('\0') }
}

/// True for what comes from pandas.
pub(crate) fn is_pandas(keys: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(package(keys) == "pandas" && keys.hasattr("to_list")?)
}

/// True for a Series of Python objects, which are had as a list.
pub(crate) fn is_listed(keys: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(pandas_kind(keys)? == 'O' || is_polars_objects(keys)?)
}

/// True for a pandas Series of floats as NumPy has them: there NaN is a value, as it is in the array, and not the
/// null that an export would make of it.
pub(crate) fn is_pandas_floats(keys: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(pandas_kind(keys)? == 'f')
}

/// True for a pandas Series of Python objects, dates or durations of which some are missing.
pub(crate) fn has_missing(keys: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(matches!(pandas_kind(keys)?, 'O' | 'M' | 'm') && keys.getattr("hasnans")?.is_truthy()?)
}

/// Lets `fill` write the answers: straight into a new NumPy array for NumPy keys, else to a list.
pub(crate) fn like_buffer<'py, A: Answer>(
    keys: &Bound<'py, PyAny>,
    len: usize,
    fill: impl FnOnce(&mut [A]) -> PyResult<()>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    if package(keys) != "numpy" {
        let mut answers = zeroed(len).or_raise(py)?;
        fill(&mut answers)?;
        return A::to_list(py, &answers);
    }
    let array = py.import("numpy")?.call_method1("empty", (len, A::NUMPY_TYPE)).map_err(|error| in_tree(py, error))?;
    let bytes = PyBuffer::<u8>::get(&array.call_method1("view", ("uint8",))?)?;
    let size = std::mem::size_of::<A>();
    if bytes.readonly() || !bytes.is_c_contiguous() || bytes.len_bytes() != len * size {
        return Err(PyBufferError::new_err("numpy.empty did not return a plain array"));
    }
    if len > 0 {
        // SAFETY: the array was made here, is contiguous, writable, aligned for its own type, as
        // long as checked above, and nobody else has seen it yet; the buffer keeps it alive. Any
        // bit pattern is a valid u8 or u64.
        fill(unsafe { std::slice::from_raw_parts_mut(bytes.buf_ptr().cast::<A>(), len) })?;
    }
    Ok(array)
}

/// The answers for Python objects: NumPy for a NumPy object array, else a list.
pub(crate) fn like_objects<'py, A: Answer>(keys: &Bound<'py, PyAny>, answers: Vec<A>) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    match package(keys).as_str() {
        "numpy" => like_buffer(keys, answers.len(), |out| {
            out.copy_from_slice(&answers);
            Ok(())
        }),
        "pandas" => like_series(keys, A::to_list(py, &answers)?),
        _ => A::to_list(py, &answers),
    }
}

/// A pandas Series with the index and name of `keys`; `answer` itself for anything else.
pub(crate) fn like_series<'py>(keys: &Bound<'py, PyAny>, answer: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if answer.is_none() || package(keys) != "pandas" || !keys.hasattr("index")? {
        return Ok(answer);
    }
    let py = keys.py();
    let options = PyDict::new(py);
    options.set_item("index", keys.getattr("index")?)?;
    options.set_item("name", if is_frame(keys, "pandas")? { None } else { Some(keys.getattr("name")?) })?;
    py.import("pandas")?.call_method("Series", (answer,), Some(&options))
}

/// `answer`, which is no column of Arrow's, with those left out that `valid` has a 0 for: None in a list, NA in a Series of
/// pandas, masked in a NumPy array.
pub(crate) fn without<'py>(answer: Bound<'py, PyAny>, valid: &[u8]) -> PyResult<Bound<'py, PyAny>> {
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

/// Columns as the library of `keys` has them: pyarrow arrays, a Polars or pandas Series, or our
/// own Arrow object for every other library.
pub(crate) fn like_arrow<'py>(
    keys: &Bound<'py, PyAny>,
    parts: Vec<ArrowColumn>,
    streamed: bool,
    arrow_type: &str,
) -> PyResult<Bound<'py, PyAny>> {
    taken_over(keys, parts, streamed, arrow_type).map_err(|error| in_tree(keys.py(), error))
}

/// As [`like_arrow`], with the errors of the library.
fn taken_over<'py>(
    keys: &Bound<'py, PyAny>,
    parts: Vec<ArrowColumn>,
    streamed: bool,
    arrow_type: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    let parts = parts.into_iter().map(|part| Bound::new(py, part)).collect::<PyResult<Vec<_>>>()?;
    match package(keys).as_str() {
        "pyarrow" => {
            let pyarrow = py.import("pyarrow")?;
            let arrays = parts.iter().map(|part| pyarrow.call_method1("array", (part,)));
            let arrays = PyList::new(py, arrays.collect::<PyResult<Vec<_>>>()?)?;
            if !streamed && arrays.len() == 1 {
                return arrays.get_item(0);
            }
            pyarrow.call_method1("chunked_array", (arrays, pyarrow.call_method0(arrow_type)?))
        }
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
            let pyarrow = py.import("pyarrow")?;
            let arrays = parts.iter().map(|part| pyarrow.call_method1("array", (part,)));
            let arrays = PyList::new(py, arrays.collect::<PyResult<Vec<_>>>()?)?;
            let whole = pyarrow.call_method1("chunked_array", (arrays, pyarrow.call_method0(arrow_type)?))?;
            let nulls: usize = whole.getattr("null_count")?.extract()?;
            if nulls == 0 {
                return like_series(keys, whole.call_method0("to_pandas")?.getattr("array")?);
            }
            // pandas' own nullable type where there are nulls; to_pandas() would go through float64,
            // which no hash survives.
            let nullable = if arrow_type == "bool_" { "boolean" } else { "UInt64" };
            let options = PyDict::new(py);
            options.set_item("dtype", nullable)?;
            let values = whole.call_method0("to_pylist")?;
            like_series(keys, py.import("pandas")?.call_method("array", (values,), Some(&options))?)
        }
        _ => match <[Bound<'py, ArrowColumn>; 1]>::try_from(parts) {
            Ok([only]) => Ok(only.into_any()),
            Err(parts) => Ok(PyList::new(py, parts)?.into_any()),
        },
    }
}
