//! The Python classes: one file a variant, the shared methods stamped from here.
//!
//! `filter_methods!` gives what every structure has; `addable_methods!` what the growing kind has.
//! An operation that a structure cannot do is simply not stamped. Bodies are one delegating line.

use pyo3::prelude::*;

pub(crate) mod declared;
pub(crate) mod hot;
pub(crate) mod shared;

/// One class a row.
macro_rules! classes {
    ({} $({
        $ID:ident = $number:literal, $module:ident $name:literal, $family:ident::$Class:ident;
        adds: $adds:ident, can: $can:tt, stage: $stage:ident, false_negatives: $promise:ident,
        layouts: $layouts:expr, ns: $ns:expr,
        merging: $merging:literal,
        formula: $formula:literal,
        paper: $paper:literal,
    })*) => {
        $(bloomery_core::$Class! { crate::classes::declared::class ! { $ID $module $family $adds $can $merging } })*
    };
}
bloomery_core::variants!(classes! {});

/// Every class, one a line: number in the registry, file, class, and whether `add` takes a key
/// alone (`keys`) or with something else (`pairs`). The one list that all look-ups expand; a test
/// compares it with the registry.
macro_rules! every_class {
    ($($do:ident)::+ !($($with:tt)*)) => {
        $($do)::+! { ($($with)*)
            BLOOM bloom BloomFilter keys;
            SCALABLE scalable ScalableBloomFilter keys;
            COUNTING counting CountingBloomFilter keys;
            VARIABLE_INCREMENT variable_increment VariableIncrementFilter keys;
            SPECTRAL spectral SpectralFilter keys;
            D_LEFT d_left DLeftCountingFilter keys;
            DELETABLE deletable DeletableBloomFilter keys;
            RETOUCHED retouched RetouchedBloomFilter keys;
            STABLE stable StableBloomFilter keys;
            AGING aging AgingBloomFilter keys;
            ROLLING rolling RollingBloomFilter keys;
            LAYERED layered LayeredBloomFilter keys;
            SPATIAL spatial SpatialBloomFilter pairs;
            COMPACT compact CompactApproximator pairs;
            CUCKOO cuckoo CuckooFilter keys;
            QUOTIENT quotient QuotientFilter keys;
            PREFIX prefix PrefixFilter keys;
            DYNAMIC_CUCKOO dynamic_cuckoo DynamicCuckooFilter keys;
        }
    };
}

