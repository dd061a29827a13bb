//! Methods of one capability each, for the structures that have it by the registry: an operation that a structure does not
//! support is absent.

/// `in`, for filters that accept no more keys.
macro_rules! lookup_methods {
    ($Class:ident, $Core:ty) => {
        crate::classes::hot::hot_methods!($Class, $Core);

        /// The method that `classes::hot` replaces, for its signature.
        #[cfg(feature = "stubs")]
        #[pymethods]
        impl $Class {
            /// True when the key was probably among those it was built from, False when it certainly was not.
            ///
            /// Cost: one hash and, in a large filter, some cache lines.
            fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
                let hash = scalar::hash_key(&self.hasher, key)?;
                Ok(self.lock.read(py, |filter| filter.contains_hash(hash)))
            }
        }
    };
}

/// Methods of filters to which keys are added alone, except those of one key.
macro_rules! addable_methods {
    ($Class:ident) => {
        #[pymethods]
        impl $Class {
            /// Adds the keys of each batch; takes what contains_many takes, skips nulls, returns nothing.
            ///
            /// Another filter of this class is merged, if the class can merge: its keys are added. Keys before a refused key
            /// or filter are added. Raises KeyTypeError for a filter that
            /// cannot be merged, IncompatibleFilters for one with other parameters. Cost: see docs/benchmarks.md.
            #[pyo3(signature = (*keys: "Keys | Self", threads: "int" = 1) -> "None")]
            fn update(
                &self,
                keys: &Bound<'_, pyo3::types::PyTuple>,
                #[pyo3(from_py_with = parameters::threads)] threads: usize,
            ) -> PyResult<()> {
                let (py, add) = (keys.py(), operations::Add { lock: &self.lock, threads });
                for keys in keys.iter() {
                    match keys.cast::<Self>() {
                        Ok(other) => crate::classes::merging::TakeIn::take_in(self, py, other.get())?,
                        Err(_) => drop(batch::run(&add, &self.hasher, &keys, false)?),
                    }
                }
                Ok(())
            }

            /// Adds many keys and returns, for each, whether it was new; as contains_many returns results.
            #[pyo3(signature = (keys: "Keys", *, threads: "int" = 1) -> "Answers[bool]")]
            fn add_many<'py>(
                &self,
                keys: &Bound<'py, PyAny>,
                #[pyo3(from_py_with = parameters::threads)] threads: usize,
            ) -> PyResult<Bound<'py, PyAny>> {
                let add = operations::Add { lock: &self.lock, threads };
                batch::run(&add, &self.hasher, keys, true)
            }

            /// Adds ready 64-bit hashes (see hash_many): a bool for one, a mask of the new for a batch.
            #[pyo3(signature = (hashes: "Hashes | SupportsIndex") -> "Answers[bool]")]
            fn add_hashed<'py>(&self, hashes: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                let py = hashes.py();
                if let Some(hash) = ready::read_single(hashes)? {
                    return shared::boolean(
                        py,
                        shared::add_one(py, &self.lock, (hash, fullbloom_core::key::KeyDomains::HASHED))?,
                    );
                }
                ready::run(&operations::Add { lock: &self.lock, threads: 1 }, hashes)
            }

            /// Forgets every key.
            fn clear(&self, py: Python<'_>) -> PyResult<()> {
                self.lock.change(py, Addable::empty).or_raise(py)
            }
        }
    };
}

/// Methods of filters that estimate their number of keys from their cells.
macro_rules! estimating_methods {
    ($Class:ident) => {
        #[pymethods]
        impl $Class {
            /// Estimated number of distinct keys and its standard deviation, from the cells: O(nbytes).
            ///
            /// The number is within two deviations in 92 to 98 of 100 filters, or in more if so few cells are shared that most
            /// filters return the same estimate; a deviation of 0 means that it is exact, (inf, inf) that all cells are set.
            /// Filters of several stages can miss these bounds: their page says when.
            fn approx_count(&self, py: Python<'_>) -> (f64, f64) {
                self.lock.look(py, |filter| filter.estimate_count().unwrap_or((0.0, 0.0)))
            }
        }
    };
}

