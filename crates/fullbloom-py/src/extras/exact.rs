//! What only `BitSet` has, being exact: differences; and only `ZoneFilter`: counters list their members.

use fullbloom_core::exact::{BitSet as Core, ZoneFilter as Zone};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::classes::bit_set::BitSet;
use crate::classes::merging::{check, combine, copy, read_operands};
use crate::classes::zone::ZoneFilter;
use crate::errors::OrRaise;
use crate::python_objects::lists;

type Combine = fn(&mut Core, &Core) -> fullbloom_core::Result<()>;

impl BitSet {
    /// Combines each of the others into a copy.
    fn combine_copy(&self, name: &str, others: &Bound<'_, PyTuple>, how: Combine) -> PyResult<Self> {
        let (py, others) = (others.py(), read_operands::<Self>(name, others)?);
        others.iter().try_for_each(|other| check(py, &self.lock, &other.get().lock))?;
        let copy = Self::wrap(copy(py, &self.lock)?);
        others.iter().try_for_each(|other| combine(py, &copy.lock, &other.get().lock, how))?;
        Ok(copy)
    }

    /// Combines `other` into this set; the set itself by a copy of it.
    fn combine_into(&self, other: &Bound<'_, Self>, how: Combine) -> PyResult<()> {
        let py = other.py();
        if !std::ptr::eq(self, other.get()) {
            return combine(py, &self.lock, &other.get().lock, how);
        }
        let copy = Self::wrap(copy(py, &self.lock)?);
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
        self.combine_copy("difference", others, Core::subtract)
    }

    /// Removes the members of all others.
    #[pyo3(signature = (*others: "Self") -> "None")]
    fn difference_update(&self, others: &Bound<'_, PyTuple>) -> PyResult<()> {
        let (py, others) = (others.py(), read_operands::<Self>("difference_update", others)?);
        others.iter().try_for_each(|other| check(py, &self.lock, &other.get().lock))?;
        others.iter().try_for_each(|other| self.combine_into(other, Core::subtract))
    }

    /// A new set of the members of this set or of `other` that are not in both.
    #[pyo3(signature = (other: "Self") -> "Self")]
    fn symmetric_difference(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = crate::parameters::other::<BitSet>)] other: Py<Self>,
    ) -> PyResult<Self> {
        self.combine_copy("symmetric_difference", &PyTuple::new(py, [other])?, Core::differ)
    }

    /// As symmetric_difference, in this set.
    #[pyo3(signature = (other: "Self") -> "None")]
    fn symmetric_difference_update(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = crate::parameters::other::<BitSet>)] other: Py<Self>,
    ) -> PyResult<()> {
        self.combine_into(other.bind(py), Core::differ)
    }

    fn __sub__(&self, other: &Bound<'_, Self>) -> PyResult<Self> {
        self.combine_copy("difference", &PyTuple::new(other.py(), [other])?, Core::subtract)
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

#[pymethods]
impl ZoneFilter {
    /// The members of a counting filter, ascending, each as often as it was added.
    ///
    /// Raises ParameterError if cells do not count, and if there are, or were, more than capacity members; FormatError if
    /// no members can leave such cells, after the removal of an absent member or in a damaged file. Cost: O(n k^2) for n members
    /// and k cells per key, some ms for 10 members of 2**32; the GIL is released.
    ///
    /// >>> from fullbloom import ZoneFilter
    /// >>> few = ZoneFilter(2, universe=1000, counting=True)
    /// >>> few.update([807, 249])
    /// >>> few.decode()
    /// [249, 807]
    #[pyo3(signature = () -> "list[int]")]
    fn decode<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let members = self.lock.detach(py, |session| session.read(Zone::decode)).or_raise(py)?;
        lists::create_ints(py, &members)
    }
}
