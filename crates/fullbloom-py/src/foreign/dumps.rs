//! `RedisBloom`'s filters as classes: a Bloom filter that grows, and a cuckoo filter that does.
//!
//! [`dump_class`] writes what both have; each has its constructor, and what only it can do.

use std::path::{Path, PathBuf};

use fullbloom_core::container::file::OpenFile;
use fullbloom_core::container::{Container, REDISBLOOM, REDISBLOOM_CUCKOO, save};
use fullbloom_core::error::{Error, Result};
use fullbloom_core::foreign::redisbloom::bloom::Chain;
use fullbloom_core::foreign::redisbloom::cuckoo::{Cuckoo, Shape};
use fullbloom_core::foreign::redisbloom::dump::{self, Asked, Dumped};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::arguments::check_no_secret;
use super::batch::{Batch, Job};
use super::pieces::{DumpPieces, load_pieces};
use super::{files, keys};
use crate::errors::{OrRaise, parameter};
use crate::files::{OpenOptions, path as read_path};
use crate::locking::biased_lock::BiasedLock;
use crate::parameters;
use crate::python_objects::bytes::{Unwritten, create, read_bytes};
use crate::stored::{Stored, stored_methods};

/// The most that the program takes.
const MOST_EXPANSION: u16 = 32_768;

/// Reads a small number, which has a default.
fn number(name: &str, value: Option<&Bound<'_, PyAny>>, default: u16, most: u16) -> PyResult<u16> {
    let Some(value) = value else { return Ok(default) };
    let number = parameters::parse_whole(name, value, 0)?;
    let found = u16::try_from(number).ok().filter(|number| *number <= most);
    found.ok_or_else(|| parameter(value.py(), format!("{name} must be between 0 and {most}, got {number}")))
}

/// A class of a filter of `RedisBloom`.
macro_rules! dump_class {
    ($(#[$doc:meta])* $Class:ident, $text:literal, $Filter:ty, $variant:expr, { $($own:tt)* }) => {
        $(#[$doc])*
        #[pyclass(frozen, module = "fullbloom")]
        pub(crate) struct $Class {
            lock: BiasedLock<$Filter>,
            path: Option<PathBuf>,
        }

        impl $Class {
            fn wrap(filter: $Filter) -> Self {
                $Class { lock: BiasedLock::new(filter, <$Filter>::nbytes), path: None }
            }

            fn batch(&self, job: Job, threads: usize) -> Batch<'_, $Filter> {
                Batch { lock: &self.lock, hashing: <$Filter>::HASHING, job, threads }
            }

            /// The filter in the file at `path`, as [`dump::write`] writes it.
            pub(crate) fn open_dump(py: Python<'_>, path: &Path, max_bytes: u64) -> PyResult<Self> {
                let opened = py.detach(|| files::open_dump::<$Filter>(path, max_bytes));
                opened.or_raise(py).map(Self::wrap)
            }
        }

        #[pymethods]
        impl $Class {
            $($own)*

            /// The filter in `data`, the pieces of a dump one after the other: the header, then all layers or tables.
            ///
            /// max_bytes: a larger filter is refused. Every length is compared with the bytes that are there before anything is
            /// allocated. Raises FormatError, naming format and field, FilterMemoryError.
            #[staticmethod]
            #[pyo3(signature = (data: "bytes | bytearray | memoryview", *, max_bytes: "int | None" = None))]
            fn from_foreign(data: &Bound<'_, PyAny>, max_bytes: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
                let (py, bytes) = (data.py(), read_bytes("data", data)?);
                let most = parameters::optional_whole("max_bytes", max_bytes, 1)?.unwrap_or(u64::MAX);
                py.detach(|| dump::read::<$Filter>(&mut &*bytes, bytes.len() as u64, most)).or_raise(py).map(Self::wrap)
            }

            /// The filter in the file at `path`, which has the bytes of to_foreign(). It is read once.
            #[staticmethod]
            #[pyo3(signature = (
                path: "str | bytes | os.PathLike[str] | os.PathLike[bytes]", *, max_bytes: "int | None" = None
            ))]
            fn open_foreign(path: &Bound<'_, PyAny>, max_bytes: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
                let most = parameters::optional_whole("max_bytes", max_bytes, 1)?.unwrap_or(u64::MAX);
                Self::open_dump(path.py(), &read_path(path)?, most)
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

            /// Adds all keys of each batch, on one thread. Nulls are skipped; keys before a refused one are added.
            #[pyo3(signature = (*keys: "Keys", threads: "int" = 1) -> "None")]
            fn update(
                &self,
                keys: &Bound<'_, pyo3::types::PyTuple>,
                #[pyo3(from_py_with = parameters::threads)] threads: usize,
            ) -> PyResult<()> {
                let batch = self.batch(Job::Update, threads);
                keys.iter().try_for_each(|keys| batch.run(&keys).map(drop))
            }

            /// Adds keys on one thread: one result per key, True if it was new, in the same container type; null returns null.
            #[pyo3(signature = (keys: "Keys", *, threads: "int" = 1) -> "Answers[bool]")]
            fn add_many<'py>(
                &self,
                keys: &Bound<'py, PyAny>,
                #[pyo3(from_py_with = parameters::threads)] threads: usize,
            ) -> PyResult<Bound<'py, PyAny>> {
                self.batch(Job::Add, threads).run(keys)
            }

            /// One result per key, in the same container type: list for a list, NumPy for NumPy, Arrow for Arrow.
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
                <$Filter>::ROW.name
            }

            /// How a key takes cells, in words.
            #[getter]
            fn rule(&self) -> &'static str {
                <$Filter>::ROW.rule_in_words
            }

            /// Parameters and state, as a dict of plain values. Counts cells: O(nbytes).
            #[pyo3(signature = () -> "dict[str, Any]")]
            fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
                let info = PyDict::new(py);
                info.set_item("class", $text)?;
                info.set_item("format", <$Filter>::ROW.name)?;
                info.set_item("title", <$Filter>::ROW.title)?;
                info.set_item("rule", <$Filter>::ROW.rule_in_words)?;
                info.set_item("key_type", "bytes")?;
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
                format!("{}({keys} keys, {bytes} bytes, {stages} stages)", $text)
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

