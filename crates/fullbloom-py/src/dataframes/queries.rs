//! Queries that a caller passes instead of keys: a query has no keys before it runs.

use pyo3::prelude::*;
use pyo3::types::PyType;

use super::package;
use crate::errors::key_type;

/// What to pass instead of a query, by its package and the name of its class.
const REMEDIES: &[(&str, &str, &str)] = &[
    (
        "polars",
        "LazyFrame",
        "a LazyFrame is a query and holds no keys; run it with .collect() and pass a column of the result, \
         frame.collect()[\"name\"]",
    ),
    (
        "polars",
        "Expr",
        "an expression holds no keys before a query is run; have the query call the filter, \
         pl.col(\"name\").map_batches(f.contains_many, return_dtype=pl.Boolean)",
    ),
];

/// What to pass instead of an object of `class`, if that is a query's class or derived from one.
pub(crate) fn find_remedy(class: &Bound<'_, PyType>) -> Option<&'static str> {
    class.mro().iter().find_map(|base| {
        let base = base.cast::<PyType>().ok()?;
        let (module, name) = (base.module().ok()?.to_string(), base.name().ok()?.to_string());
        let package = module.split('.').next()?;
        REMEDIES.iter().find(|(of, class, _)| *of == package && *class == name).map(|(_, _, remedy)| *remedy)
    })
}

/// Refuses a query passed as keys.
pub(crate) fn refuse(keys: &Bound<'_, PyAny>) -> PyResult<()> {
    find_remedy(&keys.get_type()).map_or(Ok(()), |remedy| Err(key_type(keys.py(), remedy)))
}

/// True for a DuckDB query, which runs when its rows are read: its only column holds the keys.
pub(crate) fn is_relation(keys: &Bound<'_, PyAny>) -> bool {
    matches!(package(keys).as_str(), "duckdb" | "_duckdb")
}

/// Runs a DuckDB query of a release whose relations do not export themselves: returns a pyarrow table, or its only
/// column.
pub(crate) fn fetch<'py>(keys: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if !is_relation(keys) || !keys.hasattr("fetch_arrow_table")? {
        return Ok(None);
    }
    let table = keys.call_method0("fetch_arrow_table")?;
    let columns: usize = table.getattr("num_columns")?.extract()?;
    Ok(Some(if columns == 1 { table.call_method1("column", (0,))? } else { table }))
}
