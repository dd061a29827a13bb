//! What only `InvertibleBloomFilter` has: differences, and listing their keys.

use fullbloom_core::reconcile::InvertibleBloomFilter as Core;
use fullbloom_core::structure::Filter;
use pyo3::prelude::*;

use crate::classes::invertible::InvertibleBloomFilter;
use crate::classes::merging::{combine, copy};
use crate::errors::{OrRaise, parameter, parameter_type};
use crate::parameters::other;
use crate::reconcile::{Keys, SetDifference};

/// Removes the keys of `other`, whose domains are then among those of the difference.
fn subtract(table: &mut Core, other: &Core) -> fullbloom_core::Result<()> {
    table.subtract(other)?;
    table.hasher_mut().domains_mut().join(other.hasher().domains());
    Ok(())
}

impl InvertibleBloomFilter {
    /// A copy without the keys of `other`.
    fn without(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        let difference = Self::wrap(copy(py, &self.lock)?);
        combine(py, &difference.lock, &other.lock, subtract)?;
        Ok(difference)
    }
}

#[pymethods]
impl InvertibleBloomFilter {
    /// Removes the keys of another table, even if they are not in this one, which then holds the difference of both.
    ///
    /// Raises IncompatibleFilters for a table of another shape, seed or secret. Cost: one pass over the cells of both.
    #[pyo3(signature = (other: "Self") -> "None")]
    fn subtract(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = other::<InvertibleBloomFilter>)] other: Py<Self>,
    ) -> PyResult<()> {
        if !std::ptr::eq(self, other.get()) {
            return combine(py, &self.lock, &other.get().lock, subtract);
        }
        let copy = Self::wrap(copy(py, &self.lock)?);
        combine(py, &self.lock, &copy.lock, subtract)
    }

    fn __sub__(&self, other: &Bound<'_, Self>) -> PyResult<Self> {
        self.without(other.py(), other.get())
    }

    fn __isub__(&self, other: &Bound<'_, Self>) -> PyResult<()> {
        self.subtract(other.py(), other.clone().unbind())
    }

    /// Lists the keys: SetDifference(mine, theirs, complete), of a difference a - b those of a alone and those of b alone.
    ///
    /// Keys are their 64-bit hashes, ascending. numbers: the keys are ints of 64 bits, and are listed themselves; not with
    /// a secret. lookup: called with each hash, returns the key, or None to keep the hash.
    /// complete is False when the table holds more than it can list, or is damaged: those listed are right all the same,
    /// except in one of 2**32 cells that hold several keys. Raises ParameterError, FilterMemoryError, and what lookup raises. Cost:
    /// O(cells), some 50 ns per cell and 0.3 us per key.
    ///
    /// >>> from fullbloom import InvertibleBloomFilter, hash_key
    /// >>> table = InvertibleBloomFilter(10)
    /// >>> table.update(["ada", "alan"])
    /// >>> names = {hash_key(name): name for name in ["ada", "alan", "grace"]}
    /// >>> sorted(table.decode(lookup=names.get).mine)
    /// ['ada', 'alan']
    #[pyo3(signature = (
        *, numbers: "bool" = Flag(false), lookup: "Callable[[int], object] | None" = None
    ) -> "SetDifference")]
    #[pyo3(text_signature = "($self, *, numbers=False, lookup=None)")]
    fn decode(&self, py: Python<'_>, numbers: Flag, lookup: Option<&Bound<'_, PyAny>>) -> PyResult<SetDifference> {
        let lookup = lookup.filter(|lookup| !lookup.is_none());
        let keys = match (numbers.0, lookup) {
            (true, Some(_)) => return Err(parameter(py, "numbers and lookup exclude each other; give one of them")),
            (true, None) if self.hasher.is_keyed() => {
                return Err(parameter(
                    py,
                    "numbers=True must be False under a secret, whose hash has no inverse; give lookup=",
                ));
            }
            (true, None) => Keys::Numbers(&self.hasher),
            (false, None) => Keys::Hashes,
            (false, Some(lookup)) if lookup.is_callable() => Keys::Lookup(lookup),
            (false, Some(lookup)) => {
                let class = lookup.get_type().name()?;
                return Err(parameter_type(py, format!("lookup must be a function of a hash, or None, got {class}")));
            }
        };
        let decoded = self.lock.look(py, Core::decode).or_raise(py)?;
        SetDifference::new(py, &decoded, keys)
    }
}

/// `numbers=`.
struct Flag(bool);

impl<'py> FromPyObject<'_, 'py> for Flag {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        crate::parameters::flag("numbers", &value).map(Flag)
    }
}
