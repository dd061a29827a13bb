//! One call of the function: the rows of a chunk, by runs of one name.
//!
//! A thread of a query keeps the filters that it has found, until the query ends or a filter is registered or released:
//! only to find a filter it waits for the interpreter.

use std::ffi::{CString, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use fullbloom_core::key::KeyDomains;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::api::{Api, Handle};
use super::database::{CALLS, Database, Overload};
use super::filters::{VisitedFilter, visit};
use super::interpreter::{Retired, detached, drop_retired, retire, with_interpreter};
use super::types::{Keys, Text, is_valid};
use crate::column::read;
use crate::locking::forks;

/// The results of [`Calls::look_up`](super::Calls): this one for null, else 0 or 1.
const NULL: u8 = 2;

/// What a thread of a query keeps between chunks.
#[derive(Default)]
struct Worker {
    /// The version of the filters that were found, and the process.
    version: (u64, u32),
    filters: Vec<(Box<str>, Found)>,
}

/// The filter of a name.
enum Found {
    Visited(Box<dyn VisitedFilter>),
    /// One whose class is written in Python, or has entries that are not keys.
    Other(Py<PyAny>),
}

/// The vectors of a chunk.
struct Chunk<'a> {
    names: *const Text,
    names_validity: *const u64,
    keys: Keys,
    found: &'a mut [u8],
    /// The rows with a result; empty if all have one.
    valid: Vec<u64>,
}

/// Begins the execution on one thread.
pub(super) unsafe extern "C" fn begin(info: Handle) {
    let Some(api) = Api::get() else { return };
    let worker = Box::into_raw(Box::<Worker>::default()).cast();
    // SAFETY: DuckDB passes the info of this call; the state is a `Worker` wherever it is read.
    unsafe { (api.scalar_function_init_set_state)(info, worker, end) };
}

/// Ends it, on any thread.
unsafe extern "C" fn end(worker: *mut c_void) {
    // SAFETY: created in `begin`, and freed once.
    let mut worker = unsafe { Box::from_raw(worker.cast::<Worker>()) };
    let _ = catch_unwind(AssertUnwindSafe(|| worker.forget()));
}

/// `bloom_contains(name, key)`.
pub(super) unsafe extern "C" fn look_up(info: Handle, chunk: Handle, result: Handle) {
    // SAFETY: DuckDB passes the handles of this call.
    unsafe { execute(info, |api, overload, worker| look_up_chunk(api, overload, worker, chunk, result)) };
}

/// `fullbloom_database()`.
pub(super) unsafe extern "C" fn return_number(info: Handle, chunk: Handle, result: Handle) {
    // SAFETY: DuckDB passes the handles of this call, and a vector of numbers of 64 bits for each row.
    unsafe {
        execute(info, |api, overload, _| {
            let rows = (api.data_chunk_get_size)(chunk) as usize;
            let numbers = (api.vector_get_data)(result).cast::<u64>();
            (0..rows).for_each(|row| numbers.add(row).write(overload.database.number));
            Ok(())
        });
    }
}

/// Runs `work`, and reports its error or panic to DuckDB.
///
/// # Safety
/// `info` must be that of a call of one of the functions of `extension`.
unsafe fn execute(info: Handle, work: impl FnOnce(&Api, &Overload, &mut Worker) -> Result<(), String>) {
    let Some(api) = Api::get() else { return };
    // SAFETY: the data that `extension` and `begin` have set; the state belongs to this thread.
    let outcome = catch_unwind(AssertUnwindSafe(|| unsafe {
        let overload = (api.scalar_function_get_extra_info)(info).cast::<Overload>();
        let worker = (api.scalar_function_get_state)(info).cast::<Worker>();
        work(api, &*overload, &mut *worker)
    }));
    if let Err(message) = outcome.unwrap_or_else(|_| Err("internal error of fullbloom".into())) {
        let message = CString::new(message.replace('\0', "\u{fffd}")).unwrap_or_default();
        // SAFETY: DuckDB copies the text.
        unsafe { (api.scalar_function_set_error)(info, message.as_ptr()) };
    }
}