/// The class with registry number `variant`, if this release has one.
pub(crate) fn class_of(py: Python<'_>, variant: u16) -> Option<Bound<'_, PyAny>> {
    macro_rules! pick {
        (() $($ID:ident $file:ident $Class:ident $adds:ident;)*) => {
            match variant {
                $(bloomery_core::registry::$ID => Some(py.get_type::<$file::$Class>().into_any()),)*
                _ => None,
            }
        };
    }
    every_class!(pick!())
}

/// `Some($work)` with the lock of `$filter` as `$lock`, whichever class that takes keys alone it is
/// of; `None` for anything else.
macro_rules! with_filter {
    ($filter:expr, $lock:ident => $work:expr) => {
        crate::classes::every_class!(crate::classes::try_class!($filter, $lock => $work))
    };
}

/// The chain of casts behind [`with_filter!`].
macro_rules! try_class {
    (($filter:expr, $lock:ident => $work:expr)) => { None };
    (($filter:expr, $lock:ident => $work:expr) $ID:ident $file:ident $Class:ident keys; $($rest:tt)*) => {
        if let Ok(filter) = $filter.cast::<crate::classes::$file::$Class>() {
            let $lock = &filter.get().lock;
            Some($work)
        } else {
            crate::classes::try_class!(($filter, $lock => $work) $($rest)*)
        }
    };
    (($filter:expr, $lock:ident => $work:expr) $ID:ident $file:ident $Class:ident pairs; $($rest:tt)*) => {
        crate::classes::try_class!(($filter, $lock => $work) $($rest)*)
    };
}

/// Methods of every filter. `$Class` holds `hasher` and `biased_lock`; `$variant` is its registry number.
macro_rules! filter_methods {
    ($Class:ident, $core:ty, $variant:expr) => {
        impl $Class {
            /// Same parameters, same hash, same bits. (Rich comparisons must share one block.)
            pub(crate) fn equals(&self, other: &Bound<'_, PyAny>) -> bool {
                let Ok(other) = other.cast::<$Class>() else { return false };
                self.lock.read_both(&other.get().lock, other.py(), bloomery_core::structure::Filter::same_as)
            }

            pub(crate) fn wrap(filter: $core) -> Self {
                use bloomery_core::structure::Filter;
                $Class { hasher: *filter.hasher(), lock: crate::biased_lock::BiasedLock::new(filter) }
            }
        }

        #[pymethods]
        impl $Class {
            #[doc = concat!(
                "One answer a key, in the caller's kind: list for a list, NumPy for NumPy, Arrow for Arrow.\n\n",
                "keys: any iterable of keys, a NumPy array or other buffer of one dimension, or an object\n",
                "that speaks the Arrow PyCapsule interface (Polars, pyarrow, pandas, ...); null answers null.\n",
                "threads: how many may be used; the GIL is released. Raises KeyTypeError for a key that has no\n",
                "canonical bytes.\n\n",
                ">>> from bloomery import ", stringify!($Class), "\n",
                ">>> ", stringify!($Class), "(1000).contains_many([\"a\", \"b\"])\n[False, False]")]
            #[pyo3(signature = (keys: "object", *, threads: "int" = crate::classes::shared::ONE) -> "Any")]
            fn contains_many<'py>(
                &self,
                keys: &Bound<'py, PyAny>,
                threads: crate::classes::shared::Threads,
            ) -> PyResult<Bound<'py, PyAny>> {
                let check = crate::operations::Check { lock: &self.lock, threads: threads.0 };
                crate::keys::batch::run(&check, &self.hasher, keys, true)
            }

            /// Membership of ready 64-bit hashes (see hash_many): a bool for one, a mask for a batch.
            #[pyo3(signature = (hashes: "object") -> "Any")]
            fn contains_hashed<'py>(&self, hashes: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                use bloomery_core::structure::Filter;
                let py = hashes.py();
                if let Some(hash) = crate::keys::ready::single(hashes)? {
                    return crate::classes::shared::boolean(py, self.lock.read(py, |f| f.contains_hash(hash)));
                }
                crate::keys::ready::run(&crate::operations::Check { lock: &self.lock, threads: 1 }, hashes)
            }

            /// Model rate of false positives at the present load. Counts the set bits: O(nbytes).
            fn fpr(&self, py: Python<'_>) -> f64 {
                self.lock.look(py, bloomery_core::structure::Filter::fpr)
            }

            /// Share of set bits, counted: O(nbytes).
            #[getter]
            fn fill(&self, py: Python<'_>) -> f64 {
                self.lock.look(py, bloomery_core::structure::Filter::fill)
            }

            /// Bytes of cells held.
            #[getter]
            fn nbytes(&self, py: Python<'_>) -> u64 {
                self.lock.read(py, bloomery_core::structure::Filter::nbytes)
            }

            /// Keys the structure was sized for.
            #[getter]
            fn capacity(&self, py: Python<'_>) -> u64 {
                self.lock.read(py, bloomery_core::structure::Filter::capacity)
            }

            /// Rate asked for at capacity.
            #[getter]
            fn target_fpr(&self, py: Python<'_>) -> f64 {
                self.lock.read(py, bloomery_core::structure::Filter::target_fpr)
            }

            /// Bytes that a filter for `capacity` keys at `fpr` would hold, with default parameters.
            #[staticmethod]
            #[pyo3(signature = (capacity: "int", fpr: "float" = crate::params::Fpr(0.01)))]
            #[pyo3(text_signature = "(capacity, fpr=0.01)")]
            fn nbytes_for(capacity: &Bound<'_, PyAny>, fpr: crate::params::Fpr) -> PyResult<u64> {
                let keys = crate::params::whole("capacity", capacity, 1)?;
                let bytes = <$core as bloomery_core::structure::Sizable>::nbytes_for(keys, fpr.0, &[]);
                crate::errors::OrRaise::or_raise(bytes, capacity.py())
            }

            /// Keys that were new when they were added, less those removed.
            #[getter]
            fn num_added(&self, py: Python<'_>) -> u64 {
                self.lock.read(py, bloomery_core::structure::Filter::num_added)
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

            /// Everything worth knowing, as a dict of plain values. Counts the set bits: O(nbytes).
            #[pyo3(signature = () -> "dict[str, Any]")]
            fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyDict>> {
                let info = self.lock.look(py, bloomery_core::structure::Declared::info);
                crate::classes::shared::info(stringify!($Class), &info, py)
            }

            fn __repr__(&self, py: Python<'_>) -> String {
                let info = self.lock.look(py, bloomery_core::structure::Declared::info);
                crate::classes::shared::repr(stringify!($Class), &info)
            }

            /// The filter as the bytes of its file. A secret is not among them.
            #[pyo3(signature = () -> "bytes")]
            fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyBytes>> {
                use crate::errors::OrRaise;
                let bytes = self.lock.look(py, crate::files::to_bytes).or_raise(py)?;
                crate::objects::bytes(py, &bytes)
            }

            /// The filter in `data`, all of which is checked. Raises FormatError for anything else.
            #[staticmethod]
            #[pyo3(signature = (data: "bytes | bytearray | memoryview", *, secret: "bytes | None" = None))]
            fn from_bytes(data: &Bound<'_, PyAny>, secret: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
                let (py, secret) = (data.py(), crate::params::secret(secret)?);
                let bytes = crate::classes::shared::bytes_of(data)?;
                let filter = py.detach(|| crate::files::from_bytes(&bytes, $variant, secret.as_ref()));
                crate::errors::OrRaise::or_raise(filter, py).map(Self::wrap)
            }

            /// Writes the filter to `path`: the old file or the new one, never a half. Waits for the disk.
            #[pyo3(signature = (path: "str | bytes | os.PathLike[str] | os.PathLike[bytes]") -> "None")]
            fn save(&self, path: &Bound<'_, PyAny>) -> PyResult<()> {
                let (py, path) = (path.py(), crate::files::path(path)?);
                let saved = self.lock.detach(py, |session| session.read(|filter| bloomery_core::structure::Filter::save(filter, &path)));
                crate::errors::OrRaise::or_raise(saved, py)
            }

            /// An independent copy in memory, also of a mapped filter.
            fn copy(&self, py: Python<'_>) -> PyResult<Self> {
                let copy = self.lock.look(py, bloomery_core::structure::Filter::try_clone);
                crate::errors::OrRaise::or_raise(copy, py).map(Self::wrap)
            }

            fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
                self.copy(py)
            }

            #[pyo3(signature = (memo: "object", /))]
            fn __deepcopy__(&self, py: Python<'_>, memo: &Bound<'_, PyAny>) -> PyResult<Self> {
                let _ = memo;
                self.copy(py)
            }

            /// Pickles as its file's bytes. A keyed filter is refused: the secret may not travel along.
            #[pyo3(signature = () -> "tuple[object, tuple[bytes]]")]
            fn __reduce__<'py>(
                slf: &Bound<'py, Self>,
            ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, pyo3::types::PyBytes>,))> {
                let this = slf.get();
                if this.hasher.is_keyed() {
                    return Err(pyo3::exceptions::PyTypeError::new_err(
                        "a filter with a secret is not pickled, since the secret must not travel along; \
                         save() it and open it with secret=",
                    ));
                }
                Ok((slf.get_type().getattr("from_bytes")?, (this.to_bytes(slf.py())?,)))
            }
        }
    };
}

