//! `RedisBloom`'s filters as classes: a Bloom filter that grows, and a cuckoo filter that does.
//!
//! [`dump_class`] writes what both have; each has its constructor, and what only it can do, in its file.

mod cuckoo;
mod scalable;

use std::path::{Path, PathBuf};

use fullbloom_core::container::file::OpenFile;
use fullbloom_core::container::{Container, save};
use fullbloom_core::error::{Error, Result};
use fullbloom_core::foreign::formats::Format;
use fullbloom_core::foreign::key_type::KeyType;
use fullbloom_core::foreign::opening::Foreign;
use fullbloom_core::foreign::redisbloom::dump::{self, Dumpable, Membership};
use pyo3::PyClass;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::arguments::{ForeignArguments, check_no_secret, of_class};
use super::batch::Batch;
use super::job::Job;
use super::keys;
use super::pieces::{DumpPieces, load_pieces};
use crate::errors::{OrRaise, parameter};
use crate::files::{OpenOptions, path as read_path};
use crate::locking::biased_lock::BiasedLock;
use crate::parameters;
use crate::python_objects::bytes::{Unwritten, create};
use crate::stored::{Stored, stored_methods};

pub(crate) use cuckoo::ForeignCuckooFilter;
pub(crate) use scalable::ForeignScalableFilter;

/// The type of the keys of both.
const KEY_TYPE: KeyType = KeyType::Bytes;
/// The most that the program takes.
const MOST_EXPANSION: u16 = 32_768;

/// Reads a small number, which has a default.
fn read_number(name: &str, value: Option<&Bound<'_, PyAny>>, default: u16, most: u16) -> PyResult<u16> {
    let Some(value) = value else { return Ok(default) };
    let number = parameters::parse_whole(name, value, 0)?;
    let found = u16::try_from(number).ok().filter(|number| *number <= most);
    found.ok_or_else(|| parameter(value.py(), format!("{name} must be between 0 and {most}, got {number}")))
}

