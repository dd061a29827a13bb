//! [`ForeignFilter`]: bits under the rule of another program.

use std::ffi::c_int;
use std::path::{Path, PathBuf};

use fullbloom_core::container::file::OpenFile;
use fullbloom_core::container::{Container, FOREIGN};
use fullbloom_core::error::{Error, Result};
use fullbloom_core::foreign::bits::{BitFilter, Hashing};
use fullbloom_core::foreign::formats::Format;
use fullbloom_core::foreign::opening::Foreign;
use fullbloom_core::foreign::rules::Digest;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use pyo3::{PyClass, ffi};

use super::arguments::{self, ForeignArguments, check_no_secret, of_class};
use super::batch::Batch;
use super::job::Job;
use super::keys;
use crate::errors::OrRaise;
use crate::files::{OpenOptions, path as read_path};
use crate::locking::biased_lock::BiasedLock;
use crate::parameters;
use crate::python_objects::bytes::Unwritten;
use crate::stored::{Stored, stored_methods};

/// A Bloom filter in the format of another program, bit for bit: what that program wrote continues here, and back.
///
/// format: see fullbloom.formats. capacity, fpr: sized as that program sizes a filter. key_type: the type of its keys,
/// where the format has several ("any", "long", "int", "bytes" or its other name "utf-8", "utf-16", "float", "double");
/// keys of another type raise KeyTypeError. seed: that of the format's hash, where it has one. Keys are hashed by the
/// program's rule, not by that of fullbloom's own filters. Raises ParameterError, FilterMemoryError.
///
/// >>> from fullbloom import ForeignFilter
/// >>> seen = ForeignFilter("guava", 1000, 0.01, key_type="utf-8")
/// >>> seen.add("ada"), "ada" in seen, "alan" in seen
/// (True, True, False)
/// >>> ForeignFilter.from_foreign(seen.to_foreign(), key_type="utf-8") == seen
/// True
#[pyclass(frozen, module = "fullbloom")]
pub(crate) struct ForeignFilter {
    pub(super) lock: BiasedLock<BitFilter>,
    pub(super) hashing: Hashing,
    format: &'static Format,
    path: Option<PathBuf>,
}

impl ForeignFilter {
    pub(super) fn wrap(filter: BitFilter) -> Self {
        let (hashing, format) = (filter.hashing(), filter.format());
        ForeignFilter { lock: BiasedLock::new(filter, BitFilter::nbytes), hashing, format, path: None }
    }

    fn batch(&self, job: Job, threads: usize) -> Batch<'_, BitFilter> {
        Batch::new(&self.lock, self.hashing, job, threads)
    }

    fn of(filter: Foreign) -> Option<Self> {
        if let Foreign::Bits(filter) = filter { Some(Self::wrap(filter)) } else { None }
    }

    /// All parts of the digest of `key`.
    fn digest_parts(&self, key: &Bound<'_, PyAny>) -> PyResult<Vec<Digest>> {
        let mut parts = vec![[0; 2]; self.hashing.parts()];
        keys::digest_parts(&self.hashing, key, &mut parts)?;
        Ok(parts)
    }

    /// Merges `other`; one with itself does not change.
    pub(super) fn take_in(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
        if std::ptr::eq(&self.lock, &other.lock) {
            return Ok(());
        }
        self.lock.change_from(&other.lock, py, BitFilter::merge).or_raise(py)
    }
}

impl Stored for ForeignFilter {
    type Value = BitFilter;
    const VARIANT: u16 = FOREIGN;