/// The text of `add`'s documentation.
macro_rules! add_doc_text {
    ($Class:ident) => {
        concat!(
            "Adds a key; True when it was certainly new, False when it was probably there.\n\n",
            "Cost: one hash and, in layout blocked, one cache line. Of two threads that add one new key,\n",
            "exactly one is told True. Raises KeyTypeError, ReadOnlyFilter; warns CapacityWarning once past\n",
            "capacity.\n\n",
            ">>> from bloomery import ",
            stringify!($Class),
            "\n",
            ">>> f = ",
            stringify!($Class),
            "(1000)\n",
            ">>> f.add(\"a\"), f.add(\"a\")\n(True, False)"
        )
    };
}

#[cfg(not(feature = "stubs"))]
/// The same as a C string with the signature in front, as CPython reads it.
macro_rules! add_doc {
    ($Class:ident) => {
        match std::ffi::CStr::from_bytes_with_nul(
            concat!("add($self, key, /)\n--\n\n", crate::classes::add_doc_text!($Class), "\0").as_bytes(),
        ) {
            Ok(text) => text,
            Err(_) => c"",
        }
    };
}

/// Methods of filters that take keys one by one.
macro_rules! addable_methods {
    ($Class:ident, $Core:ty) => {
        crate::classes::hot::hot_methods!($Class, $Core, crate::classes::add_doc!($Class));

        /// What `classes::hot` replaces, for its signatures.
        #[cfg(feature = "stubs")]
        #[pymethods]
        impl $Class {
            /// True when the key was probably added, False when it certainly was not.
            ///
            /// Cost: one hash and, in layout blocked, one cache line.
            fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
                use bloomery_core::structure::Filter;
                let hash = crate::keys::scalar::hash_key(&self.hasher, key)?;
                Ok(self.lock.read(py, |filter| filter.contains_hash(hash)))
            }

            #[doc = crate::classes::add_doc_text!($Class)]
            #[pyo3(signature = (key: "object", /))]
            fn add(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
                let hash = crate::keys::scalar::hash_key(&self.hasher, key)?;
                crate::classes::shared::add_one(py, &self.lock, hash)
            }
        }

        #[pymethods]
        impl $Class {
            /// Adds many keys; takes what contains_many takes, skips nulls, answers nothing.
            ///
            /// Keys before one that is refused are added. Cost: see docs/benchmarks.md.
            #[pyo3(signature = (keys: "object", *, threads: "int" = crate::classes::shared::ONE) -> "None")]
            fn update(&self, keys: &Bound<'_, PyAny>, threads: crate::classes::shared::Threads) -> PyResult<()> {
                let add = crate::operations::Add { lock: &self.lock, threads: threads.0 };
                crate::keys::batch::run(&add, &self.hasher, keys, false).map(drop)
            }

            /// Adds many keys and answers, for each, whether it was new; as contains_many answers.
            #[pyo3(signature = (keys: "object", *, threads: "int" = crate::classes::shared::ONE) -> "Any")]
            fn add_many<'py>(
                &self,
                keys: &Bound<'py, PyAny>,
                threads: crate::classes::shared::Threads,
            ) -> PyResult<Bound<'py, PyAny>> {
                let add = crate::operations::Add { lock: &self.lock, threads: threads.0 };
                crate::keys::batch::run(&add, &self.hasher, keys, true)
            }

            /// Adds ready 64-bit hashes (see hash_many): a bool for one, a mask of the new for a batch.
            #[pyo3(signature = (hashes: "object") -> "Any")]
            fn add_hashed<'py>(&self, hashes: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                let py = hashes.py();
                if let Some(hash) = crate::keys::ready::single(hashes)? {
                    let new = crate::classes::shared::add_one(py, &self.lock, hash)?;
                    return crate::classes::shared::boolean(py, new);
                }
                crate::keys::ready::run(&crate::operations::Add { lock: &self.lock, threads: 1 }, hashes)
            }

            /// Forgets every key.
            fn clear(&self, py: Python<'_>) -> PyResult<()> {
                let cleared = self.lock.write(py, bloomery_core::structure::Addable::clear);
                crate::errors::OrRaise::or_raise(cleared, py)
            }
        }
    };
}

