//! Methods that every class has: bodies are one delegating line.

/// Methods of every filter. `$Class` holds `hasher` and `biased_lock`; `$variant` is its registry number.
macro_rules! filter_methods {
    ($Class:ident, $core:ty, $variant:expr) => {
        impl $Class {
            /// Same parameters, same hash, same bits. (Rich comparisons must share one block.)
            pub(crate) fn equals(&self, other: &Bound<'_, PyAny>) -> bool {
                let Ok(other) = other.cast::<$Class>() else { return false };
                self.lock.look_both(&other.get().lock, other.py(), Filter::same_as)
            }

            pub(crate) fn wrap(filter: $core) -> Self {
                $Class { hasher: filter.hasher().fresh(), lock: BiasedLock::new(filter, Filter::nbytes), path: None, max_bytes: u64::MAX }
            }

            /// Bounds the bytes of cells of the filter, and of filters created from it.
            pub(crate) fn with_limit(self, max_bytes: u64) -> Self {
                $Class { max_bytes, ..self }
            }

            /// The filter that was opened from `path`.
            pub(crate) fn wrap_file(filter: $core, path: &std::path::Path) -> Self {
                // A path that cannot be made absolute stays as the caller passed it.
                let path = std::path::absolute(path).unwrap_or_else(|_| path.into());
                $Class { path: Some(path), ..Self::wrap(filter) }
            }
        }

        #[pymethods]
        impl $Class {
            /// Model rate of false positives at the present load, which counts the set bits: O(nbytes).
            ///
            /// items: the rate at this many distinct keys instead, added to an empty filter of this shape; for structures with
            /// such a law, which are sized for a number of keys and have no stages and no window. Others raise ParameterError.
            #[pyo3(signature = (items: "float | None" = None))]
            fn fpr(&self, py: Python<'_>, items: Option<&Bound<'_, PyAny>>) -> PyResult<f64> {
                let Some(items) = items.filter(|items| !items.is_none()) else { return Ok(self.lock.look(py, Filter::fpr)) };
                let items = parameters::real("items", items)?;
                if !(items >= 0.0 && items.is_finite()) {
                    return Err(crate::errors::parameter(py, format!("items must be a number of at least 0, got {items}")));
                }
                self.lock.look(py, |filter| filter.fpr_at(items)).ok_or_else(|| {
                    let class = stringify!($Class);
                    let why = format!("a {class} has no law for a number of keys; fpr() returns the rate at the present load");
                    crate::errors::parameter(py, why)
                })
            }

            /// Share of set bits, counted: O(nbytes).
            #[getter]
            fn fill(&self, py: Python<'_>) -> f64 {
                self.lock.look(py, Filter::fill)
            }

            /// Bytes of cells.
            #[getter]
            fn nbytes(&self, py: Python<'_>) -> u64 {
                self.lock.read(py, Filter::nbytes)
            }

            /// Keys the structure was sized for.
            #[getter]
            fn capacity(&self, py: Python<'_>) -> u64 {
                self.lock.read(py, Filter::capacity)
            }

            /// Rate requested at capacity.
            #[getter]
            fn target_fpr(&self, py: Python<'_>) -> f64 {
                self.lock.read(py, Filter::target_fpr)
            }

            /// Keys that were new when they were added, less those removed.
            #[getter]
            fn num_added(&self, py: Python<'_>) -> u64 {
                self.lock.read(py, Filter::num_added)
            }

            /// The absolute path of the file that it was opened from, or None for a filter in memory, such as a copy().
            #[getter]
            fn path(&self) -> Option<&std::ffi::OsStr> {
                self.path.as_deref().map(std::path::Path::as_os_str)
            }

            /// Seed of the key hash.
            #[getter]
            fn seed(&self) -> u64 {
                self.hasher.seed()
            }

            /// True when keys are hashed under a secret.
            #[getter]
            fn keyed(&self) -> bool {
                self.hasher.is_keyed()
            }

            /// The types of the keys that were added, as text: "integer, text" and so on, "none", with "hashed" for
            /// ready hashes, or "unknown" for a file of an earlier release. Looking up a key of another type warns once.
            #[getter]
            fn key_domains(&self, py: Python<'_>) -> String {
                self.lock.read(py, |filter| filter.hasher().domains().to_string())
            }

            /// Parameters and state, as a dict of plain values. Counts the set bits: O(nbytes).
            #[pyo3(signature = () -> "dict[str, Any]")]
            fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
                let info = self.lock.look(py, Declared::info);
                shared::info(stringify!($Class), &info, py)
            }

            /// True when num_added is above 0. False after creation or clear(), or when all keys were removed or have expired:
            /// then the filter has no key.
            fn __bool__(&self, py: Python<'_>) -> bool {
                self.lock.read(py, |filter| filter.num_added() > 0)
            }

            fn __repr__(&self, py: Python<'_>) -> String {
                let info = self.lock.look(py, Declared::info);
                shared::repr(stringify!($Class), &info)
            }

            /// A small card for notebooks: class, fill, rate now and requested, keys, bytes.
            #[pyo3(signature = () -> "str")]
            fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
                slf.py().import("fullbloom.card")?.call_method1("render_card", (slf,))
            }

            /// The 16 bytes that secret=True drew, without which the filter's file cannot be opened: keep them.
            ///
            /// They are returned once, so that code that receives the filter later cannot read them; until then the filter is
            /// not written to a file. Copies and unions count as the filter. Raises SecretError the second time, and for a
            /// filter that was not created with secret=True.
            #[pyo3(signature = () -> "bytes")]
            fn take_secret<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
                crate::secrets::take_secret(py, &self.hasher)
            }

            /// The filter as the bytes of its file. A secret is not included: SecretError if it was not taken
            /// (see take_secret).
            #[pyo3(signature = () -> "bytes")]
            fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
                crate::secrets::check_secret_taken(py, &self.hasher)?;
                shared::to_bytes(py, &self.lock)
            }

            /// The filter in `data`, all of which is checked. Raises FormatError for anything else, FilterMemoryError for a
            /// filter of more than max_bytes; it does not grow beyond them either.
            #[staticmethod]
            #[pyo3(signature = (
                                        data: "bytes | bytearray | memoryview", *, secret: "bytes | None" = None,
                                        max_bytes: "int | None" = None
                                    ))]
            fn from_bytes(
                data: &Bound<'_, PyAny>,
                secret: Option<&Bound<'_, PyAny>>,
                max_bytes: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<Self> {
                let py = data.py();
                let wanted = files::read_open_options(py, "full", secret, max_bytes)?;
                let bytes = read_bytes("data", data)?;
                let most = wanted.max_bytes;
                let filter = py.detach(move || wanted.from_bytes(&bytes, $variant)).or_raise(py);
                filter.map(|filter| Self::wrap(filter).with_limit(most))
            }

            /// Writes the filter to `path` atomically: the old file or the new one. Waits for the disk.
            ///
            /// A link is followed and stays, and its target is replaced, which keeps its mode, and its owner if the caller may
            /// set it. Raises OSError for devices, pipes, directories and links to nothing,
            /// FormatError for a mapped filter whose cells no longer have the checksum of their file or contradict each
            /// other, SecretError if the secret was not taken (see take_secret).
            #[pyo3(signature = (path: "str | bytes | os.PathLike[str] | os.PathLike[bytes]") -> "None")]
            fn save(&self, path: &Bound<'_, PyAny>) -> PyResult<()> {
                let (py, path) = (path.py(), files::path(path)?);
                crate::secrets::check_secret_taken(py, &self.hasher)?;
                self.lock.detach(py, |session| session.read(|filter| files::save(filter, &path))).or_raise(py)
            }

            /// An independent copy in memory, also of a mapped filter, whose cells are checked: FormatError if they are damaged.
            fn copy(&self, py: Python<'_>) -> PyResult<Self> {
                self.lock.look(py, files::copy).or_raise(py).map(|copy| Self::wrap(copy).with_limit(self.max_bytes))
            }

            fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
                self.copy(py)
            }

            #[pyo3(signature = (memo: "object", /))]
            fn __deepcopy__(&self, py: Python<'_>, memo: &Bound<'_, PyAny>) -> PyResult<Self> {
                let _ = memo;
                self.copy(py)
            }

            /// Pickles as its file's bytes. A keyed filter is refused: a pickle must not contain the secret.
            #[pyo3(signature = () -> "tuple[object, tuple[bytes]]")]
            fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
                let this = slf.get();
                if this.hasher.is_keyed() {
                    return Err(pyo3::exceptions::PyTypeError::new_err(
                        "a filter with a secret is not pickled, since a pickle must not contain the secret; \
                         save() it and open it with secret=",
                    ));
                }
                Ok((slf.get_type().getattr("from_bytes")?, (this.to_bytes(slf.py())?,)))
            }
        }
    };
}

