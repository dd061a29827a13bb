//! Xor and binary fuse filters of `xor_singleheader` as a class.

use std::path::{Path, PathBuf};

use fullbloom_core::container::file::OpenFile;
use fullbloom_core::container::{Container, FOREIGN_STATIC};
use fullbloom_core::error::{Error, Result};
use fullbloom_core::foreign::bits::Hashing;
use fullbloom_core::foreign::fingerprints::{FingerprintFilter, FingerprintFormat, rows};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::arguments::check_no_secret;
use super::batch::{Batch, Job};
use super::target::Words;
use super::{arguments, files, keys};
use crate::errors::OrRaise;
use crate::files::{OpenOptions, path as read_path};
use crate::locking::biased_lock::BiasedLock;
use crate::parameters;
use crate::python_objects::bytes::{Unwritten, read_bytes};
use crate::stored::{Stored, stored_methods};

/// A static filter in the format of another program: built of all its keys at once, it takes no more.
///
/// Formats: "xor8", "xor16", "fuse8" and "fuse16" of xor_singleheader and pyfusefilter. build() creates one of keys,
/// from_foreign() reads the bytes of that program, to_foreign() writes them. Keys are hashed by the program's rule.
///
/// >>> from fullbloom import ForeignStaticFilter
/// >>> seen = ForeignStaticFilter.build("fuse8", ["ada", "alan"], key_type="str")
/// >>> "ada" in seen, len(seen.to_foreign())
/// (True, 40)
/// >>> ForeignStaticFilter.from_foreign(seen.to_foreign(), key_type="str") == seen
/// True
#[pyclass(frozen, module = "fullbloom")]
pub(crate) struct ForeignStaticFilter {
    lock: BiasedLock<FingerprintFilter>,
    hashing: Hashing,
    format: &'static FingerprintFormat,
    path: Option<PathBuf>,
}

impl ForeignStaticFilter {
    pub(super) fn wrap(filter: FingerprintFilter) -> Self {
        let (hashing, format) = (filter.hashing(), filter.format());
        ForeignStaticFilter { lock: BiasedLock::new(filter, FingerprintFilter::nbytes), hashing, format, path: None }
    }
}

impl Stored for ForeignStaticFilter {
    type Value = FingerprintFilter;
    const VARIANT: u16 = FOREIGN_STATIC;

    fn wrap(filter: FingerprintFilter, path: Option<PathBuf>, _: u64) -> Self {
        ForeignStaticFilter { path, ..Self::wrap(filter) }
    }
    fn lock(&self) -> &BiasedLock<FingerprintFilter> {
        &self.lock
    }
    fn read(bytes: &[u8], wanted: &OpenOptions) -> Result<FingerprintFilter> {
        check_no_secret(wanted)?;
        FingerprintFilter::from_file(bytes, wanted.max_bytes)
    }
    fn open(file: &OpenFile, path: &Path, wanted: &OpenOptions) -> Result<FingerprintFilter> {
        check_no_secret(wanted)?;
        FingerprintFilter::open(file, path, wanted.verify, wanted.max_bytes)
    }
    fn with_container(filter: &FingerprintFilter, take: &mut dyn FnMut(&Container<'_>) -> Result<()>) -> Result<()> {
        take(&filter.container())
    }
    fn save(filter: &FingerprintFilter, path: &Path) -> Result<()> {
        filter.save(path)
    }
    fn duplicate(filter: &FingerprintFilter) -> Result<FingerprintFilter> {
        filter.try_clone()
    }
}

#[pymethods]
impl ForeignStaticFilter {
    /// The filter of `keys`, in any container that batches take; nulls are skipped, repeated keys count once.
    ///
    /// format: "xor8", "xor16", "fuse8" or "fuse16"; the number is the bits of a fingerprint, and the rate 2**-8 or
    /// 2**-16. key_type: "str" for keys as pyfusefilter takes them (str, and int as its digits), "uint64" for those of
    /// the C functions (integers, or ready hashes). The order of keys changes nothing. Costs 25 bytes of memory a key
    /// meanwhile. Raises ParameterError, KeyTypeError, FilterMemoryError.
    #[staticmethod]
    #[pyo3(signature = (format: "str", keys: "Keys", *, key_type: "str | None" = None))]
    fn build(
        format: &Bound<'_, PyAny>,
        keys: &Bound<'_, PyAny>,
        key_type: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = keys.py();
        let format = rows::named(parameters::text("format", format)?).or_raise(py)?;
        let key_type = format.keys().named(arguments::key_type(key_type)?).or_raise(py)?;
        let lock = BiasedLock::new(Words::default(), |words| words.0.len() as u64 * 8);
        let hashing = Hashing::of_words(key_type);
        Batch { lock: &lock, hashing, job: Job::Update, threads: 1 }.run(keys)?;
        let taken = lock.detach(py, |session| session.write(|words| std::mem::take(&mut words.0)));
        py.detach(|| FingerprintFilter::build(format, key_type, taken)).or_raise(py).map(Self::wrap)
    }