/// Methods of filters that tell their number of keys from their cells.
macro_rules! estimating_methods {
    ($Class:ident) => {
        #[pymethods]
        impl $Class {
            /// Estimated number of distinct keys and its standard deviation, from the cells: O(nbytes).
            fn approx_count(&self, py: Python<'_>) -> (f64, f64) {
                self.lock.look(py, |filter| {
                    use bloomery_core::structure::Filter;
                    filter.estimated().unwrap_or((0.0, 0.0))
                })
            }
        }
    };
}

/// `==`, and opening a file that is not written in place.
macro_rules! plain_methods {
    ($Class:ident, $variant:expr) => {
        #[pymethods]
        impl $Class {
            fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
                self.equals(other)
            }

            #[doc = concat!(
                "Opens the file of a ", stringify!($Class), ", mapped read-only; copy() it to change it.\n\n",
                "verify \"header\" checks lengths and tables, \"full\" every byte. Raises FormatError, OSError.")]
            #[staticmethod]
            #[pyo3(signature = (
                path: "str | bytes | os.PathLike[str] | os.PathLike[bytes]", *, mode: "str" = "r",
                verify: "str" = "header", secret: "bytes | None" = None
            ))]
            fn open(
                path: &Bound<'_, PyAny>,
                mode: &str,
                verify: &str,
                secret: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<Self> {
                let py = path.py();
                crate::files::read_only_mode(py, mode)?;
                let (verify, secret) = (crate::files::verify(py, verify)?, crate::params::secret(secret)?);
                let path = crate::files::path(path)?;
                let opened = py.detach(|| crate::files::open_read(&path, $variant, verify, secret.as_ref()));
                crate::errors::OrRaise::or_raise(opened, py).map(Self::wrap)
            }
        }
    };
}