/// Writes the results of a chunk.
///
/// # Safety
/// The handles must be those of a call of the overload: flat vectors of names and keys, and a flat vector of booleans.
unsafe fn look_up_chunk(
    api: &Api,
    overload: &Overload,
    worker: &mut Worker,
    chunk: Handle,
    result: Handle,
) -> Result<(), String> {
    // SAFETY: the caller's promise. DuckDB flattens the arguments, and gives each vector as many values as there are rows.
    unsafe {
        let rows = (api.data_chunk_get_size)(chunk) as usize;
        if rows == 0 {
            return Ok(());
        }
        let (names, keys) = ((api.data_chunk_get_vector)(chunk, 0), (api.data_chunk_get_vector)(chunk, 1));
        let validity: *const u64 = (api.vector_get_validity)(keys);
        let mut chunk = Chunk {
            names: (api.vector_get_data)(names).cast::<Text>(),
            names_validity: (api.vector_get_validity)(names),
            keys: Keys {
                of: overload.keys,
                data: (api.vector_get_data)(keys).cast::<u8>(),
                validity,
                start: 0,
                len: rows,
            },
            found: std::slice::from_raw_parts_mut((api.vector_get_data)(result).cast::<u8>(), rows),
            valid: Vec::new(),
        };
        if !validity.is_null() {
            chunk.valid.extend_from_slice(std::slice::from_raw_parts(validity, rows.div_ceil(64)));
        }
        detached(|| chunk.look_up(&overload.database, worker))?;
        if !chunk.valid.is_empty() {
            (api.vector_ensure_validity_writable)(result);
            let mask = (api.vector_get_validity)(result);
            std::ptr::copy_nonoverlapping(chunk.valid.as_ptr(), mask, chunk.valid.len());
        }
    }
    Ok(())
}

impl Chunk<'_> {
    /// Writes the results, and the rows that have one.
    fn look_up(&mut self, database: &Database, worker: &mut Worker) -> Result<(), String> {
        let (rows, mut start) = (self.keys.len, 0);
        while start < rows {
            let end = self.end_of_run(start, rows);
            // SAFETY: the mask of the names has each row.
            if unsafe { is_valid(self.names_validity, start) } {
                // SAFETY: a vector of texts has a valid one for each row that is not null.
                let name = unsafe { Text::bytes(self.names.add(start)) };
                let name = std::str::from_utf8(name).map_err(|_| "the name of a filter is not valid UTF-8")?;
                self.look_up_run(start..end, worker.find(database, name)?)?;
            } else {
                (start..end).for_each(|row| self.set_null(row));
            }
            start = end;
        }
        Ok(())
    }

    /// The end of the rows from `start` on that have one name. Equal names of more than 12 bytes may be at several
    /// addresses, which ends a run too early and does no harm.
    fn end_of_run(&self, start: usize, rows: usize) -> usize {
        // SAFETY: the vector has a value for each row; that of a null may be anything.
        let name = |row: usize| unsafe { read::<[u64; 2]>(self.names.add(row).cast()) };
        // SAFETY: the mask of the names has each row.
        let is_name = |row: usize| unsafe { is_valid(self.names_validity, row) };
        let first = name(start);
        let differs = |row: usize| (name(row)[0] ^ first[0]) | (name(row)[1] ^ first[1]);
        if self.names_validity.is_null() {
            // As a rule all are equal: compared without a branch, several at once.
            if (start..rows).fold(0, |all, row| all | differs(row)) == 0 {
                return rows;
            }
            return (start..rows).find(|&row| differs(row) != 0).unwrap_or(rows);
        }
        let is_first = is_name(start);
        let ends = |row: usize| is_name(row) != is_first || is_first && differs(row) != 0;
        (start..rows).find(|&row| ends(row)).unwrap_or(rows)
    }

    /// Looks up some rows in one filter.
    fn look_up_run(&mut self, rows: std::ops::Range<usize>, filter: &Found) -> Result<(), String> {
        let keys = Keys { start: rows.start, len: rows.len(), ..self.keys };
        if keys.are_nulls() {
            return Ok(());
        }
        match filter {
            Found::Visited(filter) => {
                let found = &mut self.found[rows];
                keys.with_hashes(filter.hasher(), |keys| {
                    if filter.contains(keys, keys.domains(), found) {
                        return Ok(());
                    }
                    attach(|py| filter.warn(py, keys.domains()))?;
                    filter.contains(keys, KeyDomains::NONE, found);
                    Ok(())
                })
            }
            Found::Other(filter) => {
                let results = attach(|py| look_up_elsewhere(filter.bind(py), &keys))?;
                for (row, result) in rows.zip(results) {
                    self.found[row] = u8::from(result == 1);
                    if result == NULL {
                        self.set_null(row);
                    }
                }
                Ok(())
            }
        }
    }

    fn set_null(&mut self, row: usize) {
        if self.valid.is_empty() {
            self.valid.resize(self.keys.len.div_ceil(64), u64::MAX);
        }
        self.valid[row / 64] &= !(1 << (row % 64));
    }
}

