//! Comparisons, and set operations on cells that can be compared one by one.

/// `==` in every class; in those that can intersect, the comparisons and operations of sets, too.
macro_rules! comparison {
    ([intersect $($more:ident)*] $Class:ident) => {
        crate::classes::comparing::intersecting_methods!($Class);
    };
    ([$other:ident $($more:ident)*] $Class:ident) => {
        crate::classes::comparing::comparison!([$($more)*] $Class);
    };
    ([] $Class:ident) => {
        #[pymethods]
        impl $Class {
            fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
                self.equals(other)
            }
        }
    };
}

/// Methods of filters that are compared and intersected cell by cell.
macro_rules! intersecting_methods {
    ($Class:ident) => {
        impl $Class {
            fn both<R: Send>(
                &self,
                other: &Self,
                py: Python<'_>,
                visit: impl FnOnce(&Core, &Core) -> fullbloom_core::Result<R> + Send,
            ) -> PyResult<R> {
                self.lock.look_both(&other.lock, py, visit).or_raise(py)
            }
        }

        #[pymethods]
        impl $Class {
            /// A new filter that finds every key that is in this filter and in all others, at the rate of its
            /// operands: cells that other keys have set in both stay set.
            ///
            /// num_added is an estimate, that of intersection_count. Raises IncompatibleFilters, naming every field in
            /// which two differ.
            #[pyo3(signature = (*others: "Self") -> "Self")]
            fn intersection(&self, others: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<Self> {
                use crate::classes::merging;
                let (py, others) = (others.py(), merging::read_operands::<Self>("intersection", others)?);
                others.iter().try_for_each(|other| merging::check(py, &self.lock, &other.get().lock))?;
                let intersection = Self::wrap(merging::copy(py, &self.lock)?);
                let keep = |other: &Bound<'_, Self>| {
                    merging::combine(py, &intersection.lock, &other.get().lock, Intersectable::intersect)
                };
                others.iter().try_for_each(keep)?;
                Ok(intersection)
            }

            /// As intersection, in this filter.
            #[pyo3(signature = (*others: "Self") -> "None")]
            fn intersection_update(&self, others: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<()> {
                use crate::classes::merging;
                let (py, others) = (others.py(), merging::read_operands::<Self>("intersection_update", others)?);
                others.iter().try_for_each(|other| merging::check(py, &self.lock, &other.get().lock))?;
                let keep = |other: &Bound<'_, Self>| {
                    merging::combine(py, &self.lock, &other.get().lock, Intersectable::intersect)
                };
                others.iter().try_for_each(keep)
            }

            fn __and__(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<Self> {
                slf.get().intersection(&pyo3::types::PyTuple::new(slf.py(), [other])?)
            }

            fn __iand__(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
                crate::classes::merging::combine(py, &self.lock, &other.lock, Intersectable::intersect)
            }

            /// True when no cell is above that of `other`, so that all keys of this filter are found there. Always true
            /// for a subset; true for another set with the chance that all its other keys are false positives of `other`.
            #[pyo3(signature = (other: "Self"))]
            fn issubset(
                &self,
                py: Python<'_>,
                #[pyo3(from_py_with = crate::parameters::other::<$Class>)] other: Py<Self>,
            ) -> PyResult<bool> {
                self.both(other.get(), py, Intersectable::is_subset)
            }

            /// True when all keys of `other` are found here; other.issubset(self).
            #[pyo3(signature = (other: "Self"))]
            fn issuperset(
                &self,
                py: Python<'_>,
                #[pyo3(from_py_with = crate::parameters::other::<$Class>)] other: Py<Self>,
            ) -> PyResult<bool> {
                other.get().both(self, py, Intersectable::is_subset)
            }

            /// True when the cells rule out a common key; False means only that they do not.
            #[pyo3(signature = (other: "Self"))]
            fn isdisjoint(
                &self,
                py: Python<'_>,
                #[pyo3(from_py_with = crate::parameters::other::<$Class>)] other: Py<Self>,
            ) -> PyResult<bool> {
                self.both(other.get(), py, Intersectable::certainly_disjoint)
            }

            fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
                self.equals(other)
            }

            fn __le__(&self, py: Python<'_>, other: &Self) -> PyResult<bool> {
                self.both(other, py, Intersectable::is_subset)
            }

            fn __lt__(&self, py: Python<'_>, other: &Self) -> PyResult<bool> {
                self.both(other, py, Intersectable::is_proper_subset)
            }

            fn __ge__(&self, py: Python<'_>, other: &Self) -> PyResult<bool> {
                other.both(self, py, Intersectable::is_subset)
            }

            fn __gt__(&self, py: Python<'_>, other: &Self) -> PyResult<bool> {
                other.__lt__(py, self)
            }

            /// Estimated number of keys in either, with its standard deviation; both inf when all cells of the union
            /// are set.
            #[pyo3(signature = (other: "Self"))]
            fn union_count(
                &self,
                py: Python<'_>,
                #[pyo3(from_py_with = crate::parameters::other::<$Class>)] other: Py<Self>,
            ) -> PyResult<(f64, f64)> {
                self.both(other.get(), py, Intersectable::union_count)
            }

            /// Estimated number of keys in both, with its standard deviation; noise for a small overlap
            /// of large sets. (nan, inf) when all cells of the union are set: the number is unknown then.
            #[pyo3(signature = (other: "Self"))]
            fn intersection_count(
                &self,
                py: Python<'_>,
                #[pyo3(from_py_with = crate::parameters::other::<$Class>)] other: Py<Self>,
            ) -> PyResult<(f64, f64)> {
                self.both(other.get(), py, Intersectable::intersection_count)
            }

            /// Estimated share of the union that is in both; nan when all cells of the union are set.
            #[pyo3(signature = (other: "Self"))]
            fn jaccard(
                &self,
                py: Python<'_>,
                #[pyo3(from_py_with = crate::parameters::other::<$Class>)] other: Py<Self>,
            ) -> PyResult<f64> {
                self.both(other.get(), py, Intersectable::jaccard)
            }
        }
    };
}

pub(crate) use {comparison, intersecting_methods};
