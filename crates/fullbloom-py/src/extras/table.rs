//! What only `DLeftCountingFilter` and `QuotientFilter` have.

use fullbloom_core::table::{DLeftCountingFilter as DLeft, QuotientFilter as Quotient};
use pyo3::prelude::*;

use crate::classes::d_left::DLeftCountingFilter;
use crate::classes::quotient::QuotientFilter;
use crate::errors::OrRaise;

#[pymethods]
impl DLeftCountingFilter {
    /// Number of buckets with 0, 1, ... w cells in use, counted: O(nbytes).
    #[pyo3(signature = () -> "list[int]")]
    fn bucket_loads(&self, py: Python<'_>) -> Vec<u64> {
        self.lock.look(py, DLeft::bucket_loads)
    }
}

#[pymethods]
impl QuotientFilter {
    /// Doubles the slots, and with them the capacity, without the keys: one bit of every remainder
    /// moves to the quotient, and no answer changes.
    ///
    /// The rate at the new capacity is about twice that at the old one; target_fpr follows. Raises
    /// FilterFull when remainders have no bit left to give, FilterMemoryError, ReadOnlyFilter; then
    /// nothing has changed. Cost: one pass over the table.
    ///
    /// >>> from fullbloom import QuotientFilter
    /// >>> f = QuotientFilter(1000)
    /// >>> f.update(range(1000))
    /// >>> f.grow()
    /// >>> f.capacity, 999 in f
    /// (2000, True)
    #[pyo3(signature = () -> "None")]
    fn grow(&self, py: Python<'_>) -> PyResult<()> {
        self.lock.change(py, Quotient::grow).or_raise(py)
    }
}