impl Worker {
    /// Forgets the filters.
    fn forget(&mut self) {
        if self.filters.is_empty() {
            return;
        }
        retire(self.filters.drain(..).map(|(_, found)| match found {
            Found::Visited(mut filter) => {
                filter.leave();
                Retired::Filter(filter)
            }
            Found::Other(filter) => Retired::Object(filter),
        }));
    }

    /// The filter of a name.
    fn find(&mut self, database: &Database, name: &str) -> Result<&Found, String> {
        let version = (database.version.load(Ordering::Acquire), forks::generation());
        if self.version != version {
            self.forget();
            self.version = version;
        }
        if let Some(at) = self.filters.iter().position(|(known, _)| **known == *name) {
            return Ok(&self.filters[at].1);
        }
        let found = attach(|py| {
            let filter = database.find(py, name)?;
            Ok(visit(&filter).map_or_else(|| Found::Other(filter.unbind()), Found::Visited))
        })?;
        self.filters.push((name.into(), found));
        Ok(&self.filters[self.filters.len() - 1].1)
    }
}

/// Runs `work` with the interpreter; an exception becomes a message.
fn attach<R>(work: impl FnOnce(Python<'_>) -> PyResult<R>) -> Result<R, String> {
    let describe = |py: Python<'_>, error: PyErr| match error.get_type(py).name() {
        Ok(name) => format!("{name}: {}", error.value(py)),
        Err(_) => error.to_string(),
    };
    let outcome = with_interpreter(|py| {
        drop_retired(py);
        work(py).map_err(|error| describe(py, error))
    });
    outcome.unwrap_or_else(|| Err("the interpreter is shutting down".into()))
}

/// One result per key: 0, 1 or [`NULL`], of a filter that is called with the interpreter.
fn look_up_elsewhere(filter: &Bound<'_, PyAny>, keys: &Keys) -> PyResult<Vec<u8>> {
    let py = filter.py();
    let mut validity = vec![0u8; keys.len.div_ceil(8)];
    (0..keys.len).filter(|&i| keys.is_valid(i)).for_each(|i| validity[i / 8] |= 1 << (i % 8));
    let validity = PyBytes::new(py, &validity);
    let Some(calls) = CALLS.get(py) else {
        return Err(crate::errors::parameter(py, "no filter is registered"));
    };
    let buffers = if keys.of.is_text() {
        let (mut offsets, mut data) = (Vec::with_capacity(8 * (keys.len + 1)), Vec::new());
        offsets.extend_from_slice(&0i64.to_ne_bytes());
        for i in 0..keys.len {
            data.extend_from_slice(keys.text(i));
            offsets.extend_from_slice(&(data.len() as i64).to_ne_bytes());
        }
        vec![validity, PyBytes::new(py, &offsets), PyBytes::new(py, &data)]
    } else {
        vec![validity, PyBytes::new(py, keys.fixed())]
    };
    let results = calls.look_up.bind(py).call1((filter, keys.of.name, keys.len, buffers))?;
    let results: Vec<u8> = results.cast_into::<PyBytes>()?.as_bytes().to_vec();
    if results.len() == keys.len {
        return Ok(results);
    }
    let message = format!("a filter returned {} results for {} keys", results.len(), keys.len);
    Err(crate::errors::parameter(py, message))
}