    /// The filter in `data`, the bytes that its program wrote.
    ///
    /// format: detected if it is None. key_type: as for build(); the bytes do not record it. max_bytes: a larger filter
    /// is refused. Every length is compared with the bytes that are there before anything is allocated. Raises
    /// FormatError, naming format and field, ParameterError, FilterMemoryError.
    #[staticmethod]
    #[pyo3(signature = (
        data: "bytes | bytearray | memoryview", format: "str | None" = None, *, key_type: "str | None" = None,
        max_bytes: "int | None" = None
    ))]
    fn from_foreign(
        data: &Bound<'_, PyAny>,
        format: Option<&Bound<'_, PyAny>>,
        key_type: Option<&Bound<'_, PyAny>>,
        max_bytes: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (py, bytes) = (data.py(), read_bytes("data", data)?);
        let max_bytes = parameters::optional_whole("max_bytes", max_bytes, 1)?.unwrap_or(u64::MAX);
        let (format, key_type) = (read_format(format)?, arguments::key_type(key_type)?);
        py.detach(|| files::read_static(&bytes, format, key_type, max_bytes)).or_raise(py).map(Self::wrap)
    }

    /// The filter in the file at `path`, as its program wrote it. The file is read once; otherwise as from_foreign().
    #[staticmethod]
    #[pyo3(signature = (
        path: "str | bytes | os.PathLike[str] | os.PathLike[bytes]", format: "str | None" = None, *,
        key_type: "str | None" = None, max_bytes: "int | None" = None
    ))]
    fn open_foreign(
        path: &Bound<'_, PyAny>,
        format: Option<&Bound<'_, PyAny>>,
        key_type: Option<&Bound<'_, PyAny>>,
        max_bytes: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (py, path) = (path.py(), read_path(path)?);
        let max_bytes = parameters::optional_whole("max_bytes", max_bytes, 1)?.unwrap_or(u64::MAX);
        let (format, key_type) = (read_format(format)?, arguments::key_type(key_type)?);
        py.detach(|| files::open_static(&path, format, key_type, max_bytes)).or_raise(py).map(Self::wrap)
    }

    /// The bytes that the filter's program writes and reads.
    #[pyo3(signature = () -> "bytes")]
    fn to_foreign<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let len = self.lock.look(py, FingerprintFilter::len_written) as usize;
        let created = Unwritten::new(py, len)?;
        let written = self.lock.look(py, |filter| filter.write(&mut created.writer()));
        written.map_err(|error| Error::Io(error, "to_foreign".into())).or_raise(py)?;
        created.finish(py, true)
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        crate::cpython::learn(key.py());
        let digest = keys::digest_key(&self.hashing, key)?;
        Ok(self.lock.read(key.py(), |filter| filter.contains(digest)))
    }

    /// One result per key, in the same container type: list for a list, NumPy for NumPy, Arrow for Arrow.
    ///
    /// keys, threads: as for ForeignFilter.contains_many(). The GIL is released. Raises KeyTypeError.
    #[pyo3(signature = (keys: "Keys", *, threads: "int" = 1) -> "Answers[bool]")]
    fn contains_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = parameters::threads)] threads: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        Batch { lock: &self.lock, hashing: self.hashing, job: Job::Check, threads }.run(keys)
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.lock.look_both(&other.get().lock, py, FingerprintFilter::equals))
    }

    /// Rate of false positives.
    #[pyo3(signature = () -> "float")]
    fn fpr(&self, py: Python<'_>) -> f64 {
        self.lock.look(py, FingerprintFilter::fpr)
    }

    /// Bytes of cells.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> u64 {
        self.lock.look(py, FingerprintFilter::nbytes)
    }

    /// Number of cells.
    #[getter]
    fn num_cells(&self, py: Python<'_>) -> u64 {
        self.lock.look(py, FingerprintFilter::num_cells)
    }

    /// Number of keys that it was built of; None in formats that do not record it.
    #[getter]
    fn num_keys(&self, py: Python<'_>) -> Option<u64> {
        self.lock.look(py, FingerprintFilter::num_keys)
    }

    /// Bits of a fingerprint.
    #[getter]
    fn fingerprint_bits(&self) -> u32 {
        self.format.width
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

    /// The seed with which its keys could be solved.
    #[getter]
    fn seed(&self, py: Python<'_>) -> u64 {
        self.lock.look(py, FingerprintFilter::seed)
    }

    /// Parameters, as a dict of plain values.
    #[pyo3(signature = () -> "dict[str, Any]")]
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let info = PyDict::new(py);
        info.set_item("class", "ForeignStaticFilter")?;
        info.set_item("format", self.format.name)?;
        info.set_item("title", self.format.title)?;
        info.set_item("rule", self.format.rule_in_words)?;
        info.set_item("key_type", self.key_type(py))?;
        info.set_item("fingerprint_bits", self.format.width)?;
        info.set_item("num_cells", self.num_cells(py))?;
        info.set_item("num_keys", self.num_keys(py))?;
        info.set_item("seed", self.seed(py))?;
        info.set_item("nbytes", self.nbytes(py))?;
        info.set_item("fpr", self.fpr(py))?;
        Ok(info)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let (cells, key_type, name, bits) =
            (self.num_cells(py), self.key_type(py), self.format.name, self.format.width);
        format!("ForeignStaticFilter({name:?}, key_type={key_type:?}: {cells} cells of {bits} bits)")
    }
}

stored_methods!(ForeignStaticFilter);

/// Reads `format=` that may be None.
fn read_format(value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<&'static FingerprintFormat>> {
    value
        .filter(|value| !value.is_none())
        .map(|value| rows::named(parameters::text("format", value)?).or_raise(value.py()))
        .transpose()
}
