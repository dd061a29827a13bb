//! Methods of one capability each, stamped where the registry says that a structure has it: an operation that it
//! cannot do is simply not there.

/// `in`, for filters that take no more keys.
macro_rules! asked_methods {
    ($Class:ident, $Core:ty) => {
        crate::classes::hot::hot_methods!($Class, $Core);

        /// What `classes::hot` replaces, for its signatures.
        #[cfg(feature = "stubs")]
        #[pymethods]
        impl $Class {
            /// True when the key was probably among those it was built of, False when it certainly was not.
            ///
            /// Cost: one hash and, in a large filter, some cache lines.
            fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
                let hash = scalar::hash_key(&self.hasher, key)?;
                Ok(self.lock.read(py, |filter| filter.contains_hash(hash)))
            }
        }
    };
}

/// Methods of filters that take keys alone, but for those of one key.
macro_rules! addable_methods {
    ($Class:ident) => {
        #[pymethods]
        impl $Class {
            /// Adds the keys of each batch; takes what contains_many takes, skips nulls, answers nothing.
            ///
            /// Another filter of this class is taken in whole, where such two can be merged: its keys are added.
            /// What comes before a key or a filter that is refused is added. Raises KeyTypeError for a filter that
            /// cannot be merged, IncompatibleFilters for one with other parameters. Cost: see docs/benchmarks.md.
            #[pyo3(signature = (*keys: "Keys | Self", threads: "int" = 1) -> "None")]
            fn update(
                &self,
                keys: &Bound<'_, pyo3::types::PyTuple>,
                #[pyo3(from_py_with = params::threads)] threads: usize,
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

            /// Adds many keys and answers, for each, whether it was new; as contains_many answers.
            #[pyo3(signature = (keys: "Keys", *, threads: "int" = 1) -> "Answers[bool]")]
            fn add_many<'py>(
                &self,
                keys: &Bound<'py, PyAny>,
                #[pyo3(from_py_with = params::threads)] threads: usize,
            ) -> PyResult<Bound<'py, PyAny>> {
                let add = operations::Add { lock: &self.lock, threads };
                batch::run(&add, &self.hasher, keys, true)
            }

            /// Adds ready 64-bit hashes (see hash_many): a bool for one, a mask of the new for a batch.
            #[pyo3(signature = (hashes: "Hashes | SupportsIndex") -> "Answers[bool]")]
            fn add_hashed<'py>(&self, hashes: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                let py = hashes.py();
                if let Some(hash) = ready::single(hashes)? {
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

/// Methods of filters that tell their number of keys from their cells.
macro_rules! estimating_methods {
    ($Class:ident) => {
        #[pymethods]
        impl $Class {
            /// Estimated number of distinct keys and its standard deviation, from the cells: O(nbytes).
            ///
            /// Two deviations hold the number in 92 to 98 of 100 filters, or in more where so few cells have met
            /// that most filters tell the same; 0 says that it is exact, (inf, inf) that all cells are set. Filters
            /// made of stages can miss these bounds: their page tells where.
            fn approx_count(&self, py: Python<'_>) -> (f64, f64) {
                self.lock.look(py, |filter| filter.estimated().unwrap_or((0.0, 0.0)))
            }
        }
    };
}

/// Methods of filters that take keys out again.
macro_rules! removable_methods {
    ($Class:ident) => {
        #[pymethods]
        impl $Class {
            /// Removes many keys, one after the other; takes what contains_many takes, skips nulls, answers nothing.
            ///
            /// Raises KeyError at the first that is not there or cannot be taken out, with its number; those before it
            /// are removed. Cost: a look-up and a removal a key.
            #[pyo3(signature = (keys: "Keys") -> "None")]
            fn remove_many(&self, keys: &Bound<'_, PyAny>) -> PyResult<()> {
                batch::run(&operations::RemoveEach::of(&self.lock), &self.hasher, keys, false).map(drop)
            }

            /// Discards many keys; takes what contains_many takes, skips nulls, answers in the caller's kind.
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
                let hash = crate::domains::looked_up(&self.lock, &self.hasher, key)?;
                Ok(self.lock.read(key.py(), |f| Countable::count_hash(f, hash)))
            }

            /// One count a key, in the caller's kind; takes what contains_many takes, null counts null.
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

pub(crate) use {
    addable_methods, asked_methods, countable_methods, estimating_methods, positioned_methods, removable_methods,
};
