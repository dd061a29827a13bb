//! Tables column by column, and columns of lists: for rows whose parts are hashed by themselves.

use std::ffi::CStr;

use fullbloom_core::key::KeyHasher;
use fullbloom_core::structure::HashSource;
use pyo3::prelude::*;

use super::ffi::{Array, Schema, Stream};
use super::import::{check, refuse_consumed, take, values};
use super::meaning::Meaning;
use super::nulls::Nulls;
use super::rows::field;
use super::stated::{Stated, format_of, is_plausible, refuse};
use crate::column::read;
use crate::dataframes::exports::export_capsules;
use crate::errors::key_type;
use crate::locking::slices;

/// Rows that are hashed and passed on together.
const PORTION: usize = 1 << 14;

/// Arrays as an object exports them.
struct Arrays {
    schema: Schema,
    first: Option<Array>,
    stream: Option<Stream>,
}

impl Arrays {
    /// Those of `object`. Runs the exporter's code.
    fn open(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (py, capsules) = (object.py(), export_capsules(object)?);
        if let Ok(pair) = capsules.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() {
            let schema: Schema = take(&pair.0, c"arrow_schema", Schema::empty())?;
            let array: Array = take(&pair.1, c"arrow_array", Array::empty())?;
            if schema.release.is_none() || array.release.is_none() {
                return Err(refuse_consumed(py));
            }
            return Ok(Arrays { schema, first: Some(array), stream: None });
        }
        let mut stream: Stream = take(&capsules, c"arrow_array_stream", Stream::empty())?;
        let (Some(get_schema), Some(_)) = (stream.get_schema, stream.release) else { return Err(refuse_consumed(py)) };
        let mut schema = Schema::empty();
        // SAFETY: the stream is alive and ours; the structure is valid to fill.
        check(unsafe { get_schema(&mut stream, &mut schema) }, &mut stream)?;
        Ok(Arrays { schema, first: None, stream: Some(stream) })
    }

    /// The next array. Runs the exporter's code.
    fn next(&mut self, py: Python<'_>) -> PyResult<Option<Array>> {
        if let Some(array) = self.first.take() {
            return Ok(Some(array));
        }
        let Some(stream) = &mut self.stream else { return Ok(None) };
        let mut array = Array::empty();
        let code = match stream.get_next {
            // SAFETY: the stream is alive and ours; the structure is valid to fill.
            Some(get_next) => unsafe { get_next(stream, &mut array) },
            None => return Err(refuse(py, "no function to get its chunks")),
        };
        check(code, stream)?;
        Ok(array.release.is_some().then_some(array))
    }
}

/// A column of a chunk: its rows begin at `first`.
struct Part {
    source: Box<dyn HashSource + Send>,
    nulls: Nulls,
    first: usize,
}

impl Part {
    /// The column that `schema` and `array` describe, from row `first` on, at least `rows` rows.
    fn new(
        py: Python<'_>,
        hasher: &KeyHasher,
        (schema, array): (&Schema, &Array),
        first: usize,
        rows: usize,
    ) -> PyResult<Self> {
        let (source, nulls) = values(py, Meaning::Keys(*hasher), schema, array)?;
        if source.len() < first.saturating_add(rows) {
            return Err(refuse(py, format!("a field of {} rows in a table of {}", source.len(), first + rows)));
        }
        Ok(Part { source, nulls, first })
    }

    /// The hashes of rows `start..start + out.len()`, and which of them are no nulls.
    fn fill(&self, start: usize, out: &mut [u64], valid: &mut [u8]) {
        let first = self.first + start;
        self.source.fill(first, out);
        self.nulls.mark(first, valid);
    }
}

/// Hashes of some rows of a table, a column after the other, and which of them are no nulls.
pub(crate) struct TableRows {
    /// Number of rows.
    pub(crate) rows: usize,
    /// A column after the other.
    pub(crate) hashes: Vec<u64>,
    /// As long; 0 for a null.
    pub(crate) valid: Vec<u8>,
}

/// The name of a field.
fn name_of(schema: &Schema) -> String {
    if schema.name.is_null() || (schema.name as usize) < 4096 {
        return String::new();
    }
    // SAFETY: the name of a live schema is a NUL-terminated string.
    unsafe { CStr::from_ptr(schema.name) }.to_string_lossy().into_owned()
}

