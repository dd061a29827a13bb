//! Arrow columns of our own: booleans (answers) and unsigned 64-bit integers (hashes).

use std::ffi::{CStr, c_void};
use std::sync::Arc;

use fullbloom_core::cells::allocation::reserve;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::ffi::{Array, Schema};
use crate::errors::OrRaise;

/// A finished column that any Arrow library takes over without copying its data.
#[pyclass(frozen, module = "fullbloom")]
pub(crate) struct ArrowColumn {
    format: &'static CStr,
    len: usize,
    nulls: usize,
    validity: Option<Arc<Vec<u8>>>,
    data: Arc<Vec<u8>>,
}

/// The type of a cell.
pub(crate) trait Cell: Copy {
    /// Arrow's name of the type.
    const FORMAT: &'static CStr;
    /// Bits of a cell.
    const BITS: usize;
    /// Appends cells, within the capacity; a multiple of eight of them, except for the last ones of a column.
    fn append(cells: &[Self], out: &mut Vec<u8>);
}

/// A 0/1 byte, packed into bits, LSB first.
impl Cell for u8 {
    const FORMAT: &'static CStr = c"b";
    const BITS: usize = 1;

    fn append(cells: &[Self], out: &mut Vec<u8>) {
        let pack_one = |eight: &[u8]| eight.iter().enumerate().fold(0, |acc, (i, &b)| acc | (b & 1) << i);
        out.extend(cells.chunks(8).map(pack_one));
    }
}

impl Cell for u64 {
    const FORMAT: &'static CStr = c"L";
    const BITS: usize = 64;

    fn append(cells: &[Self], out: &mut Vec<u8>) {
        out.extend(cells.iter().flat_map(|cell| cell.to_ne_bytes()));
    }
}

/// Reserves memory for `len` cells.
fn reserve_cells<C: Cell>(py: Python<'_>, len: usize) -> PyResult<Vec<u8>> {
    let mut bytes = Vec::new();
    reserve(&mut bytes, len.div_ceil(8).saturating_mul(C::BITS)).or_raise(py)?;
    Ok(bytes)
}

/// A column that is being written; its memory is reserved before the first cell.
pub(crate) struct Writer {
    len: usize,
    nulls: usize,
    validity: Option<Vec<u8>>,
    data: Vec<u8>,
}

impl Writer {
    /// An empty column with capacity for `len` cells.
    pub(crate) fn with_capacity<C: Cell>(py: Python<'_>, len: usize, nullable: bool) -> PyResult<Self> {
        let validity = nullable.then(|| reserve_cells::<u8>(py, len)).transpose()?;
        Ok(Writer { len: 0, nulls: 0, validity, data: reserve_cells::<C>(py, len)? })
    }

    /// Appends cells as [`Cell::append`] does; `valid` has a 0 for each null if the column is nullable.
    pub(crate) fn append<C: Cell>(&mut self, cells: &[C], valid: &[u8]) {
        C::append(cells, &mut self.data);
        if let Some(validity) = &mut self.validity {
            u8::append(valid, validity);
            self.nulls += valid.iter().filter(|&&v| v == 0).count();
        }
        self.len += cells.len();
    }

    /// The column of these cells.
    pub(crate) fn finish<C: Cell>(self) -> ArrowColumn {
        let Writer { len, nulls, validity, data } = self;
        ArrowColumn { format: C::FORMAT, len, nulls, validity: validity.map(Arc::new), data: Arc::new(data) }
    }
}

/// Owns the buffers of an exported array.
struct Buffers {
    pointers: [*const c_void; 2],
    _validity: Option<Arc<Vec<u8>>>,
    _data: Arc<Vec<u8>>,
}

unsafe extern "C" fn release_array(array: *mut Array) {
    // SAFETY: called once by the consumer with the structure created below; `private_data` is the box.
    unsafe {
        drop(Box::from_raw((*array).private_data.cast::<Buffers>()));
        (*array).release = None;
    }
}

unsafe extern "C" fn release_schema(schema: *mut Schema) {
    // SAFETY: called once by the consumer with the structure created below, which owns nothing.
    unsafe { (*schema).release = None }
}

/// `ARROW_FLAG_NULLABLE`.
const NULLABLE: i64 = 2;

#[pymethods]
impl ArrowColumn {
    /// The column as a pair of capsules, as the Arrow PyCapsule interface defines it.
    #[pyo3(signature = (requested_schema: "object | None" = None) -> "tuple[object, object]")]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _ = requested_schema;
        let mut schema = Schema::empty();
        schema.format = self.format.as_ptr();
        schema.name = c"".as_ptr();
        schema.flags = NULLABLE;
        schema.release = Some(release_schema);
        let validity = self.validity.as_ref().map_or(std::ptr::null(), |v| v.as_ptr().cast());
        let mut buffers = Box::new(Buffers {
            pointers: [validity, self.data.as_ptr().cast()],
            _validity: self.validity.clone(),
            _data: self.data.clone(),
        });
        let mut array = Array::empty();
        array.length = self.len as i64;
        array.null_count = self.nulls as i64;
        array.n_buffers = 2;
        array.buffers = buffers.pointers.as_mut_ptr();
        array.release = Some(release_array);
        array.private_data = Box::into_raw(buffers).cast();
        let schema = PyCapsule::new_with_value(py, schema, c"arrow_schema")?;
        let array = PyCapsule::new_with_value(py, array, c"arrow_array")?;
        Ok((schema, array))
    }

    /// Number of rows.
    fn __len__(&self) -> usize {
        self.len
    }
}
