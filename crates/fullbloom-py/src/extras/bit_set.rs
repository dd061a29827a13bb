//! What only `BitSet` has, being exact: differences.

use fullbloom_core::exact::BitSet as Core;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::classes::bit_set::BitSet;
use crate::classes::merging::{check, combine, copied, operands};

type Combine = fn(&mut Core, &Core) -> fullbloom_core::Result<()>;

impl BitSet {
    /// A copy with each of the others combined into it.
    fn combined(&self, name: &str, others: &Bound<'_, PyTuple>, how: Combine) -> PyResult<Self> {
        let (py, others) = (others.py(), operands::<Self>(name, others)?);
        others.iter().try_for_each(|other| check(py, &self.lock, &other.get().lock))?;
        let made = Self::wrap(copied(py, &self.lock)?);
        others.iter().try_for_each(|other| combine(py, &made.lock, &other.get().lock, how))?;
        Ok(made)
    }

    /// Combines `other` into this set; the set itself by a copy of it.
    fn combine_into(&self, other: &Bound<'_, Self>, how: Combine) -> PyResult<()> {
        let py = other.py();
        if !std::ptr::eq(self, other.get()) {
            return combine(py, &self.lock, &other.get().lock, how);
        }
        let copy = Self::wrap(copied(py, &self.lock)?);
        combine(py, &self.lock, &copy.lock, how)
    }
}

#[pymethods]
impl BitSet {
    /// A new set of the members that are in none of the others.
    ///
    /// Raises IncompatibleFilters for sets of another universe or seed. Cost: one pass over the bits of each.
    ///
    /// >>> from fullbloom import BitSet
    /// >>> a, b = BitSet(100), BitSet(100)
    /// >>> a.update([1, 2, 3]), b.update([3, 4])
    /// (None, None)
    /// >>> [n for n in range(100) if n in a - b], [n for n in range(100) if n in a ^ b]
    /// ([1, 2], [1, 2, 4])
    #[pyo3(signature = (*others: "Self") -> "Self")]
    fn difference(&self, others: &Bound<'_, PyTuple>) -> PyResult<Self> {
        self.combined("difference", others, Core::subtract)
    }

    /// Takes out the members of all others.
    #[pyo3(signature = (*others: "Self") -> "None")]
    fn difference_update(&self, others: &Bound<'_, PyTuple>) -> PyResult<()> {
        let (py, others) = (others.py(), operands::<Self>("difference_update", others)?);
        others.iter().try_for_each(|other| check(py, &self.lock, &other.get().lock))?;
        others.iter().try_for_each(|other| self.combine_into(other, Core::subtract))
    }

    /// A new set of what is in this set or in `other`, but not in both.
    #[pyo3(signature = (other: "Self") -> "Self")]
    fn symmetric_difference(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = crate::params::other::<BitSet>)] other: Py<Self>,
    ) -> PyResult<Self> {
        self.combined("symmetric_difference", &PyTuple::new(py, [other])?, Core::differ)
    }

    /// As symmetric_difference, in this set.
    #[pyo3(signature = (other: "Self") -> "None")]
    fn symmetric_difference_update(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = crate::params::other::<BitSet>)] other: Py<Self>,
    ) -> PyResult<()> {
        self.combine_into(other.bind(py), Core::differ)
    }

    fn __sub__(&self, other: &Bound<'_, Self>) -> PyResult<Self> {
        self.combined("difference", &PyTuple::new(other.py(), [other])?, Core::subtract)
    }

    fn __xor__(&self, other: &Bound<'_, Self>) -> PyResult<Self> {
        self.symmetric_difference(other.py(), other.clone().unbind())
    }

    fn __isub__(&self, other: &Bound<'_, Self>) -> PyResult<()> {
        self.combine_into(other, Core::subtract)
    }

    fn __ixor__(&self, other: &Bound<'_, Self>) -> PyResult<()> {
        self.combine_into(other, Core::differ)
    }
}
