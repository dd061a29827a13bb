//! What only `ZoneFilter` has: counters list their members.

use fullbloom_core::exact::ZoneFilter as Core;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::classes::zone::ZoneFilter;
use crate::errors::OrRaise;
use crate::objects;

#[pymethods]
impl ZoneFilter {
    /// The members of a counting filter, ascending, each as often as it was added.
    ///
    /// Raises ParameterError where cells do not count, and where more than capacity members are, or were, in; FormatError where
    /// no members leave such cells, after what was not there was removed or in a damaged file. Cost: O(n k^2) for n members
    /// and k cells a key, some ms for 10 members of 2**32; the GIL is released.
    ///
    /// >>> from fullbloom import ZoneFilter
    /// >>> few = ZoneFilter(2, universe=1000, counting=True)
    /// >>> few.update([807, 249])
    /// >>> few.decode()
    /// [249, 807]
    #[pyo3(signature = () -> "list[int]")]
    fn decode<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let members = self.lock.detach(py, |session| session.read(Core::decode)).or_raise(py)?;
        objects::ints(py, &members)
    }
}
