//! Banks to and from files and bytes, and copies.

use fullbloom_core::bank::FilterBank as Core;
use fullbloom_core::error::Error;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::{FilterBank, opening};
use crate::classes::shared;
use crate::errors::OrRaise;
use crate::files::{open_read_only, path as read_path, read_open_options};
use crate::python_objects::bytes::{Unwritten, read_bytes};

#[pymethods]
impl FilterBank {
    /// The 16 bytes that secret=True drew: see BloomFilter.take_secret.
    #[pyo3(signature = () -> "bytes")]
    fn take_secret<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        shared::take_secret(py, &self.hasher)
    }

    /// The bank as the bytes of its file. A secret is not included: SecretError if it was not taken.
    #[pyo3(signature = () -> "bytes")]
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        shared::check_secret_taken(py, &self.hasher)?;
        let mut len =
            self.lock.look(py, |bank| bank.check_mapped().map(|()| bank.container().nbytes())).or_raise(py)?;
        loop {
            let created = Unwritten::new(py, len)?;
            let needed = self.lock.look(py, |bank| {
                let (container, mut writer) = (bank.container(), created.writer());
                if container.nbytes() == len {
                    container
                        .write_with(&container.head()?, &mut writer)
                        .map_err(|e| Error::Io(e, "to_bytes".into()))?;
                }
                Ok(container.nbytes())
            });
            match needed.or_raise(py)? {
                needed if needed == len => return created.finish(py, true),
                // It has grown.
                needed => len = needed,
            }
        }
    }

    /// The bank in `data`, the bytes of a file, all of which is checked. Raises FormatError, and FilterMemoryError for a
    /// bank of more than max_bytes; it does not grow beyond them either.
    #[staticmethod]
    #[pyo3(signature = (
        data: "bytes | bytearray | memoryview", *, secret: "bytes | None" = None, max_bytes: "int | None" = None
    ))]
    fn from_bytes(
        data: &Bound<'_, PyAny>,
        secret: Option<&Bound<'_, PyAny>>,
        max_bytes: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (py, wanted) = (data.py(), read_open_options(data.py(), "full", secret, max_bytes)?);
        let bytes = read_bytes("data", data)?;
        let bank = py.detach(|| Core::from_bytes(&bytes, &wanted)).or_raise(py)?;
        Ok(Self::wrap(bank, wanted.max_bytes))
    }

    /// Writes the bank to `path` atomically: the old file or the new one. Waits for the disk.
    ///
    /// Raises OSError, FormatError for a mapped bank that is damaged, SecretError if the secret was not taken.
    #[pyo3(signature = (path: "str | bytes | os.PathLike[str] | os.PathLike[bytes]") -> "None")]
    fn save(&self, path: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, path) = (path.py(), read_path(path)?);
        shared::check_secret_taken(py, &self.hasher)?;
        self.lock.detach(py, |session| session.read(|bank| bank.save(&path))).or_raise(py)
    }

    /// Opens the file of a FilterBank, mapped read-only; copy() it to change it.
    ///
    /// verify "header" checks lengths and parameters, "full" every byte, and that tables and lines agree. max_bytes: a larger
    /// bank is refused, and a copy() does not grow beyond them. Raises FormatError, OSError, FilterMemoryError.
    #[staticmethod]
    #[pyo3(signature = (
        path: "str | bytes | os.PathLike[str] | os.PathLike[bytes]", *, mode: "str" = "r",
        verify: "str" = "header", secret: "bytes | None" = None, max_bytes: "int | None" = None
    ))]
    fn open(
        path: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = crate::parameters::mode)] mode: &str,
        #[pyo3(from_py_with = crate::parameters::verify)] verify: &str,
        secret: Option<&Bound<'_, PyAny>>,
        max_bytes: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = path.py();
        let (file, path, wanted) = open_read_only(path, mode, verify, secret, max_bytes)?;
        opening::open_file(py, &file, &path, &wanted)
    }

    /// An independent copy in memory, also of a mapped bank, which is checked: FormatError if it is damaged.
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        self.lock.look(py, Core::try_clone).or_raise(py).map(|bank| Self::wrap(bank, self.max_bytes))
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        self.copy(py)
    }

    #[pyo3(signature = (memo: "object", /))]
    fn __deepcopy__(&self, py: Python<'_>, memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        let _ = memo;
        self.copy(py)
    }

    /// Pickles as its file's bytes. A keyed bank is refused: a pickle must not contain the secret.
    #[pyo3(signature = () -> "tuple[object, tuple[bytes]]")]
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let this = slf.get();
        if this.hasher.is_keyed() {
            return Err(pyo3::exceptions::PyTypeError::new_err(
                "a bank with a secret is not pickled, since a pickle must not contain the secret; save() it and open it \
                 with secret=",
            ));
        }
        Ok((slf.get_type().getattr("from_bytes")?, (this.to_bytes(slf.py())?,)))
    }
}
