//! What only `QuotientFilter` has.

use fullbloom_core::table::QuotientFilter as Core;
use pyo3::prelude::*;

use crate::classes::quotient::QuotientFilter;
use crate::errors::OrRaise;

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
        self.lock.change(py, Core::grow).or_raise(py)
    }
}