dump_class! {
    /// A Bloom filter of RedisBloom (BF.*) in this process, bit for bit: it answers, grows and is dumped as there.
    ///
    /// capacity, fpr, expansion: as for BF.RESERVE. scaling: False for NONSCALING, which raises FilterFull when it is full. Keys
    /// are str, as UTF-8, and bytes; redis-py sends an int as its decimal digits, so pass str(number). Raises ParameterError,
    /// FilterMemoryError.
    ///
    /// >>> from fullbloom import ForeignScalableFilter
    /// >>> seen = ForeignScalableFilter(100, 0.01)
    /// >>> seen.add("x"), "x" in seen, "y" in seen
    /// (True, True, False)
    /// >>> [(number, len(piece)) for number, piece in seen.chunks()]
    /// [(1, 73), (145, 144)]
    ForeignScalableFilter, "ForeignScalableFilter", Chain, REDISBLOOM, {
        #[new]
        #[pyo3(signature = (
            capacity: "int", fpr: "float" = parameters::Fpr(0.01), *, expansion: "int" = None, scaling: "bool" = None
        ))]
        #[pyo3(text_signature = "(capacity, fpr=0.01, *, expansion=2, scaling=True)")]
        fn new(
            py: Python<'_>,
            capacity: &Bound<'_, PyAny>,
            fpr: parameters::Fpr,
            expansion: Option<&Bound<'_, PyAny>>,
            scaling: Option<&Bound<'_, PyAny>>,
        ) -> PyResult<Self> {
            let capacity = parameters::parse_whole("capacity", capacity, 1)?;
            let expansion = number("expansion", expansion, 2, MOST_EXPANSION)?.into();
            let scaling = scaling.map_or(Ok(true), |scaling| parameters::flag("scaling", scaling))?;
            py.detach(|| Chain::construct(capacity, fpr.0, expansion, scaling && expansion > 0))
                .or_raise(py)
                .map(Self::wrap)
        }

        /// Estimated number of keys, and its standard deviation, from the set bits: O(nbytes). num_added is the program's count.
        #[pyo3(signature = () -> "tuple[float, float]")]
        fn approx_count(&self, py: Python<'_>) -> (f64, f64) {
            self.lock.look(py, Chain::approx_count)
        }

        /// Keys that all layers are sized for.
        #[getter]
        fn capacity(&self, py: Python<'_>) -> u64 {
            self.lock.read(py, Chain::capacity)
        }

        /// The factor between the capacities of two layers, or None if it does not grow.
        #[getter]
        fn expansion(&self, py: Python<'_>) -> Option<u32> {
            self.lock.read(py, Chain::expansion)
        }
    }
}

