//! `bytes`, read and created.

use std::borrow::Cow;
use std::io::Write;

use fullbloom_core::cells::allocation::{reserve, short};
use pyo3::buffer::PyBuffer;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{OrRaise, convert, parameter_type};

/// Creates a Python object with a copy of `bytes`.
pub(crate) fn create<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    if bytes.len() >= LARGE {
        let created = Unwritten::new(py, bytes.len())?;
        let is_complete = py.detach(|| created.writer().write_all(bytes)).is_ok();
        return created.finish(py, is_complete);
    }
    // SAFETY: the thread is attached; copies from a live slice, whose length fits, and returns a new reference to
    // bytes or null.
    unsafe {
        let created = ffi::PyBytes_FromStringAndSize(bytes.as_ptr().cast(), bytes.len() as ffi::Py_ssize_t);
        let created = Bound::from_owned_ptr_or_opt(py, created).map(|created| created.cast_into_unchecked());
        created.ok_or_else(|| out_of_memory(py, bytes.len()))
    }
}

/// Reads a bytes-like object: borrows from `bytes`, copies anything else, which other threads may change.
pub(crate) fn read_bytes<'a>(name: &str, data: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    if let Ok(bytes) = data.cast::<PyBytes>() {
        return Ok(Cow::Borrowed(bytes.as_bytes()));
    }
    let py = data.py();
    let buffer = PyBuffer::<u8>::get(data).map_err(|error| {
        parameter_type(py, format!("{name} must be bytes, a bytearray or a memoryview of bytes ({})", error.value(py)))
    })?;
    let mut bytes = Vec::new();
    let len = buffer.item_count();
    reserve(&mut bytes, len).or_raise(py)?;
    if !buffer.is_c_contiguous() {
        bytes.resize(len, 0);
        buffer.copy_to_slice(py, &mut bytes)?;
        return Ok(Cow::Owned(bytes));
    }
    let start = buffer.buf_ptr() as usize;
    py.detach(|| {
        for at in (0..len).step_by(LARGE) {
            // SAFETY: the buffer is contiguous, `len` bytes long, and stays where it is until it is given back below.
            // Bytes that another thread changes meanwhile are the old or the new ones.
            bytes.extend_from_slice(unsafe {
                std::slice::from_raw_parts((start as *const u8).wrapping_add(at), LARGE.min(len - at))
            });
        }
    });
    drop(buffer);
    Ok(Cow::Owned(bytes))
}

/// From this many bytes on they are copied without the GIL: 0.1 ms.
pub(crate) const LARGE: usize = 1 << 20;

/// A `bytes` that no other code refers to yet, for a detached thread to write.
pub(crate) struct Unwritten {
    bytes: Py<PyBytes>,
    start: SendPtr,
    len: usize,
}

/// An address that a detached thread may use.
#[derive(Clone, Copy)]
struct SendPtr(*mut u8);

// SAFETY: an address of memory that one thread writes at a time, see `Unwritten`.
unsafe impl Send for SendPtr {}
// SAFETY: as above.
unsafe impl Sync for SendPtr {}

impl Unwritten {
    /// Allocates `len` bytes.
    pub(crate) fn new(py: Python<'_>, len: usize) -> PyResult<Self> {
        let size = ffi::Py_ssize_t::try_from(len).map_err(|_| out_of_memory(py, len))?;
        // SAFETY: the thread is attached; a new reference to bytes without content, or null.
        let bytes = unsafe { Bound::from_owned_ptr_or_opt(py, ffi::PyBytes_FromStringAndSize(std::ptr::null(), size)) };
        let bytes = bytes.ok_or_else(|| out_of_memory(py, len))?;
        // SAFETY: bytes, created above.
        let (bytes, start) =
            unsafe { (bytes.cast_unchecked::<PyBytes>().clone(), ffi::PyBytes_AsString(bytes.as_ptr())) };
        Ok(Unwritten { bytes: bytes.unbind(), start: SendPtr(start.cast()), len })
    }

    /// A writer from the first byte on.
    pub(crate) fn writer(&self) -> BytesWriter<'_> {
        BytesWriter { start: self.start, left: self.len, _bytes: self }
    }

    /// The object, if `is_complete`: every byte was written.
    pub(crate) fn finish(self, py: Python<'_>, is_complete: bool) -> PyResult<Bound<'_, PyBytes>> {
        if is_complete { Ok(self.bytes.into_bound(py)) } else { Err(out_of_memory(py, self.len)) }
    }
}

/// A writer into an [`Unwritten`].
pub(crate) struct BytesWriter<'a> {
    start: SendPtr,
    left: usize,
    _bytes: &'a Unwritten,
}

impl Write for BytesWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let len = bytes.len().min(self.left);
        // SAFETY: `left` bytes from `start` on belong to the object, which lives and which no other code refers to;
        // `bytes` is another object.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.0, len) };
        self.start.0 = self.start.0.wrapping_add(len);
        self.left -= len;
        Ok(len)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Our error in place of the interpreter's, which has no message.
#[cold]
pub(super) fn out_of_memory(py: Python<'_>, bytes: usize) -> PyErr {
    drop(PyErr::take(py));
    convert(py, short(bytes))
}
