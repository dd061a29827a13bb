//! Arrow columns of our own: booleans (answers) and unsigned 64-bit integers (hashes).

use std::ffi::{CString, c_void};

use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::ffi::{Array, Schema};

/// A finished column that any Arrow library takes over without copying its data twice.
#[pyclass(frozen, module = "bloomery")]
pub(crate) struct ArrowColumn {
    format: &'static str,
    len: usize,
    nulls: usize,
    validity: Option<Vec<u8>>,
    data: Vec<u8>,
}

/// Packs 0/1 bytes into bits, LSB first.
fn pack(bytes: &[u8]) -> Vec<u8> {
    let pack_one = |eight: &[u8]| eight.iter().enumerate().fold(0, |acc, (i, &b)| acc | (b & 1) << i);
    bytes.chunks(8).map(pack_one).collect()
}

impl ArrowColumn {
    /// Booleans from 0/1 bytes; `valid` has a 0 for each null.
    pub(crate) fn booleans(marks: &[u8], valid: Option<&[u8]>) -> Self {
        Self::new("b", pack(marks), marks.len(), valid)
    }

    /// Unsigned 64-bit integers.
    pub(crate) fn hashes(hashes: &[u64], valid: Option<&[u8]>) -> Self {
        Self::new("L", hashes.iter().flat_map(|h| h.to_ne_bytes()).collect(), hashes.len(), valid)
    }

    fn new(format: &'static str, data: Vec<u8>, len: usize, valid: Option<&[u8]>) -> Self {
        let nulls = valid.map_or(0, |valid| valid.iter().filter(|&&v| v == 0).count());
        ArrowColumn { format, len, nulls, validity: valid.map(pack), data }
    }
}

/// What a released array owned.
struct Buffers {
    pointers: [*const c_void; 2],
    _validity: Option<Vec<u8>>,
    _data: Vec<u8>,
}

unsafe extern "C" fn release_array(array: *mut Array) {
    // SAFETY: called once by the consumer with the structure made below; `private_data` is the box.
    unsafe {
        drop(Box::from_raw((*array).private_data.cast::<Buffers>()));
        (*array).release = None;
    }
}

unsafe extern "C" fn release_schema(schema: *mut Schema) {
    // SAFETY: called once by the consumer with the structure made below; `private_data` is the
    // format string.
    unsafe {
        drop(CString::from_raw((*schema).private_data.cast()));
        (*schema).release = None;
    }
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
        let format = CString::new(self.format)?.into_raw();
        let mut schema = Schema::empty();
        schema.format = format;
        schema.name = c"".as_ptr();
        schema.flags = NULLABLE;
        schema.release = Some(release_schema);
        schema.private_data = format.cast();
        let mut buffers = Box::new(Buffers {
            pointers: [std::ptr::null(); 2],
            _validity: self.validity.clone(),
            _data: self.data.clone(),
        });
        buffers.pointers =
            [buffers._validity.as_ref().map_or(std::ptr::null(), |v| v.as_ptr().cast()), buffers._data.as_ptr().cast()];
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