impl ForeignScalableFilter {
    fn describe(&self, py: Python<'_>, info: &Bound<'_, PyDict>) -> PyResult<()> {
        info.set_item("capacity", self.capacity(py))?;
        info.set_item("expansion", self.expansion(py))?;
        let (items, deviation) = self.approx_count(py);
        info.set_item("approx_count", items)?;
        info.set_item("approx_count_sd", deviation)
    }
}

dump_class! {
    /// A cuckoo filter of RedisBloom (CF.*) in this process, byte for byte: it answers, grows and is dumped as there.
    ///
    /// capacity, bucket_size, iterations, expansion: as for CF.RESERVE. Keys are str, as UTF-8, and bytes. add() adds a key that
    /// is present once more, as CF.ADD. Raises ParameterError, FilterMemoryError.
    ///
    /// >>> from fullbloom import ForeignCuckooFilter
    /// >>> seen = ForeignCuckooFilter(1000)
    /// >>> seen.add("x"), seen.remove("x"), "x" in seen
    /// (True, True, False)
    ForeignCuckooFilter, "ForeignCuckooFilter", Cuckoo, REDISBLOOM_CUCKOO, {
        #[new]
        #[pyo3(signature = (
            capacity: "int", *, bucket_size: "int" = None, iterations: "int" = None, expansion: "int" = None
        ))]
        #[pyo3(text_signature = "(capacity, *, bucket_size=2, iterations=20, expansion=1)")]
        fn new(
            py: Python<'_>,
            capacity: &Bound<'_, PyAny>,
            bucket_size: Option<&Bound<'_, PyAny>>,
            iterations: Option<&Bound<'_, PyAny>>,
            expansion: Option<&Bound<'_, PyAny>>,
        ) -> PyResult<Self> {
            let capacity = parameters::parse_whole("capacity", capacity, 1)?;
            let bucket_size = number("bucket_size", bucket_size, 2, u8::MAX.into())?;
            let iterations = number("iterations", iterations, 20, u16::MAX)?;
            let expansion = number("expansion", expansion, 1, MOST_EXPANSION)?;
            py.detach(|| Cuckoo::construct(Shape::new(capacity, bucket_size, iterations, expansion)?))
                .or_raise(py)
                .map(Self::wrap)
        }

        /// Removes a key once, as CF.DEL: True if it was there. Removing a key that was never added may remove another one.
        #[pyo3(signature = (key: "Key") -> "bool")]
        fn remove(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
            let [hash, _] = keys::digest_key(&Cuckoo::HASHING, key)?;
            self.lock.change(key.py(), |filter| filter.remove(hash)).or_raise(key.py())
        }

        /// How often a key was added, as CF.COUNT: never too low.
        #[pyo3(signature = (key: "Key") -> "int")]
        fn count(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
            let [hash, _] = keys::digest_key(&Cuckoo::HASHING, key)?;
            Ok(self.lock.read(key.py(), |filter| filter.count(hash)))
        }
    }
}

impl ForeignCuckooFilter {
    fn describe(&self, py: Python<'_>, info: &Bound<'_, PyDict>) -> PyResult<()> {
        let shape = self.lock.read(py, |filter| *filter.shape());
        info.set_item("num_buckets", shape.buckets)?;
        info.set_item("bucket_size", shape.bucket_size)?;
        info.set_item("iterations", shape.iterations)?;
        info.set_item("expansion", shape.expansion)?;
        info.set_item("num_removed", self.lock.read(py, Cuckoo::deletes))
    }
}
