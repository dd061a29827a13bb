//! Everything that is special about pandas, Polars, pyarrow, NumPy and DuckDB. Their objects are recognised by the module of
//! their class, so that no library is imported that the caller's object does not come from.
//!
//! * [`exports`]: how the keys of a column or table are read;
//! * [`results`]: results as columns of the library that the keys come from;
//! * [`queries`]: queries that a caller passes instead of keys.

use pyo3::prelude::*;

pub(crate) mod exports;
pub(crate) mod queries;
pub(crate) mod results;

/// The package that the class of an object comes from.
pub(crate) fn package(object: &Bound<'_, PyAny>) -> String {
    let module = object.get_type().module().map(|m| m.to_string()).unwrap_or_default();
    module.split('.').next().unwrap_or_default().to_string()
}

/// True for a Polars Series of Python objects.
fn is_polars_objects(keys: &Bound<'_, PyAny>) -> PyResult<bool> {
    if package(keys) != "polars" || !keys.hasattr("dtype")? {
        return Ok(false);
    }
    keys.getattr("dtype")?.eq(keys.py().import("polars")?.getattr("Object")?)
}

/// True for a frame of the package `of`.
fn is_frame(keys: &Bound<'_, PyAny>, of: &str) -> PyResult<bool> {
    Ok(package(keys) == of && keys.hasattr("columns")? && keys.hasattr("shape")?)
}

/// The letter of the NumPy type of a pandas Series; 0 for other types and other objects.
fn pandas_kind(keys: &Bound<'_, PyAny>) -> PyResult<char> {
    if package(keys) != "pandas" || !keys.hasattr("dtype")? {
        return Ok('\0');
    }
    let dtype = keys.getattr("dtype")?;
    if package(&dtype) == "numpy" { dtype.getattr("kind")?.extract() } else { Ok('\0') }
}

/// True for a pandas Series of NumPy floats: NaN is a value there, as it is in the array, and not the null that an
/// export would make of it.
fn is_pandas_floats(keys: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(pandas_kind(keys)? == 'f')
}
