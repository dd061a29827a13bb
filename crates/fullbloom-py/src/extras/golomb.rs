//! What only `GolombSet` has: its values in order.

use pyo3::prelude::*;

use fullbloom_core::static_filters::GolombSet as Core;
use fullbloom_core::structure::Filter;
use pyo3::types::PyTuple;

use crate::classes::golomb::GolombSet;
use crate::classes::merging;
use crate::errors::OrRaise;
use crate::parameters;

/// Values that are decoded at a time: some 5 us.
const PAGE: usize = 1024;

/// Keeps the values that both have. The keys of either set may have them, so the domains of both are recorded.
fn intersect(set: &mut Core, other: &Core) -> fullbloom_core::Result<()> {
    set.intersect(other)?;
    set.hasher_mut().domains_mut().join(other.hasher().domains());
    Ok(())
}

#[pymethods]
impl GolombSet {
    /// A new set of the values that this one and all others have: it holds every common key, and of the others those that
    /// each set finds, at the product of their rates. The bytes are those of the set of the common values.
    ///
    /// Raises IncompatibleFilters, naming every field in which two differ, as capacity. Cost: one pass over each, some 30
    /// ns a value, and one more to count.
    ///
    /// >>> from fullbloom import GolombSet
    /// >>> monday = GolombSet.build(["ada", "alan"], capacity=1000)
    /// >>> tuesday = GolombSet.build(["alan", "grace"], capacity=1000)
    /// >>> (monday & tuesday).num_added, "alan" in monday & tuesday, monday.intersection_count(tuesday)
    /// (1, True, 1)
    #[pyo3(signature = (*others: "Self") -> "Self")]
    fn intersection(&self, others: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let (py, others) = (others.py(), merging::read_operands::<Self>("intersection", others)?);
        others.iter().try_for_each(|other| merging::check(py, &self.lock, &other.get().lock))?;
        let common = Self::wrap(merging::copy(py, &self.lock)?);
        others.iter().try_for_each(|other| merging::combine(py, &common.lock, &other.get().lock, intersect))?;
        Ok(common)
    }

    fn __and__(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<Self> {
        slf.get().intersection(&PyTuple::new(slf.py(), [other])?)
    }

    fn __iand__(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
        merging::combine(py, &self.lock, &other.lock, intersect)
    }

    /// The number of values that both have, exactly: of common keys, and of about num_added * other.num_added / universe that
    /// chance brings together. Creates no set.
    #[pyo3(signature = (other: "Self"))]
    fn intersection_count(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = parameters::other::<GolombSet>)] other: Py<Self>,
    ) -> PyResult<u64> {
        self.lock.look_both(&other.get().lock, py, Core::intersection_count).or_raise(py)
    }

    /// True when the two have no value in common, and so no key.
    #[pyo3(signature = (other: "Self"))]
    fn isdisjoint(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = parameters::other::<GolombSet>)] other: Py<Self>,
    ) -> PyResult<bool> {
        self.intersection_count(py, other).map(|common| common == 0)
    }

    /// The values of its keys from `first` on, ascending: whole numbers below universe, one for all keys that share it.
    ///
    /// A key of hash h has the value h * universe >> 64. Raises ParameterError, ParameterTypeError. Cost: that of half a
    /// block to find the first, then some 30 ns each; blocks are decoded one at a time, also from a mapped
    /// file. A value that is merged in the meantime is returned, too, unless the iterator has passed it.
    ///
    /// >>> from fullbloom import GolombSet, hash_key
    /// >>> names = GolombSet.build(["ada", "alan", "grace"], capacity=100)
    /// >>> list(names.values()) == sorted(hash_key(n) * names.universe >> 64 for n in ["ada", "alan", "grace"])
    /// True
    /// >>> len(list(names.values(names.universe)))
    /// 0
    #[pyo3(signature = (first: "int" = First(0)) -> "Iterator[int]")]
    #[pyo3(text_signature = "($self, first=0)")]
    fn values(slf: &Bound<'_, Self>, first: First) -> Values {
        Values { set: slf.clone().unbind(), next: Some(first.0), page: Vec::new().into_iter() }
    }
}

/// `first=`.
struct First(u64);

impl<'py> FromPyObject<'_, 'py> for First {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        parameters::parse_whole("first", &value, 0).map(First)
    }
}

/// Values, a page at a time.
#[pyclass(module = "fullbloom")]
struct Values {
    set: Py<GolombSet>,
    /// The least value that was not decoded, if there can be one.
    next: Option<u64>,
    page: std::vec::IntoIter<u64>,
}

#[pymethods]
impl Values {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> Option<u64> {
        if let Some(value) = self.page.next() {
            return Some(value);
        }
        let (first, mut page) = (self.next?, Vec::with_capacity(PAGE));
        self.set.get().lock.read(py, |set| set.values_from(first, PAGE, &mut page));
        self.next = page.last().and_then(|last| last.checked_add(1));
        self.page = page.into_iter();
        self.page.next()
    }
}
