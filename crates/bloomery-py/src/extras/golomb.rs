//! What only `GolombSet` has: its values in order.

use pyo3::prelude::*;

use crate::classes::golomb::GolombSet;
use crate::params;

/// Values that are decoded at a time: some 5 us.
const PAGE: usize = 1024;

#[pymethods]
impl GolombSet {
    /// The values of its keys from `first` on, ascending: whole numbers below universe, one for all keys that share it.
    ///
    /// A key of hash h has the value h * universe >> 64. Raises ParameterError, ParameterTypeError. Cost: that of half a
    /// block to find the first, then some 30 ns each; blocks are decoded as they come, also of a mapped file. What is
    /// merged meanwhile comes, too, where the values have not passed it.
    ///
    /// >>> from bloomery import GolombSet, hash_key
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
        params::whole("first", &value, 0).map(First)
    }
}

/// Values, a page at a time.
#[pyclass(module = "bloomery")]
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
