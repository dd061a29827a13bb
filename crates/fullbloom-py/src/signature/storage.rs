//! Indexes as bytes and files.

use std::path::Path;

use fullbloom_core::container::SIGNATURES;
use fullbloom_core::container::file::OpenFile;
use fullbloom_core::error::Error;
use fullbloom_core::signature::SignatureIndex as Index;
use fullbloom_core::signature::file::Conditions;
use fullbloom_core::structure::opening::named;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::SignatureIndex;
use crate::errors::OrRaise;
use crate::files::{OpenOptions, open_read_only, path as read_path, read_open_options};
use crate::python_objects::bytes::{Unwritten, read_bytes};

impl SignatureIndex {
    /// The index in a file of ours that was opened as `path`.
    pub(crate) fn open_file(py: Python<'_>, file: &OpenFile, path: &Path, wanted: &OpenOptions) -> PyResult<Self> {
        if file.parsed.header.variant != SIGNATURES {
            let why = "the file does not hold a SignatureIndex; use fullbloom.open()";
            return named(Err(Error::format(why)), path).or_raise(py);
        }
        let conditions =
            Conditions { verify: wanted.verify, secret: wanted.secret.as_ref(), max_bytes: wanted.max_bytes };
        let opened = py.detach(|| Index::open(file, path, conditions));
        let index = named(opened, path).or_raise(py)?;
        let path = std::path::absolute(path).unwrap_or_else(|_| path.into());
        Ok(SignatureIndex { path: Some(path), ..Self::wrap(index) })
    }
}

#[pymethods]
impl SignatureIndex {
    /// The index as the bytes of a file.
    #[pyo3(signature = () -> "bytes")]
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let len = self.look(py, |index| index.with_container(|container| Ok(container.nbytes()))).or_raise(py)?;
        let created = Unwritten::new(py, len)?;
        let written = self.look(py, |index| {
            index.with_container(|container| {
                if container.nbytes() != len {
                    return Err(Error::Incompatible("rows were appended meanwhile; try again".into()));
                }
                let written = container.write_with(&container.head()?, &mut created.writer());
                written.map_err(|error| Error::Io(error, "to_bytes".into()))
            })
        });
        written.or_raise(py)?;
        created.finish(py, true)
    }

    /// The index in `data`, the bytes of a file, all of which is checked. Raises FormatError, FilterMemoryError.
    #[staticmethod]
    #[pyo3(signature = (
        data: "bytes | bytearray | memoryview", *, secret: "bytes | None" = None, max_bytes: "int | None" = None
    ))]
    fn from_bytes(
        data: &Bound<'_, PyAny>,
        secret: Option<&Bound<'_, PyAny>>,
        max_bytes: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (py, bytes) = (data.py(), read_bytes("data", data)?);
        let wanted = read_open_options(py, "full", secret, max_bytes)?;
        let conditions =
            Conditions { verify: wanted.verify, secret: wanted.secret.as_ref(), max_bytes: wanted.max_bytes };
        py.detach(|| Index::from_file(&bytes, conditions)).or_raise(py).map(Self::wrap)
    }

    /// Writes the index to `path`, atomically: the old file or the new one. Waits for the disk.
    #[pyo3(signature = (path: "str | bytes | os.PathLike[str] | os.PathLike[bytes]") -> "None")]
    fn save(&self, path: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, path) = (path.py(), read_path(path)?);
        self.lock.detach(py, |session| session.read(|index| index.save(&path))).or_raise(py)
    }

    /// Opens a file, mapped read-only: copy() it to append rows.
    ///
    /// verify "header" checks lengths and tables, "full" every byte. max_bytes: a larger index is refused. Raises
    /// FormatError, OSError, FilterMemoryError.
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
        Self::open_file(py, &file, &path, &wanted)
    }

    /// An independent copy in memory, which takes rows.
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        self.look(py, Index::try_clone).or_raise(py).map(Self::wrap)
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        self.copy(py)
    }

    #[pyo3(signature = (memo: "object", /))]
    fn __deepcopy__(&self, py: Python<'_>, memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        let _ = memo;
        self.copy(py)
    }

    /// Pickles as its file's bytes; a keyed index does not, since they do not contain the secret.
    #[pyo3(signature = () -> "tuple[object, tuple[bytes]]")]
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        if slf.get().hasher.secret_fingerprint() != 0 {
            let why = "an index with a secret cannot be pickled: its file does not contain the secret; use save()";
            return Err(crate::errors::secret(slf.py(), why));
        }
        Ok((slf.get_type().getattr("from_bytes")?, (slf.get().to_bytes(slf.py())?,)))
    }
}
