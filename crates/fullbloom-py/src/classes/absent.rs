//! [`AbsentMethod`]: a method that a class does not have, under a name that people look for.

use fullbloom_core::registry::VARIANTS;
use pyo3::prelude::*;

use crate::errors::absent_method;

/// Replaces a method that a class cannot have. Getting it raises AttributeError, from the class and its instances, so that
/// hasattr() returns False; the message says what to do instead. A `__getattr__` would cost each method call of the class a
/// lookup that is not cached.
#[pyclass(frozen, module = "fullbloom._core")]
pub(crate) struct AbsentMethod {
    class: &'static str,
    instead: fn() -> String,
}

impl AbsentMethod {
    /// `remove`, of classes that cannot remove keys.
    pub(crate) fn remove(class: &'static str) -> Self {
        let instead = || {
            let removes = VARIANTS.iter().filter(|row| row.is_open(&["key"]) && row.capabilities.contains(&"remove"));
            let names: Vec<&str> = removes.map(|row| row.class).collect();
            let others = "fullbloom.compose.WithRemovals removes from any filter, each key once";
            format!("remove keys; {} can, and {others}", names.join(", "))
        };
        AbsentMethod { class, instead }
    }

    /// `in`, of classes that answer only for the keys of a closed world.
    pub(crate) fn contains(class: &'static str) -> Self {
        let instead = || {
            "answer `in`, which is for any key; includes(key) and includes_many(keys) answer for the keys that it was built \
             from"
                .into()
        };
        AbsentMethod { class, instead }
    }
}

#[pymethods]
impl AbsentMethod {
    fn __get__(
        &self,
        py: Python<'_>,
        _instance: Option<&Bound<'_, PyAny>>,
        _owner: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        Err(absent_method(py, format!("a {} cannot {}", self.class, (self.instead)())))
    }
}
