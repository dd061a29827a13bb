//! [`ForeignStaticFilter`]: filters of other programs that are built of all their keys at once.

use std::path::{Path, PathBuf};

use fullbloom_core::container::file::OpenFile;
use fullbloom_core::container::{Container, FOREIGN_STATIC};
use fullbloom_core::error::{Error, Result};
use fullbloom_core::foreign::bits::Hashing;
use fullbloom_core::foreign::fingerprints::FingerprintFilter;
use fullbloom_core::foreign::formats::Format;
use fullbloom_core::foreign::opening::Foreign;
use fullbloom_core::foreign::static_filter::StaticFilter;
use pyo3::PyClass;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::arguments::{self, ForeignArguments, check_no_secret, of_class};
use super::batch::Batch;
use super::job::Job;
use super::keys;
use super::target::Words;
use crate::errors::OrRaise;
use crate::files::{OpenOptions, path as read_path};
use crate::locking::biased_lock::BiasedLock;
use crate::parameters;
use crate::python_objects::bytes::Unwritten;
use crate::stored::{Stored, stored_methods};

/// A static filter in the format of another program: built of all its keys at once, it takes no more.
///
/// Formats: those of this class in fullbloom.formats.rows(). build() creates one of keys, from_foreign() reads the bytes of
/// that program, to_foreign() writes them. Keys are hashed by the program's rule.
///
/// >>> from fullbloom import ForeignStaticFilter
/// >>> seen = ForeignStaticFilter.build("fuse8", ["ada", "alan"], key_type="str")
/// >>> "ada" in seen, len(seen.to_foreign())
/// (True, 40)
/// >>> ForeignStaticFilter.from_foreign(seen.to_foreign(), key_type="str") == seen
/// True
#[pyclass(frozen, module = "fullbloom")]
pub(crate) struct ForeignStaticFilter {
    pub(super) lock: BiasedLock<StaticFilter>,
    pub(super) hashing: Hashing,
    format: &'static Format,
    path: Option<PathBuf>,
}

impl ForeignStaticFilter {
    pub(super) fn wrap(filter: StaticFilter) -> Self {
        let (hashing, format) = (filter.hashing(), filter.format());
        ForeignStaticFilter { lock: BiasedLock::new(filter, StaticFilter::nbytes), hashing, format, path: None }
    }

    fn of(filter: Foreign) -> Option<Self> {
        if let Foreign::Static(filter) = filter { Some(Self::wrap(filter)) } else { None }
    }

    /// A number of a filter of fingerprints; None of another one.
    fn number<T: Send>(&self, py: Python<'_>, of: impl FnOnce(&FingerprintFilter) -> T + Send) -> Option<T> {
        self.lock.look(py, |filter| filter.fingerprints().map(of))
    }
}

impl Stored for ForeignStaticFilter {
    type Value = StaticFilter;
    const VARIANT: u16 = FOREIGN_STATIC;

