//! Files, bytes, copies and pickles of the classes that have no row in the registry.
//!
//! A class says what it is as [`Stored`]; [`stored_methods`] writes its methods.

use std::path::{Path, PathBuf};

use fullbloom_core::container::Container;
use fullbloom_core::container::file::OpenFile;
use fullbloom_core::error::{Error, Result};
use fullbloom_core::key::KeyHasher;
use fullbloom_core::structure::opening::with_path;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3::{PyClass, PyClassInitializer};

use crate::errors::OrRaise;
use crate::files::{OpenOptions, open_read_only, path as read_path, read_open_options};
use crate::locking::biased_lock::BiasedLock;
use crate::python_objects::bytes::{Unwritten, read_bytes};
use crate::secrets::check_secret_taken;

/// A class whose objects are written to files.
pub(crate) trait Stored: PyClass + Sync + Into<PyClassInitializer<Self>> {
    /// What its lock protects.
    type Value: Send + Sync;
    /// The number of its files.
    const VARIANT: u16;

    /// An object with this value. A copy of it does not grow beyond `max_bytes`.
    fn wrap(value: Self::Value, path: Option<PathBuf>, max_bytes: u64) -> Self;
    /// The lock of its value.
    fn lock(&self) -> &BiasedLock<Self::Value>;
    /// How keys are hashed, in classes that may have a secret.
    fn hasher(&self) -> Option<&KeyHasher> {
        None
    }
    /// The bytes beyond which a copy does not grow.
    fn max_bytes(&self) -> u64 {
        u64::MAX
    }

    /// The value in the bytes of a whole file, all of which are checked.
    fn read(bytes: &[u8], wanted: &OpenOptions) -> Result<Self::Value>;
    /// The value in the file that was opened as `path`.
    fn open(file: &OpenFile, path: &Path, wanted: &OpenOptions) -> Result<Self::Value>;
    /// Refuses a mapped value that is damaged.
    fn check(_value: &Self::Value) -> Result<()> {
        Ok(())
    }
    /// Passes the value as a file to `take`.
    fn with_container(value: &Self::Value, take: &mut dyn FnMut(&Container<'_>) -> Result<()>) -> Result<()>;
    /// Writes the value to a file, atomically.
    fn save(value: &Self::Value, path: &Path) -> Result<()>;
    /// An independent copy in memory.
    fn duplicate(value: &Self::Value) -> Result<Self::Value>;
}

/// A class of which a file may hold an object.
pub(crate) struct StoredClass {
    /// The number of its files.
    pub(crate) variant: u16,
    /// The object in a file that was opened as the path.
    pub(crate) open: for<'py> fn(Python<'py>, &OpenFile, &Path, &OpenOptions) -> PyResult<Bound<'py, PyAny>>,
    /// The class.
    pub(crate) class: for<'py> fn(Python<'py>) -> Bound<'py, PyAny>,
}

impl StoredClass {
    pub(crate) const fn of<T: Stored>() -> Self {
        StoredClass {
            variant: T::VARIANT,
            open: |py, file, path, wanted| Ok(Bound::new(py, open_file::<T>(py, file, path, wanted)?)?.into_any()),
            class: |py| py.get_type::<T>().into_any(),
        }
    }
}

fn open_file<T: Stored>(py: Python<'_>, file: &OpenFile, path: &Path, wanted: &OpenOptions) -> PyResult<T> {
    let opened = if file.parsed.header.variant == T::VARIANT {
        py.detach(|| T::open(file, path, wanted))
    } else {
        Err(Error::format(format!("the file does not hold a {}; use fullbloom.open()", T::NAME)))
    };
    let value = with_path(opened, path).or_raise(py)?;
    let path = std::path::absolute(path).unwrap_or_else(|_| path.into());
    Ok(T::wrap(value, Some(path), wanted.max_bytes))
}

/// `open()`.
pub(crate) fn open<T: Stored>(
    path: &Bound<'_, PyAny>,
    mode: &str,
    verify: &str,
    secret: Option<&Bound<'_, PyAny>>,
    max_bytes: Option<&Bound<'_, PyAny>>,
) -> PyResult<T> {
    let py = path.py();
    let (file, path, wanted) = open_read_only(path, mode, verify, secret, max_bytes)?;
    open_file(py, &file, &path, &wanted)
}

/// `from_bytes()`.
pub(crate) fn from_bytes<T: Stored>(
    data: &Bound<'_, PyAny>,
    secret: Option<&Bound<'_, PyAny>>,
    max_bytes: Option<&Bound<'_, PyAny>>,
) -> PyResult<T> {
    let (py, wanted) = (data.py(), read_open_options(data.py(), "full", secret, max_bytes)?);
    let bytes = read_bytes("data", data)?;
    let value = py.detach(|| T::read(&bytes, &wanted)).or_raise(py)?;
    Ok(T::wrap(value, None, wanted.max_bytes))
}