/// A class of a filter of `RedisBloom`.
macro_rules! dump_class {
    ($(#[$doc:meta])* $Class:ident, $Filter:ty, $variant:expr, $Contents:ident, { $($own:tt)* }) => {
        $(#[$doc])*
        #[pyclass(frozen, module = "fullbloom")]
        pub(crate) struct $Class {
            pub(in crate::foreign) lock: BiasedLock<$Filter>,
            path: Option<PathBuf>,
        }

        impl $Class {
            pub(in crate::foreign) fn wrap(filter: $Filter) -> Self {
                $Class { lock: BiasedLock::new(filter, <$Filter>::nbytes), path: None }
            }

            fn batch(&self, job: Job, threads: usize) -> Batch<'_, $Filter> {
                Batch::new(&self.lock, <$Filter>::HASHING, job, threads)
            }

            fn of(filter: Foreign) -> Option<Self> {
                if let Foreign::$Contents(filter) = filter { Some(Self::wrap(filter)) } else { None }
            }
        }

        #[pymethods]
        impl $Class {
            $($own)*

            /// The filter in `data`, the pieces of a dump one after the other: the header, then all layers or tables.
            ///
            /// max_bytes: a larger filter is refused, now and when it grows; without it, a step of its growth takes at most
            /// 32 times the bytes before it, since the factor is a number in the dump. Every length is compared with the
            /// bytes that are there before anything is allocated. Raises FormatError, naming format and field,
            /// FilterMemoryError.
            #[staticmethod]
            #[pyo3(signature = (data: "bytes | bytearray | memoryview", *, max_bytes: "int | None" = None))]
            fn from_foreign<'py>(
                data: &Bound<'py, PyAny>,
                max_bytes: Option<&Bound<'py, PyAny>>,
            ) -> PyResult<Self> {
                let py = data.py();
                let name = pyo3::types::PyString::new(py, <$Filter>::FORMAT.name).into_any();
                let given = ForeignArguments { format: Some(&name), max_bytes, ..ForeignArguments::default() };
                given.read_data(data, Some(Self::NAME)).and_then(|filter| of_class(py, Self::of(filter)))
            }

            /// The filter in the file at `path`, which has the bytes of to_foreign(). It is read once; otherwise as
            /// from_foreign().
            #[staticmethod]
            #[pyo3(signature = (
                path: "str | bytes | os.PathLike[str] | os.PathLike[bytes]", *, max_bytes: "int | None" = None
            ))]
            fn open_foreign<'py>(
                path: &Bound<'py, PyAny>,
                max_bytes: Option<&Bound<'py, PyAny>>,
            ) -> PyResult<Self> {
                let (py, path) = (path.py(), read_path(path)?);
                let name = pyo3::types::PyString::new(py, <$Filter>::FORMAT.name).into_any();
                let given = ForeignArguments { format: Some(&name), max_bytes, ..ForeignArguments::default() };
                given.read_file(py, &path, Some(Self::NAME)).and_then(|filter| of_class(py, Self::of(filter)))
            }

            /// The filter as one of another format, which only its own is: it is a copy. Raises IncompatibleFilters.
            #[pyo3(signature = (format: "str") -> "Self")]
            fn convert(
                &self,
                #[pyo3(from_py_with = $crate::foreign::arguments::format)] format: &'static Format,
                py: Python<'_>,
            ) -> PyResult<Self> {
                if format.number != <$Filter>::FORMAT.number {
                    return Err(<$Filter>::FORMAT.refuse_conversion(format)).or_raise(py);
                }
                self.copy(py)
            }

            /// The filter in pieces as SCANDUMP answers them: pairs of a number and bytes, the header first, in order.
            ///
            /// One piece at a time is in memory beside the filter. Raises FormatError for a piece that is missing, repeated, out
            /// of order or too long, FilterMemoryError.
            #[staticmethod]
            #[pyo3(signature = (pieces: "Iterable[tuple[int, bytes]]", *, max_bytes: "int | None" = None))]
            fn from_chunks(pieces: &Bound<'_, PyAny>, max_bytes: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
                let most = parameters::optional_whole("max_bytes", max_bytes, 1)?.unwrap_or(u64::MAX);
                load_pieces(pieces, most).map(Self::wrap)
            }

            /// What SCANDUMP answers to `iterator`: the next iterator and a piece of at most 16 MiB, (0, b"") at the end.
            #[pyo3(signature = (iterator: "int") -> "tuple[int, bytes]")]
            fn scan_dump<'py>(
                &self,
                py: Python<'py>,
                iterator: &Bound<'_, PyAny>,
            ) -> PyResult<(i64, Bound<'py, PyBytes>)> {
                let iterator = i64::try_from(parameters::parse_whole("iterator", iterator, 0)?).unwrap_or(i64::MAX);
                let (next, piece) = self.lock.look(py, |filter| {
                    let (next, piece) = dump::scan(filter, iterator);
                    (next, piece.into_owned())
                });
                Ok((next, create(py, &piece)?))
            }

            /// The pieces that LOADCHUNK takes, one after the other: pairs of a number and at most 16 MiB.
            ///
            /// Pieces are read as you consume them: copy() a filter that other threads change meanwhile.
            #[pyo3(signature = () -> "Iterator[tuple[int, bytes]]")]
            fn chunks(slf: Py<Self>) -> DumpPieces {
                DumpPieces::of(slf.into_any())
            }

            /// The pieces of the filter's dump, one after the other, as bytes.
            #[pyo3(signature = () -> "bytes")]
            fn to_foreign<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
                let io = |error| Error::Io(error, "to_foreign".into());
                let len = self.lock.read(py, dump::len_written) as usize;
                let created = Unwritten::new(py, len)?;
                self.lock
                    .look(py, |filter| {
                        if dump::len_written(filter) != len as u64 {
                            return Err(Error::Incompatible("the filter grew while it was written; try again".into()));
                        }
                        dump::write(filter, &mut created.writer()).map_err(io)
                    })
                    .or_raise(py)?;
                created.finish(py, true)
            }

            fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
                crate::cpython::learn(key.py());
                let digest = keys::digest_key(&<$Filter>::HASHING, key)?;
                Ok(self.lock.read(key.py(), |filter| filter.has(digest)))
            }

            /// Adds a key: True if it was new. Raises KeyTypeError for a key that is not str or bytes, FilterFull.
            #[pyo3(signature = (key: "Key") -> "bool")]
            fn add(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
                crate::cpython::learn(key.py());
                let digest = keys::digest_key(&<$Filter>::HASHING, key)?;
                self.lock.write(key.py(), |filter| filter.put(digest)).or_raise(key.py())
            }

            /// Adds all keys of each batch. Nulls are skipped; keys before a refused one are added.
            ///
            /// threads: how many may hash keys of columns; one adds them.
            #[pyo3(signature = (*keys: "Keys", threads: "int" = 1) -> "None")]
            fn update(
                &self,
                keys: &Bound<'_, pyo3::types::PyTuple>,
                #[pyo3(from_py_with = parameters::threads)] threads: usize,
            ) -> PyResult<()> {
                let batch = self.batch(Job::Update, threads);
                keys.iter().try_for_each(|keys| batch.run(&keys).map(drop))
            }

            /// Adds keys: one result per key, True if it was new, in the same container type; null returns null. threads:
            /// as for update().
            #[pyo3(signature = (keys: "Keys", *, threads: "int" = 1) -> "Answers[bool]")]
            fn add_many<'py>(
                &self,
                keys: &Bound<'py, PyAny>,
                #[pyo3(from_py_with = parameters::threads)] threads: usize,
            ) -> PyResult<Bound<'py, PyAny>> {
                self.batch(Job::Add, threads).run(keys)
            }

            /// One result per key, in the same container type: list for a list, NumPy for NumPy, Arrow for Arrow.
            ///
            /// keys: any iterable of keys, a NumPy array or other buffer of one dimension, or an object that supports the
            /// Arrow PyCapsule interface; null returns null. threads: how many may be used for columns; the GIL is released.
            /// Raises KeyTypeError for a key of a type that the filter does not have.
            #[pyo3(signature = (keys: "Keys", *, threads: "int" = 1) -> "Answers[bool]")]
            fn contains_many<'py>(
                &self,
                keys: &Bound<'py, PyAny>,
                #[pyo3(from_py_with = parameters::threads)] threads: usize,
            ) -> PyResult<Bound<'py, PyAny>> {
                self.batch(Job::Check, threads).run(keys)
            }

            fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> bool {
                other.cast::<Self>().is_ok_and(|other| self.lock.look_both(&other.get().lock, py, dump::equals))
            }

            /// True if a key is in it.
            fn __bool__(&self, py: Python<'_>) -> bool {
                self.num_added(py) > 0
            }

            /// Removes all keys; what has grown is what it was at first.
            #[pyo3(signature = () -> "None")]
            fn clear(&self, py: Python<'_>) -> PyResult<()> {
                self.lock.change(py, |filter| {
                    filter.clear();
                    Ok(())
                })
                .or_raise(py)
            }

            /// Model false-positive rate at the present fill: O(nbytes).
            #[pyo3(signature = () -> "float")]
            fn fpr(&self, py: Python<'_>) -> f64 {
                self.lock.look(py, <$Filter>::fpr)
            }

            /// Share of set bits, or of slots in use, counted: O(nbytes).
            #[getter]
            fn fill(&self, py: Python<'_>) -> f64 {
                self.lock.look(py, <$Filter>::fill)
            }

            /// Bytes of all layers or tables.
            #[getter]
            fn nbytes(&self, py: Python<'_>) -> u64 {
                self.lock.read(py, <$Filter>::nbytes)
            }

            /// Keys that are in it, as its program counts them.
            #[getter]
            fn num_added(&self, py: Python<'_>) -> u64 {
                self.lock.read(py, <$Filter>::items)
            }

            /// The requested rate.
            #[getter]
            fn target_fpr(&self, py: Python<'_>) -> f64 {
                self.lock.read(py, <$Filter>::target)
            }

            /// Layers or tables.
            #[getter]
            fn num_stages(&self, py: Python<'_>) -> usize {
                self.lock.read(py, |filter| filter.runs().count())
            }

            /// Name of the format.
            #[getter]
            fn format(&self) -> &'static str {
                <$Filter>::FORMAT.name
            }

            /// The type of its keys.
            #[getter]
            fn key_type(&self) -> &'static str {
                KEY_TYPE.name()
            }

            /// How a key takes cells, in words.
            #[getter]
            fn rule(&self) -> &'static str {
                <$Filter>::FORMAT.rule_in_words
            }

            /// Parameters and state, as a dict of plain values. Counts cells: O(nbytes).
            #[pyo3(signature = () -> "dict[str, Any]")]
            fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
                let info = PyDict::new(py);
                info.set_item("class", Self::NAME)?;
                info.set_item("format", <$Filter>::FORMAT.name)?;
                info.set_item("title", <$Filter>::FORMAT.title)?;
                info.set_item("rule", <$Filter>::FORMAT.rule_in_words)?;
                info.set_item("key_type", self.key_type())?;
                self.describe(py, &info)?;
                info.set_item("num_added", self.num_added(py))?;
                info.set_item("num_stages", self.num_stages(py))?;
                info.set_item("target_fpr", self.target_fpr(py))?;
                info.set_item("nbytes", self.nbytes(py))?;
                info.set_item("fill", self.fill(py))?;
                info.set_item("fpr", self.fpr(py))?;
                Ok(info)
            }

            fn __repr__(&self, py: Python<'_>) -> String {
                let (keys, bytes, stages) = (self.num_added(py), self.nbytes(py), self.num_stages(py));
                format!("{}({keys} keys, {bytes} bytes, {stages} stages)", Self::NAME)
            }
        }

        stored_methods!($Class);

        impl Stored for $Class {
            type Value = $Filter;
            const VARIANT: u16 = $variant;

            fn wrap(filter: $Filter, path: Option<PathBuf>, _: u64) -> Self {
                $Class { path, ..Self::wrap(filter) }
            }
            fn lock(&self) -> &BiasedLock<$Filter> {
                &self.lock
            }
            fn read(bytes: &[u8], wanted: &OpenOptions) -> Result<$Filter> {
                check_no_secret(wanted)?;
                dump::from_file(bytes, wanted.max_bytes)
            }
            fn open(file: &OpenFile, path: &Path, wanted: &OpenOptions) -> Result<$Filter> {
                Self::read(&file.map(path)?, wanted)
            }
            fn with_container(
                filter: &$Filter,
                take: &mut dyn FnMut(&Container<'_>) -> Result<()>,
            ) -> Result<()> {
                take(&filter.container())
            }
            fn save(filter: &$Filter, path: &Path) -> Result<()> {
                save(&filter.container(), path)
            }
            fn duplicate(filter: &$Filter) -> Result<$Filter> {
                filter.try_clone()
            }
        }
    };
}

use dump_class;
