//! Row numbers as the caller wants them.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrow::export::Writer;
use crate::dataframes::exports::supports_arrow;
use crate::dataframes::package;
use crate::errors::parameter;
use crate::parameters;
use crate::python_objects::answers::{Answer, like_arrow, like_buffer};

/// A container of row numbers.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Container {
    List,
    NumPy,
    Arrow,
}

impl Container {
    /// The container that `name` says, else that of the query.
    pub(super) fn choose(name: Option<&Bound<'_, PyAny>>, query: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Some(name) = name.filter(|name| !name.is_none()) {
            return match parameters::text("kind", name)? {
                "list" => Ok(Container::List),
                "numpy" => Ok(Container::NumPy),
                "arrow" => Ok(Container::Arrow),
                other => Err(parameter(name.py(), format!("kind must be list, numpy or arrow, got {other:?}"))),
            };
        }
        Ok(match package(query).as_str() {
            "numpy" | "pandas" => Container::NumPy,
            _ if !query.is_instance_of::<PyDict>() && supports_arrow(query)? => Container::Arrow,
            _ => Container::List,
        })
    }

    /// `rows` in it; `query` says which library's Arrow column is wanted.
    pub(super) fn of<'py>(self, rows: &[u64], query: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = query.py();
        match self {
            Container::List => u64::to_list(py, rows),
            Container::NumPy => {
                let like = py.import("numpy")?.call_method1("empty", (0,))?;
                like_buffer(&like, rows.len(), |out: &mut [u64]| {
                    out.copy_from_slice(rows);
                    Ok(())
                })
            }
            Container::Arrow => {
                let mut column = Writer::with_capacity::<u64>(py, rows.len(), false)?;
                column.append(rows, &[]);
                like_arrow::<u64>(query, vec![column.finish::<u64>()], false)
            }
        }
    }
}
