//! Lists of results, created in portions.

use fullbloom_core::cells::allocation::reserve;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::bytes::out_of_memory;
use crate::errors::{OrRaise, in_tree};
use crate::locking::slices;

/// A list of results of type `A` that arrive in portions.
pub(crate) trait ListBuilder<'py, A> {
    /// Appends results; the capacity must suffice for them.
    fn extend(&mut self, answers: &[A]) -> PyResult<()>;
    /// The list of all appended results.
    fn finish(self) -> PyResult<Bound<'py, PyAny>>;
}

/// Marks compared together: as many as fit in a vector.
const TOGETHER: usize = 32;

/// A list of `True` and `False`.
///
/// The answer that is commoner in the first portion fills the list in one call (a loop inside the
/// interpreter, one count for all references), the other is set item by item: 19 to 15 ns per key that
/// is found (1M `str`). Written in place portion by portion, the list needs no second copy of the answers: in
/// a process where that copy took fresh pages in every batch, 19 to 14.6 ns.
pub(crate) struct BoolList<'py> {
    py: Python<'py>,
    capacity: usize,
    len: usize,
    common: u8,
    list: Option<Bound<'py, PyList>>,
}

impl<'py> BoolList<'py> {
    /// An empty list for `capacity` marks.
    pub(crate) fn with_capacity(py: Python<'py>, capacity: usize) -> Self {
        Self { py, capacity, len: 0, common: 0, list: None }
    }

    /// The whole list; created at the first portion, filled with the mark that is commoner in `first`.
    fn create_once(&mut self, first: &[u8]) -> PyResult<Bound<'py, PyList>> {
        if let Some(list) = &self.list {
            return Ok(list.clone());
        }
        let ones: usize = first.iter().map(|&mark| usize::from(mark)).sum();
        self.common = u8::from(ones * 2 > first.len());
        let one = PyList::new(self.py, [self.common != 0])?;
        let list = one.as_sequence().repeat(self.capacity).map_err(|error| in_tree(self.py, error))?;
        let list: Bound<'py, PyList> = list.cast_into()?;
        self.list = Some(list.clone());
        Ok(list)
    }
}

impl<'py> ListBuilder<'py, u8> for BoolList<'py> {
    fn extend(&mut self, marks: &[u8]) -> PyResult<()> {
        let list = self.create_once(marks)?;
        let common = self.common;
        for (at, some) in marks.chunks(TOGETHER).enumerate() {
            if some.iter().all(|&mark| mark == common) {
                continue;
            }
            for (i, _) in some.iter().enumerate().filter(|(_, mark)| **mark != common) {
                let index = (self.len + at * TOGETHER + i) as ffi::Py_ssize_t;
                // SAFETY: a live list, and an attached thread; the set steals a new reference to a singleton, and
                // fails if other code found the list through the collector and shortened it.
                let set = unsafe {
                    let rare = if common != 0 { ffi::Py_False() } else { ffi::Py_True() };
                    ffi::PyList_SetItem(list.as_ptr(), index, ffi::Py_NewRef(rare))
                };
                if set != 0 {
                    return Err(PyErr::fetch(self.py));
                }
            }
        }
        self.len += marks.len();
        Ok(())
    }

    fn finish(mut self) -> PyResult<Bound<'py, PyAny>> {
        let (len, capacity) = (self.len, self.capacity);
        let list = self.create_once(&[])?;
        if len < capacity {
            list.del_slice(len, capacity)?;
        }
        Ok(list.into_any())
    }
}

/// A list of `int`.
pub(crate) struct IntList<'py> {
    py: Python<'py>,
    all: Vec<u64>,
}

impl<'py> IntList<'py> {
    /// An empty list for `capacity` numbers.
    pub(crate) fn with_capacity(py: Python<'py>, capacity: usize) -> PyResult<Self> {
        let mut all = Vec::new();
        reserve(&mut all, capacity).or_raise(py)?;
        Ok(Self { py, all })
    }
}

impl<'py> ListBuilder<'py, u64> for IntList<'py> {
    fn extend(&mut self, numbers: &[u64]) -> PyResult<()> {
        self.all.extend_from_slice(numbers);
        Ok(())
    }

    fn finish(self) -> PyResult<Bound<'py, PyAny>> {
        Ok(create_ints(self.py, &self.all)?.into_any())
    }
}

/// Creates a list of `numbers` as `int`. Other threads may run between two portions: 3M numbers took 120 ms at once.
pub(crate) fn create_ints<'py>(py: Python<'py>, numbers: &[u64]) -> PyResult<Bound<'py, PyList>> {
    let out_of_memory = || out_of_memory(py, size_of_val(numbers));
    // Filled from the start: a thread that runs in between may find the list through the garbage collector.
    let none = PyList::new(py, [py.None()])?;
    let list = none.as_sequence().repeat(numbers.len()).map_err(|_| out_of_memory())?;
    let list: Bound<'py, PyList> = list.cast_into()?;
    for (portion, numbers) in numbers.chunks(slices::OBJECTS_PER_SLICE).enumerate() {
        if portion > 0 {
            slices::yield_to_others(py)?;
        }
        for (i, &number) in numbers.iter().enumerate() {
            let index = (portion * slices::OBJECTS_PER_SLICE + i) as ffi::Py_ssize_t;
            // SAFETY: a live list, and an attached thread; the set steals a new reference, and fails if other code
            // found the list through the collector and shortened it.
            unsafe {
                let number = ffi::PyLong_FromUnsignedLongLong(number);
                if number.is_null() {
                    return Err(out_of_memory());
                }
                if ffi::PyList_SetItem(list.as_ptr(), index, number) != 0 {
                    return Err(PyErr::fetch(py));
                }
            }
        }
    }
    Ok(list)
}
