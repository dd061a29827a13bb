//! The items of a list or a tuple, read from the object and fetched ahead.
//!
//! A million `str` are 80 MB, which pass through memory in 5.5 ns a key at best: a third of a batch.
//! Fetching them ahead keeps memory busy while keys are hashed (15 to 13 ns a key of `update`), and
//! needs their addresses at hand. The stable ABI gives one item a call and does not promise where
//! items lie, so [`is_familiar`] finds out at the first batch; an unfamiliar interpreter keeps the
//! ABI's call.

use bloomery_core::isa::prefetch;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyTuple};

use super::has_sizes;

/// Where a list or tuple states its length: after its reference count and its class.
const LEN_AT: usize = 16;
/// Where a list holds the address of its items, and a tuple its items.
const ITEMS_AT: usize = 24;
/// `list.__basicsize__`: length, address and room.
const LIST_SIZE: usize = 40;
/// Items fetched ahead; 12 to 48 are equally good.
const AHEAD: usize = 24;
/// Bytes of an item that are fetched: a short key ends in the second cache line.
const LINE: usize = 64;

/// The items of one list or tuple, which may change between two calls.
pub(crate) struct Items<'a, 'py> {
    pub(crate) keys: &'a Bound<'py, PyAny>,
    way: Way,
}

#[derive(Clone, Copy)]
enum Way {
    List,
    Tuple,
    ListByCall,
    TupleByCall,
}

impl<'a, 'py> Items<'a, 'py> {
    /// The items of `keys`, if it is exactly a list or a tuple.
    pub(crate) fn of(keys: &'a Bound<'py, PyAny>) -> Option<Self> {
        let way = match (keys.is_exact_instance_of::<PyList>(), is_familiar(keys.py())) {
            (true, true) => Way::List,
            (true, false) => Way::ListByCall,
            _ if !keys.is_exact_instance_of::<PyTuple>() => return None,
            (false, true) => Way::Tuple,
            (false, false) => Way::TupleByCall,
        };
        Some(Self { keys, way })
    }

    /// The item at `index`, borrowed: use it before any Python code runs. `None` past the end.
    #[inline(always)]
    pub(crate) fn get(&self, index: usize) -> Option<*mut ffi::PyObject> {
        let sequence = self.keys.as_ptr();
        // SAFETY: the sequence is alive, of the class that `way` names, and the GIL is held; objects
        // are read only where `is_familiar` has checked how they lie.
        unsafe {
            match self.way {
                Way::List => read(sequence, |base| base.cast::<*const *mut ffi::PyObject>().read(), index),
                Way::Tuple => read(sequence, |base| base.cast(), index),
                Way::ListByCall => self.checked(ffi::PyList_GetItem(sequence, index as ffi::Py_ssize_t)),
                Way::TupleByCall => self.checked(ffi::PyTuple_GetItem(sequence, index as ffi::Py_ssize_t)),
            }
        }
    }

    /// Null comes with an exception, cleared here.
    fn checked(&self, item: *mut ffi::PyObject) -> Option<*mut ffi::PyObject> {
        if item.is_null() {
            drop(PyErr::take(self.keys.py()));
            return None;
        }
        Some(item)
    }
}

/// The item at `index`, where `items` finds the items from the address of their place.
///
/// # Safety
/// `sequence` must be alive and laid out as [`LEN_AT`] and [`ITEMS_AT`] say, and the GIL held.
#[inline(always)]
unsafe fn read(
    sequence: *mut ffi::PyObject,
    items: impl Fn(*const u8) -> *const *mut ffi::PyObject,
    index: usize,
) -> Option<*mut ffi::PyObject> {
    let base = sequence.cast::<u8>();
    // SAFETY: the caller's promise; items are read only below the length.
    unsafe {
        let len = base.add(LEN_AT).cast::<usize>().read();
        if index >= len {
            return None;
        }
        let items = items(base.add(ITEMS_AT));
        if index + AHEAD < len {
            let ahead = items.add(index + AHEAD).read().cast::<u8>();
            prefetch(ahead.cast());
            prefetch(ahead.wrapping_add(LINE).cast());
        }
        Some(items.add(index).read())
    }
}

/// Whether lists and tuples lie in memory as expected; found out once. Runs no code of others.
fn is_familiar(py: Python<'_>) -> bool {
    static FAMILIAR: PyOnceLock<bool> = PyOnceLock::new();
    *FAMILIAR.get_or_init(py, || try_to_learn(py).unwrap_or(false))
}

#[cold]
fn try_to_learn(py: Python<'_>) -> PyResult<bool> {
    if !has_sizes(&py.get_type::<PyList>(), LIST_SIZE, 0)?
        || !has_sizes(&py.get_type::<PyTuple>(), ITEMS_AT, size_of::<usize>())?
    {
        return Ok(false);
    }
    let known = [py.None().into_bound(py), py.get_type::<PyList>().into_any(), py.get_type::<PyTuple>().into_any()];
    let tuple = PyTuple::new(py, &known)?;
    let list = PyList::new(py, &known)?;
    // Room for more items than there are: the length counts, not the room.
    list.append(py.None())?;
    list.del_item(3)?;
    let reads = |keys: &Bound<'_, PyAny>, way| {
        let items = Items { keys, way };
        items.get(3).is_none() && known.iter().enumerate().all(|(i, item)| items.get(i) == Some(item.as_ptr()))
    };
    Ok(reads(&list, Way::List) && reads(&tuple, Way::Tuple))
}