    fn wrap(filter: BitFilter, path: Option<PathBuf>, _: u64) -> Self {
        ForeignFilter { path, ..Self::wrap(filter) }
    }
    fn lock(&self) -> &BiasedLock<BitFilter> {
        &self.lock
    }
    fn read(bytes: &[u8], wanted: &OpenOptions) -> Result<BitFilter> {
        check_no_secret(wanted)?;
        BitFilter::from_file(bytes, wanted.max_bytes)
    }
    fn open(file: &OpenFile, path: &Path, wanted: &OpenOptions) -> Result<BitFilter> {
        check_no_secret(wanted)?;
        BitFilter::open(file, path, wanted.verify, wanted.max_bytes)
    }
    fn with_container(filter: &BitFilter, take: &mut dyn FnMut(&Container<'_>) -> Result<()>) -> Result<()> {
        take(&filter.container())
    }
    fn save(filter: &BitFilter, path: &Path) -> Result<()> {
        filter.save(path)
    }
    fn duplicate(filter: &BitFilter) -> Result<BitFilter> {
        filter.try_clone()
    }
}

#[pymethods]
impl ForeignFilter {
    #[new]
    #[pyo3(signature = (
        format: "str", capacity: "int", fpr: "float" = parameters::Fpr(0.01), *, key_type: "str | None" = None,
        seed: "int" = 0
    ))]
    #[pyo3(text_signature = "(format, capacity, fpr=0.01, *, key_type=None, seed=0)")]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::format)] format: &'static Format,
        capacity: &Bound<'_, PyAny>,
        fpr: parameters::Fpr,
        key_type: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = arguments::seed)] seed: u32,
    ) -> PyResult<Self> {
        let capacity = parameters::parse_whole("capacity", capacity, 1)?;
        format.check_class(Self::NAME).or_raise(py)?;
        let key_type = format.key_type(arguments::key_type(key_type)?).or_raise(py)?;
        py.detach(|| BitFilter::for_capacity(format, key_type, seed, capacity, fpr.0)).or_raise(py).map(Self::wrap)
    }

    /// An empty filter of this shape, for programs that were configured by their numbers of bits and hashes.
    ///
    /// Raises ParameterError for a shape that the format does not have, FilterMemoryError.
    #[staticmethod]
    #[pyo3(signature = (
        format: "str", num_bits: "int", num_hashes: "int", *, key_type: "str | None" = None, seed: "int" = 0
    ))]
    fn with_shape(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::format)] format: &'static Format,
        num_bits: &Bound<'_, PyAny>,
        num_hashes: &Bound<'_, PyAny>,
        key_type: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = arguments::seed)] seed: u32,
    ) -> PyResult<Self> {
        let num_bits = parameters::parse_whole("num_bits", num_bits, 1)?;
        let num_hashes = u32::try_from(parameters::parse_whole("num_hashes", num_hashes, 1)?).unwrap_or(u32::MAX);
        format.check_class(Self::NAME).or_raise(py)?;
        let key_type = format.key_type(arguments::key_type(key_type)?).or_raise(py)?;
        py.detach(|| BitFilter::with_shape(format, key_type, seed, num_bits, num_hashes)).or_raise(py).map(Self::wrap)
    }

    /// The filter in `data`, the bytes that its program wrote.
    ///
    /// format: detected if it is None: the lengths that the bytes state fit in one format at most. key_type: required
    /// where the format does not record it. num_bits, num_hashes: required for formats of bits alone; order: "lsb" or
    /// "msb", whichever bit of their bytes is the first. max_bytes: a larger filter is refused. Every length is compared
    /// with the bytes that are there before anything is allocated. Raises FormatError, naming format and field,
    /// ParameterError, FilterMemoryError.
    #[staticmethod]
    #[pyo3(signature = (
        data: "bytes | bytearray | memoryview", format: "str | None" = None, *, key_type: "str | None" = None,
        num_bits: "int | None" = None, num_hashes: "int | None" = None, order: "str | None" = None,
        max_bytes: "int | None" = None
    ))]
    fn from_foreign<'py>(
        data: &Bound<'py, PyAny>,
        format: Option<&Bound<'py, PyAny>>,
        key_type: Option<&Bound<'py, PyAny>>,
        num_bits: Option<&Bound<'py, PyAny>>,
        num_hashes: Option<&Bound<'py, PyAny>>,
        order: Option<&Bound<'py, PyAny>>,
        max_bytes: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Self> {
        let given = ForeignArguments {
            format,
            key_type,
            num_bits,
            num_hashes,
            order,
            max_bytes,
            ..ForeignArguments::default()
        };
        given.read_data(data, Some(Self::NAME)).and_then(|filter| of_class(data.py(), Self::of(filter)))
    }

    /// The filter in the file at `path`, as its program wrote it. The file is read once; otherwise as from_foreign().
    #[staticmethod]
    #[pyo3(signature = (
        path: "str | bytes | os.PathLike[str] | os.PathLike[bytes]", format: "str | None" = None, *,
        key_type: "str | None" = None, num_bits: "int | None" = None, num_hashes: "int | None" = None,
        order: "str | None" = None, max_bytes: "int | None" = None
    ))]
    fn open_foreign<'py>(
        path: &Bound<'py, PyAny>,
        format: Option<&Bound<'py, PyAny>>,
        key_type: Option<&Bound<'py, PyAny>>,
        num_bits: Option<&Bound<'py, PyAny>>,
        num_hashes: Option<&Bound<'py, PyAny>>,
        order: Option<&Bound<'py, PyAny>>,
        max_bytes: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Self> {
        let given = ForeignArguments {
            format,
            key_type,
            num_bits,
            num_hashes,
            order,
            max_bytes,
            ..ForeignArguments::default()
        };
        let (py, path) = (path.py(), read_path(path)?);
        given.read_file(py, &path, Some(Self::NAME)).and_then(|filter| of_class(py, Self::of(filter)))
    }

    /// The bytes that the filter's program writes and reads.
    #[pyo3(signature = () -> "bytes")]
    fn to_foreign<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.lock.read(py, BitFilter::check_written).or_raise(py)?;
        let len = self.lock.read(py, BitFilter::len_written) as usize;
        let io = |error| Error::Io(error, "to_foreign".into());
        let lock = &self.lock;
        let created = Unwritten::new(py, len)?;
        lock.look(py, |filter| filter.write(&mut created.writer()).map_err(io)).or_raise(py)?;
        created.finish(py, true)
    }

    /// The filter as one of another format, whose keys must set the same bits.
    ///
    /// Raises IncompatibleFilters where they do not, and says which bits and which hash differ.
    #[pyo3(signature = (format: "str") -> "Self")]
    fn convert(
        &self,
        #[pyo3(from_py_with = arguments::format)] format: &'static Format,
        py: Python<'_>,
    ) -> PyResult<Self> {
        self.lock.look(py, |filter| filter.convert_to(format)).or_raise(py).map(Self::wrap)
    }

    /// A smaller filter, of num_bits bits, that finds every key that this one finds; its rate is higher.
    ///
    /// num_bits must divide those of the filter, in blocks of 256, and its format must be "parquet". Filters of different
    /// sizes can then be merged. Raises IncompatibleFilters, FilterMemoryError.
    #[pyo3(signature = (num_bits: "int") -> "Self")]
    fn fold(&self, num_bits: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (py, num_bits) = (num_bits.py(), parameters::parse_whole("num_bits", num_bits, 1)?);
        self.lock.look(py, |filter| filter.fold_to(num_bits)).or_raise(py).map(Self::wrap)
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        crate::cpython::learn(key.py());
        if self.hashing.parts() > 1 {
            let parts = self.digest_parts(key)?;
            return Ok(self.lock.read(key.py(), |filter| filter.contains_key(&parts)));
        }
        let digest = keys::digest_key(&self.hashing, key)?;
        Ok(self.lock.read(key.py(), |filter| filter.contains(digest)))
    }

    /// Adds a key: True if it was new. Raises KeyTypeError for a key of another type, ReadOnlyFilter for a mapped filter.
    #[pyo3(signature = (key: "Key") -> "bool")]
    fn add(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        crate::cpython::learn(key.py());
        if self.hashing.parts() > 1 {
            let parts = self.digest_parts(key)?;
            return self.lock.write(key.py(), |filter| filter.add_key(&parts)).or_raise(key.py());
        }
        let digest = keys::digest_key(&self.hashing, key)?;
        self.lock.write(key.py(), |filter| filter.add(digest)).or_raise(key.py())
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

    /// Adds keys: one result per key, True if it was new, in the same container type; null returns null. threads: as for
    /// update().
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
    /// keys: any iterable of keys, a NumPy array or other buffer of one dimension, or an object that supports the Arrow
    /// PyCapsule interface; null returns null. threads: how many may be used for columns; the GIL is released. Raises
    /// KeyTypeError for a key of a type that the filter does not have.
    ///
    /// >>> from fullbloom import ForeignFilter
    /// >>> ForeignFilter("spark", 1000).contains_many(["a", 1])
    /// [False, False]
    #[pyo3(signature = (keys: "Keys", *, threads: "int" = 1) -> "Answers[bool]")]
    fn contains_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = parameters::threads)] threads: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.batch(Job::Check, threads).run(keys)
    }

    /// The bits that a key sets, each once, in the order in which its program computes them; whether or not it was added.
    #[pyo3(signature = (key: "Key", /) -> "list[int]")]
    fn positions(&self, key: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        let parts = self.digest_parts(key)?;
        let positions = self.lock.read(key.py(), |filter| filter.positions(&parts));
        let mut seen = std::collections::HashSet::new();
        Ok(positions.into_iter().filter(|position| seen.insert(*position)).collect())
    }

    /// The bits as a read-only memoryview of a copy, an item of 0 or 1 for each; item i is the bit that positions() numbers i.
    ///
    /// For small filters: FilterMemoryError if nbytes exceeds max_bytes, 2 MiB by default.
    ///
    /// >>> from fullbloom import ForeignFilter
    /// >>> seen = ForeignFilter.with_shape("md5-double", 100, 3)
    /// >>> seen.add("ada"), sum(seen.bits()) == len(seen.positions("ada"))
    /// (True, True)
    #[pyo3(signature = (*, max_bytes: "int" = 2_097_152) -> "memoryview")]
    fn bits<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = parameters::max_bytes)] max_bytes: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let nbytes = self.nbytes(py);
        if nbytes > max_bytes {
            let why = format!("bits() is for small filters: this one has {nbytes} bytes, max_bytes is {max_bytes}");
            return Err(Error::Memory(format!("{why}; give a larger max_bytes"))).or_raise(py);
        }
        py.import("fullbloom.cells")?.call_method1("unpack_cells", (self.to_bytes(py)?,))
    }

    /// The bits, read-only, the lowest bit of a byte first, whatever their order in the program's files. Its content follows
    /// later adds.
    ///
    /// # Safety
    /// Called by the interpreter with a valid view.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let (address, len) = slf
            .get()
            .lock
            .read(slf.py(), |filter| (filter.memory().bytes().as_ptr() as usize, filter.nbytes() as ffi::Py_ssize_t));
        // SAFETY: the bits never move and live as long as the filter, to which the view takes a reference; the view is
        // read-only. A batch add on another thread may change bytes while they are read here: each is then the old or
        // the new one.
        let code = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), address as *mut _, len, 1, flags) };
        if code == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }

    /// True if a bit is set.
    fn __bool__(&self, py: Python<'_>) -> bool {
        !self.lock.look(py, BitFilter::is_empty)
    }

    /// Removes all keys. Raises ReadOnlyFilter for a mapped filter.
    #[pyo3(signature = () -> "None")]
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.lock.change(py, BitFilter::clear).or_raise(py)
    }

    /// Estimated number of keys, and its standard deviation, from the set bits: O(nbytes).
    #[pyo3(signature = () -> "tuple[float, float]")]
    fn approx_count(&self, py: Python<'_>) -> (f64, f64) {
        self.lock.look(py, BitFilter::approx_count)
    }

    /// Model false-positive rate at the present fill: O(nbytes).
    #[pyo3(signature = () -> "float")]
    fn fpr(&self, py: Python<'_>) -> f64 {
        self.lock.look(py, BitFilter::fpr)
    }

    /// Share of set bits, counted: O(nbytes).
    #[getter]
    fn fill(&self, py: Python<'_>) -> f64 {
        self.lock.look(py, BitFilter::fill)
    }

    /// Bytes of bits.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, BitFilter::nbytes)
    }

    /// Name of the format.
    #[getter]
    fn format(&self) -> &'static str {
        self.format.name
    }

    /// How a key sets bits, in words.
    #[getter]
    fn rule(&self) -> &'static str {
        self.format.rule_in_words
    }

    /// The type of its keys.
    #[getter]
    fn key_type(&self, py: Python<'_>) -> &'static str {
        self.lock.read(py, |filter| filter.key_type().name())
    }

    /// m.
    #[getter]
    fn num_bits(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, BitFilter::num_bits)
    }

    /// k.
    #[getter]
    fn num_hashes(&self, py: Python<'_>) -> u32 {
        self.lock.read(py, BitFilter::num_hashes)
    }

    /// Seed of the hash; 0 in formats without one.
    #[getter]
    fn seed(&self, py: Python<'_>) -> u32 {
        self.lock.read(py, BitFilter::seed)
    }

    /// Parameters and state, as a dict of plain values. Counts the set bits: O(nbytes).
    #[pyo3(signature = () -> "dict[str, Any]")]
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let info = PyDict::new(py);
        info.set_item("class", Self::NAME)?;
        info.set_item("format", self.format.name)?;
        info.set_item("title", self.format.title)?;
        info.set_item("rule", self.format.rule_in_words)?;
        info.set_item("key_type", self.key_type(py))?;
        info.set_item("num_bits", self.num_bits(py))?;
        info.set_item("num_hashes", self.num_hashes(py))?;
        info.set_item("seed", self.seed(py))?;
        info.set_item("nbytes", self.nbytes(py))?;
        let (items, deviation) = self.approx_count(py);
        info.set_item("approx_count", items)?;
        info.set_item("approx_count_sd", deviation)?;
        info.set_item("fill", self.fill(py))?;
        info.set_item("fpr", self.fpr(py))?;
        Ok(info)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let (bits, hashes, key_type) = (self.num_bits(py), self.num_hashes(py), self.key_type(py));
        let (name, fill) = (self.format.name, 100.0 * self.fill(py));
        format!("{}({name:?}, key_type={key_type:?}: {bits} bits, {hashes} hashes, {fill:.1} % full)", Self::NAME)
    }
}

stored_methods!(ForeignFilter);