/// Passes the rows of a table to `take`, some at a time, with the columns `names` in that order.
pub(crate) fn each_table_rows(
    hasher: &KeyHasher,
    table: &Bound<'_, PyAny>,
    names: &[String],
    mut pass: impl FnMut(TableRows) -> PyResult<()>,
) -> PyResult<()> {
    let (py, mut arrays) = (table.py(), Arrays::open(table)?);
    let count = usize::try_from(arrays.schema.n_children).unwrap_or(usize::MAX);
    if format_of(&arrays.schema) != "+s" || count > 1 << 16 {
        return Err(key_type(py, "a table must have named columns; pass a table, a record batch or a dict of columns"));
    }
    if count > 0 && !is_plausible(arrays.schema.children) {
        return Err(refuse(py, "fields without an address"));
    }
    // SAFETY: there are `n_children` addresses of schemas that live as long as their parent.
    let child = |i: usize| unsafe { *arrays.schema.children.add(i) };
    let children = (0..count).map(child).collect::<Vec<_>>();
    if children.iter().any(|child| !is_plausible(*child)) {
        return Err(refuse(py, "a field without an address"));
    }
    // SAFETY: as above.
    let found: Vec<String> = children.iter().map(|child| name_of(unsafe { &**child })).collect();
    let position = |name: &String| {
        let mut same = found.iter().enumerate().filter(|(_, other)| *other == name);
        match (same.next(), same.next()) {
            (Some((i, _)), None) => Ok(i),
            (None, _) => Err(key_type(py, format!("the table has no column {name:?}"))),
            _ => Err(key_type(py, format!("the table has several columns {name:?}"))),
        }
    };
    let positions = names.iter().map(position).collect::<PyResult<Vec<_>>>()?;
    while let Some(array) = arrays.next(py)? {
        let stated = Stated::new(py, &array)?;
        if array.n_children != arrays.schema.n_children {
            return Err(refuse(py, format!("{} fields, of which it holds {}", count, array.n_children)));
        }
        let own = Nulls::of("+s", &stated)?;
        let part = |i: &usize| Part::new(py, hasher, field(py, &arrays.schema, &array, *i)?, stated.offset, stated.len);
        let parts = positions.iter().map(part).collect::<PyResult<Vec<_>>>()?;
        for start in (0..stated.len).step_by(PORTION) {
            let rows = PORTION.min(stated.len - start);
            let filled = py.detach(|| {
                let (mut hashes, mut valid) = (vec![0; rows * parts.len()], vec![1; rows * parts.len()]);
                let mut whole = vec![1; rows];
                own.mark(start, &mut whole);
                let columns = hashes.chunks_mut(rows).zip(valid.chunks_mut(rows)).zip(&parts);
                for ((hashes, valid), part) in columns {
                    part.fill(start, hashes, valid);
                    valid.iter_mut().zip(&whole).for_each(|(valid, whole)| *valid &= whole);
                }
                TableRows { rows, hashes, valid }
            });
            pass(filled)?;
            py.check_signals()?;
        }
    }
    Ok(())
}

/// Hashes of the items of some lists: those of list i end at `ends[i]`; nulls are left out.
pub(crate) struct ListRows {
    /// The end of each list among the hashes.
    pub(crate) ends: Vec<usize>,
    /// The hashes.
    pub(crate) hashes: Vec<u64>,
}

/// The offsets of lists, which must ascend.
fn offsets<T: Copy + Default + Sync + Into<i64>>(stated: &Stated<'_>) -> PyResult<Vec<usize>> {
    let (py, first) = (stated.py, stated.rows(1, size_of::<T>())? as usize);
    if stated.len == 0 {
        return Ok(vec![0]);
    }
    let offset = |i: usize| -> i64 {
        let at = (first as *const u8).wrapping_add(i * size_of::<T>());
        // SAFETY: there is an offset for each row and one more, and i is at most the number of rows.
        unsafe { read::<T>(at) }.into()
    };
    let falls = |mut rows: std::ops::Range<usize>| rows.find(|&i| offset(i) < 0 || offset(i) > offset(i + 1));
    if slices::find_first(py, stated.len, falls)?.is_some() {
        return Err(refuse(py, "offsets of lists that fall"));
    }
    let len = stated.len;
    Ok(slices::detach_if_long(py, len, || (0..=len).map(|i| offset(i) as usize).collect()))
}

/// Passes the lists of a column to `pass`, some at a time; a null list is empty. False if it is not a column of lists,
/// and then nothing was read.
pub(crate) fn each_list_rows(
    hasher: &KeyHasher,
    lists: &Bound<'_, PyAny>,
    mut pass: impl FnMut(ListRows) -> PyResult<()>,
) -> PyResult<()> {
    let (py, mut arrays) = (lists.py(), Arrays::open(lists)?);
    let format = format_of(&arrays.schema);
    let is_long = match format.as_str() {
        "+l" => false,
        "+L" => true,
        _ => {
            return Err(key_type(py, "documents must be a column of lists of terms; pass one, or an iterable of them"));
        }
    };
    while let Some(array) = arrays.next(py)? {
        let stated = Stated::new(py, &array)?;
        if (arrays.schema.n_children, array.n_children) != (1, 1) {
            return Err(refuse(py, "lists without one child"));
        }
        let nulls = Nulls::of(&format, &stated)?;
        let at = if is_long { offsets::<i64>(&stated)? } else { offsets::<i32>(&stated)? };
        let items = Part::new(py, hasher, field(py, &arrays.schema, &array, 0)?, 0, at[at.len() - 1])?;
        let mut start = 0;
        while start < stated.len {
            // Some lists at a time, but never less than one.
            let most = at[start].saturating_add(PORTION);
            let end = (start + 1).max(at[start..=stated.len].partition_point(|at| *at <= most) + start - 1);
            let end = end.min(start + PORTION);
            let rows = py.detach(|| {
                let len = at[end] - at[start];
                let (mut hashes, mut valid, mut whole) = (vec![0; len], vec![1; len], vec![1; end - start]);
                items.fill(at[start], &mut hashes, &mut valid);
                nulls.mark(start, &mut whole);
                let (mut left, mut ends) = (0, Vec::new());
                for (row, whole) in (start..end).zip(whole) {
                    for i in at[row] - at[start]..at[row + 1] - at[start] {
                        if whole != 0 && valid[i] != 0 {
                            hashes[left] = hashes[i];
                            left += 1;
                        }
                    }
                    ends.push(left);
                }
                hashes.truncate(left);
                ListRows { ends, hashes }
            });
            pass(rows)?;
            py.check_signals()?;
            start = end;
        }
    }
    Ok(())
}
