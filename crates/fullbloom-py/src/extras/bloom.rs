//! What only `BloomFilter` has: shapes given outright, files written in place.

use std::ffi::c_int;

use fullbloom_core::bloom::BloomFilter as Core;
use fullbloom_core::registry::BLOOM;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::classes::bloom::BloomFilter;
use crate::errors::OrRaise;
use crate::files::{self, Mode};
use crate::parameters;

/// The arguments of `with_shape`.
mod arguments {
    crate::parameters::readers!(
        num_bits: "int"; num_hashes: "int"; capacity: "int | None"; layout: "str"; scheme: "str | None"; hash: "str";
        strict: "bool";
    );
}

#[pymethods]
impl BloomFilter {
    /// A filter of a given shape: bits (rounded up to what the layout needs) and probes per key.
    ///
    /// capacity: keys after which to warn; by default where half of the bits are set, the optimum
    /// m ln 2 / k. Raises ParameterError for a shape the layout does not have (blocked: 4, 8 or 12
    /// probes; split: 8).
    ///
    /// >>> from fullbloom import BloomFilter
    /// >>> BloomFilter.with_shape(1024, 7).num_bits
    /// 1024
    #[staticmethod]
    #[pyo3(signature = (
        num_bits: "int", num_hashes: "int", *, capacity: "int | None" = None, layout: "str" = "classic",
        scheme: "str | None" = None, hash: "str" = "xxh3", strict: "bool" = false, seed: "int" = 0, secret: "bytes | bool | None" = None
    ))]
    #[allow(clippy::too_many_arguments)] // the public signature
    fn with_shape(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::num_bits)] num_bits: u64,
        #[pyo3(from_py_with = arguments::num_hashes)] num_hashes: u64,
        #[pyo3(from_py_with = arguments::capacity)] capacity: Option<u64>,
        #[pyo3(from_py_with = arguments::layout)] layout: &str,
        #[pyo3(from_py_with = arguments::scheme)] scheme: Option<&str>,
        #[pyo3(from_py_with = arguments::hash)] hash: &str,
        #[pyo3(from_py_with = arguments::strict)] strict: bool,
        #[pyo3(from_py_with = parameters::seed)] seed: u64,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (hasher, rule) = (parameters::create_hasher(seed, secret)?, (scheme, hash));
        let created = py.detach(|| Core::with_shape(num_bits, num_hashes, capacity, layout, rule, strict, hasher));
        created.or_raise(py).map(Self::wrap)
    }

    /// Opens the file of a BloomFilter; fullbloom.open() does so for every class.
    ///
    /// mode "r" maps it for reading in constant time; "r+" maps it for adding in place, one writer
    /// at a time, and checks every byte first whatever verify says, since closing it confirms their checksums; only a
    /// file whose writer crashed is not checked. verify "header" checks lengths and tables, "full" every
    /// byte. max_bytes: a larger filter is refused. A mapped file must not be truncated by others (replace it by
    /// rename, as save() does): reading past its end kills the process. Raises FormatError, OSError,
    /// FilterMemoryError.
    #[staticmethod]
    #[pyo3(signature = (
        path: "str | bytes | os.PathLike[str] | os.PathLike[bytes]", *, mode: "str" = "r",
        verify: "str" = "header", secret: "bytes | None" = None, max_bytes: "int | None" = None
    ))]
    fn open(
        path: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = parameters::mode)] mode: &str,
        #[pyo3(from_py_with = parameters::verify)] verify: &str,
        secret: Option<&Bound<'_, PyAny>>,
        max_bytes: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = path.py();
        let (mode, wanted) = (files::mode(py, mode)?, files::read_open_options(py, verify, secret, max_bytes)?);
        let path = files::path(path)?;
        let filter = py.detach(|| match mode {
            Mode::Read => wanted.open(&files::open(&path)?, &path, BLOOM),
            Mode::Write => files::open_write(&path, &wanted),
        });
        filter.or_raise(py).map(|filter| Self::wrap_file(filter, &path).with_limit(wanted.max_bytes))
    }

    /// Writes all changes to the file of a filter opened with "r+" and waits for the disk.
    ///
    /// Raises OSError if the path that was opened is another file by now: save() the filter then.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.lock.detach(py, |session| session.read(Core::flush)).or_raise(py)
    }

    /// Flushes a filter opened with "r+", as flush() does, and closes its file; does nothing for others.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.lock.detach(py, |session| session.write(Core::detach)).or_raise(py)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*args: "object") -> "None")]
    fn __exit__(&self, py: Python<'_>, args: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<()> {
        let _ = args;
        self.close(py)
    }

    /// The bit array, read-only. Its content follows later adds.
    ///
    /// # Safety
    /// Called by the interpreter with a valid view.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let (address, len) = slf.get().lock.read(slf.py(), |filter| {
            let words = filter.words();
            (words.as_ptr() as usize, words.len() * 8)
        });
        // SAFETY: the words never move and live as long as the filter, to which the view takes a
        // reference; the view is read-only. A batch add on another thread may change bytes while
        // they are read here: each is then the old or the new one.
        let code =
            unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), address as *mut _, len as ffi::Py_ssize_t, 1, flags) };
        if code == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}
