//! Filters as operands: how a class merges another filter, and why some classes refuse to.

use fullbloom_core::registry;
use fullbloom_core::structure::{Filter, Loadable, Mergeable};
use pyo3::PyClass;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::{OrRaise, key_type, parameter_type};
use crate::files;
use crate::locking::biased_lock::BiasedLock;

/// A class as the second operand of its own kind.
pub(crate) trait TakeIn: PyClass {
    /// Merges all of `other`, or raises the reason why that is impossible.
    fn take_in(&self, py: Python<'_>, other: &Self) -> PyResult<()>;
}

/// The error of `update` for another filter of a class whose filters cannot be merged.
pub(crate) fn refuse_merge(py: Python<'_>, variant: u16) -> PyErr {
    let (class, merging) = registry::by_id(variant).map_or(("filter", ""), |row| (row.class, row.merging));
    key_type(
        py,
        format!(
            "a {class} cannot be merged with another (merging is {merging}); add the keys themselves to one filter"
        ),
    )
}

/// Reads other filters of the class `C`, the arguments of its method `name`.
pub(crate) fn read_operands<'py, C: PyClass>(name: &str, others: &Bound<'py, PyTuple>) -> PyResult<Vec<Bound<'py, C>>> {
    let class = others.py().get_type::<C>().name()?;
    let operand = |other: Bound<'py, PyAny>| {
        let found = other.get_type().name()?;
        let message = format!("{name}() takes filters of class {class}, got {found}; update() takes keys");
        other.cast_into::<C>().map_err(|_| parameter_type(others.py(), message))
    };
    others.iter().map(operand).collect()
}

/// Refuses `other` if it cannot be combined with the filter behind `lock`.
pub(crate) fn check<F: Mergeable>(py: Python<'_>, lock: &BiasedLock<F>, other: &BiasedLock<F>) -> PyResult<()> {
    lock.look_both(other, py, |a, b| a.check_compatible(b)).or_raise(py)
}

/// A copy to combine with others.
pub(crate) fn copy<F: Filter + Loadable>(py: Python<'_>, lock: &BiasedLock<F>) -> PyResult<F> {
    lock.look(py, files::copy).or_raise(py)
}

/// Combines the filter behind `lock` with another; one with itself does not change.
pub(crate) fn combine<F: Mergeable + Loadable>(
    py: Python<'_>,
    lock: &BiasedLock<F>,
    other: &BiasedLock<F>,
    combine: impl FnOnce(&mut F, &F) -> fullbloom_core::Result<()> + Send,
) -> PyResult<()> {
    if std::ptr::eq(lock, other) {
        return Ok(());
    }
    let combine = |a: &mut F, b: &F| {
        a.check_compatible(b)?;
        files::check_sound(b)?;
        combine(a, b)
    };
    lock.change_from(other, py, combine).or_raise(py)
}

/// How a class merges another filter, by its capabilities and how keys are added.
macro_rules! merge_by {
    ([merge $($more:ident)*] $Class:ident open [key value]) => {
        crate::classes::merging::merge_by!(@ $Class crate::classes::shared::merge_pairs);
    };
    ([merge $($more:ident)*] $Class:ident built $entry:tt) => {
        impl crate::classes::merging::TakeIn for $Class {
            fn take_in(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
                crate::classes::merging::combine(py, &self.lock, &other.lock, Mergeable::take_in)
            }
        }
    };
    ([merge $($more:ident)*] $Class:ident $when:ident $entry:tt) => {
        crate::classes::merging::merge_by!(@ $Class crate::classes::shared::merge);
    };
    (@ $Class:ident $merge:path) => {
        impl crate::classes::merging::TakeIn for $Class {
            fn take_in(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
                $merge(py, &self.lock, &other.lock, Mergeable::take_in)
            }
        }
    };
    ([$other:ident $($more:ident)*] $Class:ident $when:ident $entry:tt) => {
        crate::classes::merging::merge_by!([$($more)*] $Class $when $entry);
    };
    ([] $Class:ident $when:ident $entry:tt) => {
        impl crate::classes::merging::TakeIn for $Class {
            fn take_in(&self, py: Python<'_>, _: &Self) -> PyResult<()> {
                Err(crate::classes::merging::refuse_merge(py, VARIANT))
            }
        }
    };
}

/// Merging with filters of the same kind; `$merging` is what that means.
macro_rules! mergeable_methods {
    ($Class:ident, $merging:expr) => {
        #[pymethods]
        impl $Class {
            #[doc = concat!(
                "Merges another filter of this kind: ", $merging, ".\n\n",
                "Raises IncompatibleFilters, naming every field in which the two differ; then nothing changed.")]
            #[pyo3(signature = (other: "Self"))]
            fn merge(
                &self,
                py: Python<'_>,
                #[pyo3(from_py_with = crate::parameters::other::<$Class>)] other: Py<Self>,
            ) -> PyResult<()> {
                crate::classes::merging::TakeIn::take_in(self, py, other.get())
            }

            #[doc = concat!(
                "A new filter of this one and all others: ", $merging, ".\n\n",
                "num_added is an estimate where filters hold keys in common; `a | b` is the union of two. Raises\n",
                "IncompatibleFilters, naming every field in which two differ; warns CapacityWarning when the estimate,\n",
                "less three deviations, is above capacity.")]
            #[pyo3(signature = (*others: "Self") -> "Self")]
            fn union(&self, others: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<Self> {
                use crate::classes::merging;
                let (py, others) = (others.py(), merging::read_operands::<Self>("union", others)?);
                others.iter().try_for_each(|other| merging::check(py, &self.lock, &other.get().lock))?;
                let union = Self::wrap(merging::copy(py, &self.lock)?);
                others.iter().try_for_each(|other| merging::TakeIn::take_in(&union, py, other.get()))?;
                Ok(union)
            }

            fn __or__(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<Self> {
                slf.get().union(&pyo3::types::PyTuple::new(slf.py(), [other])?)
            }

            fn __ior__(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
                crate::classes::merging::TakeIn::take_in(self, py, other)
            }
        }
    };
}

pub(crate) use {merge_by, mergeable_methods};