/// Methods of filters that take keys out again.
macro_rules! removable_methods {
    ($Class:ident) => {
        crate::classes::hot::hot_remove!(
            $Class,
            c"remove($self, key, /)\n--\n\nRemoves one occurrence of a key; KeyError when it was certainly never added, and then\nnothing changes. Removing a key that only seems to be there harms others: see the class."
        );

        /// What `classes::hot` replaces, for its signature.
        #[cfg(feature = "stubs")]
        #[pymethods]
        impl $Class {
            /// Removes one occurrence of a key; KeyError when it was certainly never added, and then
            /// nothing changes. Removing a key that only seems to be there harms others: see the class.
            #[pyo3(signature = (key: "object", /) -> "None")]
            fn remove(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
                let hash = crate::keys::scalar::hash_key(&self.hasher, key)?;
                crate::classes::shared::remove_one(&self.lock, hash, key)
            }
        }

        #[pymethods]
        impl $Class {
            /// As remove, but answers: True when the key was removed, False when it was certainly absent.
            #[pyo3(signature = (key: "object", /))]
            fn discard(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
                let hash = crate::keys::scalar::hash_key(&self.hasher, key)?;
                let py = key.py();
                let removed = self.lock.write(py, |f| bloomery_core::structure::Removable::remove_hash(f, hash));
                crate::errors::OrRaise::or_raise(removed, py)
            }

            /// Discards many keys; takes what contains_many takes, skips nulls, answers in the caller's kind.
            #[pyo3(signature = (keys: "object") -> "Any")]
            fn discard_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                let remove = crate::operations::Remove { lock: &self.lock };
                crate::keys::batch::run(&remove, &self.hasher, keys, true)
            }
        }
    };
}

/// Methods of filters that count occurrences.
macro_rules! countable_methods {
    ($Class:ident) => {
        #[pymethods]
        impl $Class {
            /// Estimated number of occurrences of a key; 0 when it was certainly never added.
            #[pyo3(signature = (key: "object", /))]
            fn count(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
                let hash = crate::keys::scalar::hash_key(&self.hasher, key)?;
                Ok(self.lock.read(key.py(), |f| bloomery_core::structure::Countable::count_hash(f, hash)))
            }

            /// One count a key, in the caller's kind; takes what contains_many takes, null counts null.
            #[pyo3(signature = (keys: "object") -> "Any")]
            fn count_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                let ask = &bloomery_core::structure::Countable::count_hashes;
                crate::keys::batch::run(&crate::operations::Ask { lock: &self.lock, ask }, &self.hasher, keys, true)
            }
        }
    };
}

/// Merging with a filter of the same kind, by `$merge`; `$meaning` is the first line of its documentation.
macro_rules! mergeable_methods {
    ($Class:ident, $meaning:expr) => {
        crate::classes::mergeable_methods!($Class, $meaning, crate::classes::shared::merge);
    };
    ($Class:ident, $meaning:expr, $merge:path) => {
        #[pymethods]
        impl $Class {
            #[doc = concat!($meaning, "\n\nRaises IncompatibleFilters, naming every field in which the two differ; then nothing changed.")]
            fn merge(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
                $merge(py, &self.lock, &other.lock, bloomery_core::structure::Mergeable::merge)
            }
        }
    };
}

#[cfg(not(feature = "stubs"))]
pub(crate) use add_doc;
pub(crate) use {add_doc_text, addable_methods, filter_methods};
pub(crate) use {countable_methods, estimating_methods, mergeable_methods, plain_methods, removable_methods};
pub(crate) use {every_class, try_class, with_filter};