    fn wrap(filter: StaticFilter, path: Option<PathBuf>, _: u64) -> Self {
        ForeignStaticFilter { path, ..Self::wrap(filter) }
    }
    fn lock(&self) -> &BiasedLock<StaticFilter> {
        &self.lock
    }
    fn read(bytes: &[u8], wanted: &OpenOptions) -> Result<StaticFilter> {
        check_no_secret(wanted)?;
        StaticFilter::from_file(bytes, wanted.max_bytes)
    }
    fn open(file: &OpenFile, path: &Path, wanted: &OpenOptions) -> Result<StaticFilter> {
        check_no_secret(wanted)?;
        StaticFilter::open(file, path, wanted.verify, wanted.max_bytes)
    }
    fn with_container(filter: &StaticFilter, take: &mut dyn FnMut(&Container<'_>) -> Result<()>) -> Result<()> {
        take(&filter.container())
    }
    fn save(filter: &StaticFilter, path: &Path) -> Result<()> {
        filter.save(path)
    }
    fn duplicate(filter: &StaticFilter) -> Result<StaticFilter> {
        filter.try_clone()
    }
}

#[pymethods]
impl ForeignStaticFilter {
    /// The filter of `keys`, in any container that batches take; nulls are skipped, repeated keys count once.
    ///
    /// format: one of this class. key_type: the type of its keys, where the format has several: "str" as pyfusefilter takes
    /// them (str, and int as its digits), "uint64" for those of the C functions (integers, or ready hashes). block_hash: the
    /// 32 bytes of the hash of the block, in the order of the network protocol, for a filter of a block. The order of keys
    /// changes nothing. Costs up to 25 bytes of memory a key meanwhile. Raises ParameterError, KeyTypeError,
    /// FilterMemoryError.
    #[staticmethod]
    #[pyo3(signature = (
        format: "str", keys: "Keys", *, key_type: "str | None" = None, block_hash: "bytes | None" = None
    ))]
    fn build(
        #[pyo3(from_py_with = arguments::format)] format: &'static Format,
        keys: &Bound<'_, PyAny>,
        key_type: Option<&Bound<'_, PyAny>>,
        block_hash: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (py, block_hash) = (keys.py(), arguments::block_hash(block_hash)?);
        format.check_class(Self::NAME).or_raise(py)?;
        let key_type = format.key_type(arguments::key_type(key_type)?).or_raise(py)?;
        let hashing = StaticFilter::hashing_for(format, key_type, block_hash).or_raise(py)?;
        let lock = BiasedLock::new(Words::default(), |words| words.0.len() as u64 * 8);
        Batch::<_, u8>::new(&lock, hashing, Job::Update, 1).run(keys)?;
        let taken = lock.detach(py, |session| session.write(|words| std::mem::take(&mut words.0)));
        let built = py.detach(|| StaticFilter::build(format, key_type, block_hash, taken));
        built.or_raise(py).map(Self::wrap)
    }

    /// The filter in `data`, the bytes that its program wrote.
    ///
    /// format: detected if it is None. key_type, block_hash: as for build(); the bytes do not record them. max_bytes: a
    /// larger filter is refused. Every length is compared with the bytes that are there before anything is allocated. Raises
    /// FormatError, naming format and field, ParameterError, FilterMemoryError.
    #[staticmethod]
    #[pyo3(signature = (
        data: "bytes | bytearray | memoryview", format: "str | None" = None, *, key_type: "str | None" = None,
        block_hash: "bytes | None" = None, max_bytes: "int | None" = None
    ))]
    fn from_foreign<'py>(
        data: &Bound<'py, PyAny>,
        format: Option<&Bound<'py, PyAny>>,
        key_type: Option<&Bound<'py, PyAny>>,
        block_hash: Option<&Bound<'py, PyAny>>,
        max_bytes: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Self> {
        let given = ForeignArguments { format, key_type, block_hash, max_bytes, ..ForeignArguments::default() };
        given.read_data(data, Some(Self::NAME)).and_then(|filter| of_class(data.py(), Self::of(filter)))
    }

    /// The filter in the file at `path`, as its program wrote it. The file is read once; otherwise as from_foreign().
    #[staticmethod]
    #[pyo3(signature = (
        path: "str | bytes | os.PathLike[str] | os.PathLike[bytes]", format: "str | None" = None, *,
        key_type: "str | None" = None, block_hash: "bytes | None" = None, max_bytes: "int | None" = None
    ))]
    fn open_foreign<'py>(
        path: &Bound<'py, PyAny>,
        format: Option<&Bound<'py, PyAny>>,
        key_type: Option<&Bound<'py, PyAny>>,
        block_hash: Option<&Bound<'py, PyAny>>,
        max_bytes: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Self> {
        let given = ForeignArguments { format, key_type, block_hash, max_bytes, ..ForeignArguments::default() };
        let (py, path) = (path.py(), read_path(path)?);
        given.read_file(py, &path, Some(Self::NAME)).and_then(|filter| of_class(py, Self::of(filter)))
    }

    /// The bytes that the filter's program writes and reads.
    #[pyo3(signature = () -> "bytes")]
    fn to_foreign<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let len = self.lock.look(py, StaticFilter::len_written) as usize;
        let created = Unwritten::new(py, len)?;
        let written = self.lock.look(py, |filter| filter.write(&mut created.writer()));
        written.map_err(|error| Error::Io(error, "to_foreign".into())).or_raise(py)?;
        created.finish(py, true)
    }

    /// The filter as one of another format, which only its own is: it is a copy. Raises IncompatibleFilters.
    #[pyo3(signature = (format: "str") -> "Self")]
    fn convert(
        &self,
        #[pyo3(from_py_with = arguments::format)] format: &'static Format,
        py: Python<'_>,
    ) -> PyResult<Self> {
        self.lock.look(py, |filter| filter.convert_to(format)).or_raise(py).map(Self::wrap)
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        crate::cpython::learn(key.py());
        let digest = keys::digest_key(&self.hashing, key)?;
        Ok(self.lock.read(key.py(), |filter| filter.contains(digest)))
    }

    /// One result per key, in the same container type: list for a list, NumPy for NumPy, Arrow for Arrow.
    ///
    /// keys: any iterable of keys, a NumPy array or other buffer of one dimension, or an object that supports the Arrow
    /// PyCapsule interface; null returns null. threads: how many may be used for columns; the GIL is released. Raises
    /// KeyTypeError for a key of a type that the filter does not have.
    #[pyo3(signature = (keys: "Keys", *, threads: "int" = 1) -> "Answers[bool]")]
    fn contains_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = parameters::threads)] threads: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        Batch::<_, u8>::new(&self.lock, self.hashing, Job::Check, threads).run(keys)
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.lock.look_both(&other.get().lock, py, StaticFilter::equals))
    }

    /// Rate of false positives.
    #[pyo3(signature = () -> "float")]
    fn fpr(&self, py: Python<'_>) -> f64 {
        self.lock.look(py, StaticFilter::fpr)
    }

    /// Bytes of cells.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> u64 {
        self.lock.look(py, StaticFilter::nbytes)
    }

    /// Number of cells; None in formats of other contents.
    #[getter]
    fn num_cells(&self, py: Python<'_>) -> Option<u64> {
        self.number(py, FingerprintFilter::num_cells)
    }

    /// Number of keys that it was built of; None in formats that do not record it.
    #[getter]
    fn num_keys(&self, py: Python<'_>) -> Option<u64> {
        self.lock.look(py, StaticFilter::num_keys)
    }

    /// Number of keys, and its standard deviation: the recorded one, or that for which its program allocates so many cells.
    #[pyo3(signature = () -> "tuple[float, float]")]
    fn approx_count(&self, py: Python<'_>) -> (f64, f64) {
        self.lock.look(py, StaticFilter::approx_count)
    }

    /// Keys per cell; 1.0 in formats that have no free cells.
    #[getter]
    fn fill(&self, py: Python<'_>) -> f64 {
        let (keys, _) = self.approx_count(py);
        self.num_cells(py).map_or(1.0, |cells| keys / cells as f64)
    }

    /// True if it was built of any key.
    fn __bool__(&self, py: Python<'_>) -> bool {
        self.lock.look(py, |filter| filter.approx_count().0 > 0.0)
    }

    /// Bits of a fingerprint; None in formats of other contents.
    #[getter]
    fn fingerprint_bits(&self, py: Python<'_>) -> Option<u32> {
        self.number(py, FingerprintFilter::width)
    }

    /// Name of the format.
    #[getter]
    fn format(&self) -> &'static str {
        self.format.name
    }

    /// How a key selects cells, in words.
    #[getter]
    fn rule(&self) -> &'static str {
        self.format.rule_in_words
    }

    /// The type of its keys.
    #[getter]
    fn key_type(&self, py: Python<'_>) -> &'static str {
        self.lock.look(py, |filter| filter.key_type().name())
    }

    /// The seed with which its keys could be solved; None in formats of other contents.
    #[getter]
    fn seed(&self, py: Python<'_>) -> Option<u64> {
        self.number(py, FingerprintFilter::seed)
    }

    /// Parameters, as a dict of plain values.
    #[pyo3(signature = () -> "dict[str, Any]")]
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let info = PyDict::new(py);
        info.set_item("class", Self::NAME)?;
        info.set_item("format", self.format.name)?;
        info.set_item("title", self.format.title)?;
        info.set_item("rule", self.format.rule_in_words)?;
        info.set_item("key_type", self.key_type(py))?;
        for (name, number) in [
            ("fingerprint_bits", self.fingerprint_bits(py).map(u64::from)),
            ("num_cells", self.num_cells(py)),
            ("seed", self.seed(py)),
        ] {
            number.map_or(Ok(()), |number| info.set_item(name, number))?;
        }
        info.set_item("num_keys", self.num_keys(py))?;
        let (keys, deviation) = self.approx_count(py);
        info.set_item("approx_count", keys)?;
        info.set_item("approx_count_sd", deviation)?;
        info.set_item("fill", self.fill(py))?;
        info.set_item("nbytes", self.nbytes(py))?;
        info.set_item("fpr", self.fpr(py))?;
        Ok(info)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let (key_type, name, bytes) = (self.key_type(py), self.format.name, self.nbytes(py));
        let what = match (self.num_cells(py), self.fingerprint_bits(py)) {
            (Some(cells), Some(bits)) => format!("{cells} cells of {bits} bits"),
            _ => format!("{:.0} keys in {bytes} bytes", self.approx_count(py).0),
        };
        format!("{}({name:?}, key_type={key_type:?}: {what})", Self::NAME)
    }
}

stored_methods!(ForeignStaticFilter);
