//! Results in the same container type as the keys: list for list, NumPy for NumPy, Arrow for Arrow.

use fullbloom_core::cells::allocation::zeroed;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;

use super::lists::{BoolList, IntList, ListBuilder};
use crate::arrow::ArrowColumn;
use crate::arrow::export::Cell;
use crate::dataframes::{package, results};
use crate::errors::{OrRaise, in_tree};
use crate::locking::slices;

/// The result for one key: a mark, or a hash or another number.
pub(crate) trait Answer: Cell + Default + Send + Sync + 'static {
    /// NumPy's name of the type.
    const NUMPY_TYPE: &'static str;
    /// pyarrow's name of the type's factory.
    const ARROW_TYPE: &'static str;
    /// The builder of a list of results.
    type List<'py>: ListBuilder<'py, Self>;
    /// Starts a list of up to `capacity` results.
    fn start_list(py: Python<'_>, capacity: usize) -> PyResult<Self::List<'_>>;
    /// A list of Python objects. Other threads may run between two portions: 3M marks took 9 ms at once.
    fn to_list<'py>(py: Python<'py>, answers: &[Self]) -> PyResult<Bound<'py, PyAny>> {
        let mut list = Self::start_list(py, answers.len())?;
        for portion in answers.chunks(slices::OBJECTS_PER_SLICE) {
            list.extend(portion)?;
            slices::yield_to_others(py)?;
        }
        list.finish()
    }
}

/// A 0/1 mark.
impl Answer for u8 {
    const NUMPY_TYPE: &'static str = "bool";
    const ARROW_TYPE: &'static str = "bool_";

    type List<'py> = BoolList<'py>;

    fn start_list(py: Python<'_>, capacity: usize) -> PyResult<BoolList<'_>> {
        Ok(BoolList::with_capacity(py, capacity))
    }
}

/// A hash.
impl Answer for u64 {
    const NUMPY_TYPE: &'static str = "uint64";
    const ARROW_TYPE: &'static str = "uint64";

    type List<'py> = IntList<'py>;

    fn start_list(py: Python<'_>, capacity: usize) -> PyResult<IntList<'_>> {
        IntList::with_capacity(py, capacity)
    }
}

/// The results that `fill` writes: directly into a new NumPy array for NumPy keys, else into a list.
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
        // SAFETY: the array was created here, is contiguous, writable, aligned for its own type, as
        // long as checked above, and no other code refers to it yet; the buffer keeps it alive. Any
        // bit pattern is a valid u8 or u64.
        fill(unsafe { std::slice::from_raw_parts_mut(bytes.buf_ptr().cast::<A>(), len) })?;
    }
    Ok(array)
}

/// The results for Python objects: NumPy for a NumPy object array, else a list.
pub(crate) fn like_objects<'py, A: Answer>(keys: &Bound<'py, PyAny>, answers: Vec<A>) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    match package(keys).as_str() {
        "numpy" => like_buffer(keys, answers.len(), |out| {
            out.copy_from_slice(&answers);
            Ok(())
        }),
        "pandas" => results::wrap_in_series(keys, A::to_list(py, &answers)?),
        _ => A::to_list(py, &answers),
    }
}

/// The results for an Arrow column, one part per chunk.
pub(crate) fn like_arrow<'py, A: Answer>(
    keys: &Bound<'py, PyAny>,
    parts: Vec<ArrowColumn>,
    streamed: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    let create = |part| Bound::new(py, part).map(Bound::into_any);
    let parts = parts.into_iter().map(create).collect::<PyResult<_>>().map_err(|error| in_tree(py, error))?;
    results::wrap_columns(keys, parts, streamed, A::ARROW_TYPE)
}
