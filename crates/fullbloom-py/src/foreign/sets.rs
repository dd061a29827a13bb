//! Two filters of one format and shape as sets: the methods of [`ForeignFilter`] that take another one.

use fullbloom_core::error::Result;
use fullbloom_core::foreign::bits::BitFilter;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::ForeignFilter;
use crate::classes::merging::read_operands;
use crate::errors::OrRaise;
use crate::parameters;

impl ForeignFilter {
    fn both<R: Send>(
        &self,
        py: Python<'_>,
        other: &Self,
        visit: impl FnOnce(&BitFilter, &BitFilter) -> Result<R> + Send,
    ) -> PyResult<R> {
        self.lock.look_both(&other.lock, py, visit).or_raise(py)
    }

    /// Keeps the keys of both; one with itself does not change.
    fn keep(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
        if std::ptr::eq(&self.lock, &other.lock) {
            return Ok(());
        }
        self.lock.change_from(&other.lock, py, BitFilter::intersect).or_raise(py)
    }

    /// The other filters, each of which has the format and the shape of this one.
    fn read_alike<'py>(&self, name: &str, others: &Bound<'py, PyTuple>) -> PyResult<Vec<Bound<'py, Self>>> {
        let (py, others) = (others.py(), read_operands::<Self>(name, others)?);
        others.iter().try_for_each(|other| self.both(py, other.get(), BitFilter::check_alike))?;
        Ok(others)
    }

    fn duplicate(&self, py: Python<'_>) -> PyResult<Self> {
        self.lock.look(py, BitFilter::try_clone).or_raise(py).map(Self::wrap)
    }
}

#[pymethods]
impl ForeignFilter {
    /// Merges another filter of the same format and shape: the union of both.
    ///
    /// Raises IncompatibleFilters, naming every field in which the two differ; then nothing changed.
    #[pyo3(signature = (other: "Self"))]
    fn merge(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = parameters::other::<ForeignFilter>)] other: Py<Self>,
    ) -> PyResult<()> {
        self.take_in(py, other.get())
    }

    /// A new filter of this one and all others, which have its format and shape. Raises IncompatibleFilters.
    #[pyo3(signature = (*others: "Self") -> "Self")]
    fn union(&self, others: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let (py, others) = (others.py(), self.read_alike("union", others)?);
        let union = self.duplicate(py)?;
        others.iter().try_for_each(|other| union.take_in(py, other.get()))?;
        Ok(union)
    }

    /// A new filter that finds every key of this filter and all others, at the rate of its operands: bits that other keys
    /// have set in both stay set. Raises IncompatibleFilters.
    #[pyo3(signature = (*others: "Self") -> "Self")]
    fn intersection(&self, others: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let (py, others) = (others.py(), self.read_alike("intersection", others)?);
        let intersection = self.duplicate(py)?;
        others.iter().try_for_each(|other| intersection.keep(py, other.get()))?;
        Ok(intersection)
    }

    /// As intersection, in this filter.
    #[pyo3(signature = (*others: "Self") -> "None")]
    fn intersection_update(&self, others: &Bound<'_, PyTuple>) -> PyResult<()> {
        let (py, others) = (others.py(), self.read_alike("intersection_update", others)?);
        others.iter().try_for_each(|other| self.keep(py, other.get()))
    }

    fn __or__(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        let union = self.duplicate(py)?;
        union.take_in(py, other)?;
        Ok(union)
    }

    fn __ior__(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
        self.take_in(py, other)
    }

    fn __and__(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        let intersection = self.duplicate(py)?;
        intersection.keep(py, other)?;
        Ok(intersection)
    }

    fn __iand__(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
        self.keep(py, other)
    }

    /// True when no cell is above that of `other`, so that all keys of this filter are found there. Always true for a subset;
    /// true for another set with the chance that all its other keys are false positives of `other`.
    #[pyo3(signature = (other: "Self"))]
    fn issubset(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = parameters::other::<ForeignFilter>)] other: Py<Self>,
    ) -> PyResult<bool> {
        self.both(py, other.get(), BitFilter::is_subset)
    }

    /// True when all keys of `other` are found here; other.issubset(self).
    #[pyo3(signature = (other: "Self"))]
    fn issuperset(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = parameters::other::<ForeignFilter>)] other: Py<Self>,
    ) -> PyResult<bool> {
        other.get().both(py, self, BitFilter::is_subset)
    }

    /// True when the cells rule out a common key; False means only that they do not.
    #[pyo3(signature = (other: "Self"))]
    fn isdisjoint(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = parameters::other::<ForeignFilter>)] other: Py<Self>,
    ) -> PyResult<bool> {
        self.both(py, other.get(), BitFilter::certainly_disjoint)
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.lock.look_both(&other.get().lock, py, BitFilter::equals))
    }

    fn __le__(&self, py: Python<'_>, other: &Self) -> PyResult<bool> {
        self.both(py, other, BitFilter::is_subset)
    }

    fn __lt__(&self, py: Python<'_>, other: &Self) -> PyResult<bool> {
        self.both(py, other, BitFilter::is_proper_subset)
    }

    fn __ge__(&self, py: Python<'_>, other: &Self) -> PyResult<bool> {
        other.both(py, self, BitFilter::is_subset)
    }

    fn __gt__(&self, py: Python<'_>, other: &Self) -> PyResult<bool> {
        other.both(py, self, BitFilter::is_proper_subset)
    }

    /// Estimated number of keys in either, with its standard deviation; both inf when all cells of the union are
    /// set.
    #[pyo3(signature = (other: "Self"))]
    fn union_count(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = parameters::other::<ForeignFilter>)] other: Py<Self>,
    ) -> PyResult<(f64, f64)> {
        self.both(py, other.get(), BitFilter::union_count)
    }

    /// Estimated number of keys in both, with its standard deviation; noise for a small overlap of large sets. (nan, inf)
    /// when all cells of the union are set: the number is unknown then.
    #[pyo3(signature = (other: "Self"))]
    fn intersection_count(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = parameters::other::<ForeignFilter>)] other: Py<Self>,
    ) -> PyResult<(f64, f64)> {
        self.both(py, other.get(), BitFilter::intersection_count)
    }

    /// Estimated share of the union that is in both; nan when all cells of the union are set.
    #[pyo3(signature = (other: "Self"))]
    fn jaccard(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = parameters::other::<ForeignFilter>)] other: Py<Self>,
    ) -> PyResult<f64> {
        self.both(py, other.get(), BitFilter::jaccard)
    }
}
