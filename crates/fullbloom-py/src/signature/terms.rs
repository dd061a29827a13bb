//! Terms, documents and tables from Python, as hashes.

use std::cell::RefCell;

use fullbloom_core::cells::allocation::reserve;
use fullbloom_core::key::KeyHasher;
use fullbloom_core::structure::HashSource;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrow::tables::{self, TableRows};
use crate::dataframes::exports::supports_arrow;
use crate::dataframes::package;
use crate::errors::{OrRaise, key_type, parameter, parameter_type};
use crate::keys::batch::{self, Operation};
use crate::keys::scalar;
use crate::operations::{CollectHashes, Hash};

/// Rows of Python objects that are passed on together.
const PORTION: usize = 1 << 12;

/// The hashes of the terms of one document or query; nulls are left out.
pub(super) fn hash_terms(hasher: &KeyHasher, terms: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    if terms.is_instance_of::<PyDict>() {
        return Err(key_type(terms.py(), "a dict of columns is for an index with columns; this one takes terms"));
    }
    let collected = CollectHashes::default();
    batch::run(&collected, hasher, terms, false)?;
    Ok(collected.into_hashes())
}

/// Passes the hashes of the terms of each document to `pass`, some documents at a time: their ends, and the hashes.
pub(super) fn each_documents(
    hasher: &KeyHasher,
    documents: &Bound<'_, PyAny>,
    mut pass: impl FnMut(Vec<usize>, Vec<u64>) -> PyResult<()>,
) -> PyResult<()> {
    if supports_arrow(documents)? {
        return tables::each_list_rows(hasher, documents, |rows| pass(rows.ends, rows.hashes));
    }
    let (py, mut ends, mut hashes) = (documents.py(), Vec::new(), Vec::new());
    for (number, document) in documents.try_iter()?.enumerate() {
        let terms = document.and_then(|document| hash_terms(hasher, &document));
        match terms {
            Ok(terms) => {
                reserve(&mut hashes, terms.len()).or_raise(py)?;
                hashes.extend(terms);
                ends.push(hashes.len());
            }
            Err(error) => {
                // Documents before a refused one are added.
                pass(std::mem::take(&mut ends), std::mem::take(&mut hashes))?;
                return Err(crate::errors::at(py, number, error));
            }
        }
        if ends.len() == PORTION {
            pass(std::mem::take(&mut ends), std::mem::take(&mut hashes))?;
            py.check_signals()?;
        }
    }
    pass(ends, hashes)
}

/// The hashes of a column, and which rows are no nulls.
#[derive(Default)]
struct CollectColumn(RefCell<(Vec<u64>, Vec<u8>)>);

impl Operation for CollectColumn {
    type Out = u8;
    const SKIPS_NULLS: bool = false;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, _: Option<&mut [u8]>) -> PyResult<()> {
        let (hashes, valid) = &mut *self.0.borrow_mut();
        let first = hashes.len();
        reserve(hashes, source.len()).and_then(|()| reserve(valid, source.len())).or_raise(py)?;
        hashes.resize(first + source.len(), 0);
        valid.resize(first + source.len(), 1);
        Hash.run(py, source, Some(&mut hashes[first..]))
    }

    fn mark_missing(&self, marks: &mut [u8]) {
        let (_, valid) = &mut *self.0.borrow_mut();
        let first = valid.len().saturating_sub(marks.len());
        valid[first..].copy_from_slice(marks);
    }
}

/// Passes the hashes of the columns `names` of a table to `pass`, some rows at a time.
pub(super) fn each_rows(
    hasher: &KeyHasher,
    table: &Bound<'_, PyAny>,
    names: &[String],
    mut pass: impl FnMut(TableRows) -> PyResult<()>,
) -> PyResult<()> {
    let py = table.py();
    // pandas exports its index as a column, and makes nulls of NaN.
    if supports_arrow(table)? && package(table) != "pandas" {
        return tables::each_table_rows(hasher, table, names, pass);
    }
    if !(table.is_instance_of::<PyDict>() || package(table) == "pandas") {
        let what = "a table must be an Arrow table or record batch, a frame, or a dict of columns";
        return Err(key_type(py, format!("{what}, got {}", table.get_type().name()?)));
    }
    let mut rows = TableRows { rows: 0, hashes: Vec::new(), valid: Vec::new() };
    for (i, name) in names.iter().enumerate() {
        if !table.contains(name)? {
            return Err(key_type(py, format!("the table has no column {name:?}")));
        }
        let collected = CollectColumn::default();
        batch::run(&collected, hasher, &table.get_item(name)?, false)?;
        let (hashes, valid) = collected.0.into_inner();
        if i > 0 && hashes.len() != rows.rows {
            let (found, first) = (hashes.len(), rows.rows);
            return Err(parameter(
                py,
                format!("columns must be equally long: {name:?} has {found} rows, {:?} has {first}", names[0]),
            ));
        }
        rows.rows = hashes.len();
        rows.hashes.extend(hashes);
        rows.valid.extend(valid);
    }
    if rows.rows > 0 { pass(rows) } else { Ok(()) }
}

/// The query of an index with columns: the number of each named column, and the hash of its value.
pub(super) fn hash_values(
    hasher: &KeyHasher,
    query: &Bound<'_, PyAny>,
    names: &[String],
) -> PyResult<Vec<(usize, u64)>> {
    let py = query.py();
    let Ok(query) = query.cast::<PyDict>() else {
        return Err(parameter_type(py, "query must be a dict of column names and values for an index with columns"));
    };
    let mut values = Vec::new();
    for (name, value) in query {
        let known = name.extract::<String>().ok().and_then(|name| names.iter().position(|other| *other == name));
        let Some(column) = known else {
            let shown = name.repr()?.to_string().chars().take(80).collect::<String>();
            return Err(parameter(py, format!("query names the column {shown}, the index has {}", names.join(", "))));
        };
        if value.is_none() {
            return Err(key_type(
                py,
                format!("no value equals null, so that a query for it in {:?} is empty", names[column]),
            ));
        }
        values.push((column, scalar::hash_key(hasher, &value)?));
    }
    Ok(values)
}