/// Methods of every filter that answers for any key, and is sized for a number of keys.
macro_rules! open_world_methods {
    ($Class:ident, $core:ty, built [included excluded]) => {};
    ($Class:ident, $core:ty, $when:ident $entry:tt) => {
        #[pymethods]
        impl $Class {
            #[doc = concat!(
                "One result per key, in the same container type: list for a list, NumPy for NumPy, Arrow for Arrow.\n\n",
                "keys: any iterable of keys, a NumPy array or other buffer of one dimension, or an object\n",
                "that supports the Arrow PyCapsule interface (Polars, pyarrow, pandas, ...); null returns null.\n",
                "threads: how many may be used; the GIL is released. Raises KeyTypeError for a key that has no\n",
                "canonical bytes.\n\n",
                ">>> from fullbloom import ", stringify!($Class), "\n",
                ">>> ", stringify!($Class), crate::classes::common::empty_call!($when $entry), ".contains_many([\"a\", \"b\"])\n[False, False]")]
            #[pyo3(signature = (keys: "Keys", *, threads: "int" = 1) -> "Answers[bool]")]
            fn contains_many<'py>(&self, keys: &Bound<'py, PyAny>, #[pyo3(from_py_with = parameters::threads)] threads: usize) -> PyResult<Bound<'py, PyAny>> {
                let check = operations::Check { lock: &self.lock, threads };
                batch::run(&check, &self.hasher, keys, true)
            }

            /// Membership of ready 64-bit hashes (see hash_many): a bool for one, a mask for a batch.
            #[pyo3(signature = (hashes: "Hashes | SupportsIndex") -> "Answers[bool]")]
            fn contains_hashed<'py>(&self, hashes: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                let py = hashes.py();
                if let Some(hash) = ready::read_single(hashes)? {
                    return shared::boolean(py, self.lock.read(py, |f| f.contains_hash(hash)));
                }
                ready::run(&operations::Check { lock: &self.lock, threads: 1 }, hashes)
            }

            /// Bytes of cells of a filter for `capacity` keys at `fpr`, with default parameters.
            #[staticmethod]
            #[pyo3(signature = (capacity: "int", fpr: "float" = parameters::Fpr(0.01)))]
            #[pyo3(text_signature = "(capacity, fpr=0.01)")]
            fn nbytes_for(capacity: &Bound<'_, PyAny>, fpr: parameters::Fpr) -> PyResult<u64> {
                let keys = parameters::parse_whole("capacity", capacity, 1)?;
                let py = capacity.py();
                py.detach(|| <$core as Planned>::nbytes_for(keys, fpr.0, &[])).or_raise(py)
            }

            /// A static filter of `keys`, with the same seed and secret: smaller, and no keys can be added to it.
            ///
            /// kind: "auto", the smallest for the rate, or the name of one. keys: all its keys, as contains_many takes them,
            /// since a filter does not store its own; nulls are skipped. fpr: target_fpr by default. threads, progress and
            /// memory as in the build of that class. Raises ParameterError for a rate or kind that no static filter has,
            /// KeyTypeError, FilterMemoryError, OSError if the temporary file for keys beyond memory cannot be written.
            /// Cost: that of the build, some 0.1 us per key. The secret is not revealed: the one of this filter opens that one.
            #[pyo3(signature = (
                kind: "str" = parameters::Kind::auto(), *, keys: "Keys", fpr: "float | None" = None, threads: "int" = 1,
                progress: "Callable[[int, int], object] | None" = None, memory: "int | None" = None
            ) -> "_Filter")]
            #[pyo3(text_signature = "($self, kind='auto', *, keys, fpr=None, threads=1, progress=None, memory=None)")]
            #[allow(clippy::too_many_arguments)] // the public signature
            fn freeze<'py>(
                &self,
                py: Python<'py>,
                kind: parameters::Kind,
                keys: &Bound<'py, PyAny>,
                fpr: Option<&Bound<'py, PyAny>>,
                #[pyo3(from_py_with = parameters::threads)] threads: usize,
                progress: Option<&Bound<'py, PyAny>>,
                memory: Option<&Bound<'py, PyAny>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                let given = fpr.filter(|fpr| !fpr.is_none()).map(|fpr| parameters::real("fpr", fpr)).transpose()?;
                let fpr = given.unwrap_or_else(|| self.lock.read(py, Filter::target_fpr));
                let options = crate::build::BuildOptions::read(threads, progress, memory)?;
                if given.is_none() && fpr <= 0.0 {
                    let class = stringify!($Class);
                    let why = format!("fpr is required: a {class} is exact, a static filter cannot be");
                    return Err(crate::errors::parameter(py, why));
                }
                crate::build::freeze::freeze(self.hasher, &kind.0, keys, fpr, &options)
            }
        }
    };
}

/// Opening a file that is not written in place.
macro_rules! plain_methods {
    ($Class:ident, $variant:expr) => {
        #[pymethods]
        impl $Class {
            #[doc = concat!(
                "Opens the file of a ", stringify!($Class), ", mapped read-only; copy() it to change it.\n\n",
                "verify \"header\" checks lengths and tables, \"full\" every byte and that cells agree with each other.\n",
                "max_bytes: more bytes of cells are refused, now and in a copy() that grows. Raises FormatError, OSError,\n",
                "FilterMemoryError.")]
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
                files::check_read_only(py, mode)?;
                let (wanted, path) = (files::read_open_options(py, verify, secret, max_bytes)?, files::path(path)?);
                py.detach(|| wanted.open(&files::open(&path)?, &path, $variant))
                    .or_raise(py)
                    .map(|filter| Self::wrap_file(filter, &path).with_limit(wanted.max_bytes))
            }
        }
    };
}

/// The rest of a call that creates a filter without keys.
macro_rules! empty_call {
    (built [key]) => {
        ".build([])"
    };
    (built [key value]) => {
        ".build({})"
    };
    (open $entry:tt) => {
        "(1000)"
    };
}

pub(crate) use {empty_call, filter_methods, open_world_methods, plain_methods};