/// `to_bytes()`.
pub(crate) fn to_bytes<'py, T: Stored>(py: Python<'py>, object: &T) -> PyResult<Bound<'py, PyBytes>> {
    object.hasher().map_or(Ok(()), |hasher| check_secret_taken(py, hasher))?;
    let lock = object.lock();
    let measure = |value: &T::Value, len: &mut usize| {
        T::with_container(value, &mut |container| {
            *len = container.nbytes();
            Ok(())
        })
    };
    let measured = lock.look(py, |value| {
        let mut len = 0;
        T::check(value).and_then(|()| measure(value, &mut len)).map(|()| len)
    });
    let mut len = measured.or_raise(py)?;
    loop {
        let created = Unwritten::new(py, len)?;
        let needed = lock.look(py, |value| {
            let mut needed = 0;
            T::with_container(value, &mut |container| {
                needed = container.nbytes();
                if needed == len {
                    let written = container.write_with(&container.head()?, &mut created.writer());
                    written.map_err(|error| Error::Io(error, "to_bytes".into()))?;
                }
                Ok(())
            })
            .map(|()| needed)
        });
        match needed.or_raise(py)? {
            needed if needed == len => return created.finish(py, true),
            // It has grown.
            needed => len = needed,
        }
    }
}

/// `save()`.
pub(crate) fn save<T: Stored>(object: &T, path: &Bound<'_, PyAny>) -> PyResult<()> {
    let (py, path) = (path.py(), read_path(path)?);
    object.hasher().map_or(Ok(()), |hasher| check_secret_taken(py, hasher))?;
    object.lock().detach(py, |session| session.read(|value| T::save(value, &path))).or_raise(py)
}

/// `copy()`.
pub(crate) fn copy<T: Stored>(py: Python<'_>, object: &T) -> PyResult<T> {
    let copied = object.lock().look(py, T::duplicate).or_raise(py)?;
    Ok(T::wrap(copied, None, object.max_bytes()))
}

/// The bytes of a pickle.
pub(crate) fn pickle<'py, T: Stored>(py: Python<'py>, object: &T) -> PyResult<Bound<'py, PyBytes>> {
    if object.hasher().is_some_and(KeyHasher::is_keyed) {
        let class = T::NAME;
        return Err(PyTypeError::new_err(format!(
            "a {class} with a secret is not pickled, since a pickle must not contain the secret; save() it and open it \
             with secret="
        )));
    }
    to_bytes(py, object)
}

/// Methods of a [`Stored`] class.
macro_rules! stored_methods {
    ($Class:ident) => {
        #[pymethods]
        impl $Class {
            /// The absolute path of the file that it was opened from, or None for one in memory, such as a copy().
            #[getter]
            fn path(&self) -> Option<&std::ffi::OsStr> {
                self.path.as_deref().map(std::path::Path::as_os_str)
            }

            /// The bytes that save() writes to a file. A secret is not included: SecretError if it was not taken.
            #[pyo3(signature = () -> "bytes")]
            fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyBytes>> {
                $crate::stored::to_bytes(py, self)
            }

            /// What `data`, the bytes of such a file, describes; all of it is checked. max_bytes: more is refused, now and when
            /// a bank grows. Raises FormatError, FilterMemoryError.
            #[staticmethod]
            #[pyo3(signature = (
                data: "bytes | bytearray | memoryview", *, secret: "bytes | None" = None, max_bytes: "int | None" = None
            ))]
            fn from_bytes(
                data: &Bound<'_, PyAny>,
                secret: Option<&Bound<'_, PyAny>>,
                max_bytes: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<Self> {
                $crate::stored::from_bytes(data, secret, max_bytes)
            }

            /// Writes a file of Fullbloom to `path`, atomically: the old file or the new one. Waits for the disk.
            ///
            /// Raises OSError, FormatError if it is mapped and damaged, SecretError if the secret was not taken.
            #[pyo3(signature = (path: "str | bytes | os.PathLike[str] | os.PathLike[bytes]") -> "None")]
            fn save(&self, path: &Bound<'_, PyAny>) -> PyResult<()> {
                $crate::stored::save(self, path)
            }

            /// Opens a file that save() wrote, mapped read-only; copy() it to change it.
            ///
            /// verify "header" checks lengths and tables, "full" every byte. max_bytes: as for from_bytes(). Raises
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
                $crate::stored::open(path, mode, verify, secret, max_bytes)
            }

            /// An independent copy in memory. Raises FormatError if the original is mapped and damaged.
            fn copy(&self, py: Python<'_>) -> PyResult<Self> {
                $crate::stored::copy(py, self)
            }

            fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
                $crate::stored::copy(py, self)
            }

            #[pyo3(signature = (memo: "object", /))]
            fn __deepcopy__(&self, py: Python<'_>, memo: &Bound<'_, PyAny>) -> PyResult<Self> {
                let _ = memo;
                $crate::stored::copy(py, self)
            }

            fn __enter__(slf: Py<Self>) -> Py<Self> {
                slf
            }

            /// Closes nothing: no file is open for writing, and a mapped one is released with the object.
            #[pyo3(signature = (*args: "object") -> "None")]
            fn __exit__(&self, args: &Bound<'_, pyo3::types::PyTuple>) {
                let _ = args;
            }

            /// Pickles as to_bytes(). With a secret it raises TypeError: a pickle must not contain the secret.
            #[pyo3(signature = () -> "tuple[object, tuple[bytes]]")]
            fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, pyo3::types::PyBytes>,))> {
                let bytes = $crate::stored::pickle(slf.py(), slf.get())?;
                Ok((slf.get_type().getattr("from_bytes")?, (bytes,)))
            }
        }
    };
}

pub(crate) use stored_methods;