/// Methods of filters that remove keys.
macro_rules! removable_methods {
    ($Class:ident) => {
        #[pymethods]
        impl $Class {
            /// Removes many keys, one after the other; takes what contains_many takes, skips nulls, returns nothing.
            ///
            /// Raises KeyError at the first that is absent or cannot be removed, with its number; those before it are
            /// removed. Cost: a lookup and a removal per key.
            #[pyo3(signature = (keys: "Keys") -> "None")]
            fn remove_many(&self, keys: &Bound<'_, PyAny>) -> PyResult<()> {
                batch::run(&operations::RemoveEach::new(&self.lock), &self.hasher, keys, false).map(drop)
            }

            /// Discards many keys; takes what contains_many takes, skips nulls, returns results in the same container type.
            #[pyo3(signature = (keys: "Keys") -> "Answers[bool]")]
            fn discard_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                batch::run(&operations::Remove { lock: &self.lock }, &self.hasher, keys, true)
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
            #[pyo3(signature = (key: "Key", /))]
            fn count(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
                let hash = operations::warnings::hash_lookup(&self.lock, &self.hasher, key)?;
                Ok(self.lock.read(key.py(), |f| Countable::count_hash(f, hash)))
            }

            /// One count per key, in the same container type; takes what contains_many takes, null counts null.
            #[pyo3(signature = (keys: "Keys") -> "Answers[int]")]
            fn count_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                batch::run(
                    &operations::Ask { lock: &self.lock, ask: &Countable::count_hashes },
                    &self.hasher,
                    keys,
                    true,
                )
            }
        }
    };
}

/// Methods of filters that choose cells for each key.
macro_rules! positioned_methods {
    ($Class:ident) => {
        #[pymethods]
        impl $Class {
            /// The cells of a key, each once, whether or not it was added: numbers of bits, or of counters.
            ///
            /// In the order of its probes, or from the first of a cache line to the last; docs/schemes.md has the
            /// rules. For comparing implementations. Cost: k probes and a list.
            #[pyo3(signature = (key: "Key", /) -> "list[int]")]
            fn positions(&self, key: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
                let hash = scalar::hash_key(&self.hasher, key)?;
                Ok(self.lock.read(key.py(), |filter| Positioned::positions(filter, hash)))
            }
        }
    };
}

/// Methods of filters whose cells are numbers of one width.
macro_rules! celled_methods {
    ($Class:ident) => {
        #[pymethods]
        impl $Class {
            #[doc = concat!(
                "The values of the cells as a read-only memoryview of a copy, an item of 8, 16, 32 or 64 bits per cell.\n\n",
                "Item i is cell i, as positions() numbers them where the class has it: 0 or 1 for a bit, a count, a label.\n",
                "Several planes (generations, layers) are rows, buckets of fingerprints are rows of slots. numpy.asarray()\n",
                "of the result copies nothing. For small filters: FilterMemoryError if nbytes exceeds max_bytes, 2 MiB by\n",
                "default. Cost: 15 to 500 ns per cell.\n\n",
                ">>> from fullbloom import ", stringify!($Class), "\n",
                ">>> set(", stringify!($Class), "(1000).bits().tobytes())\n{0}")]
            #[pyo3(signature = (*, max_bytes: "int" = 2_097_152) -> "memoryview")]
            fn bits<'py>(
                &self,
                py: Python<'py>,
                #[pyo3(from_py_with = parameters::max_bytes)] max_bytes: u64,
            ) -> PyResult<Bound<'py, PyAny>> {
                shared::bits(py, stringify!($Class), &self.lock, max_bytes)
            }
        }
    };
}

pub(crate) use {
    addable_methods, celled_methods, countable_methods, estimating_methods, lookup_methods, positioned_methods,
    removable_methods,
};
