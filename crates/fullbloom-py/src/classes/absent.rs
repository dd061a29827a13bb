//! [`AbsentMethod`]: a method that a class does not have, under a name by which people look for it.

use fullbloom_core::registry::VARIANTS;
use pyo3::prelude::*;

use crate::errors::absent_method;

/// Stands for a method that a class cannot have. Looking it up raises AttributeError, of the class as of its instances, so
/// that hasattr() says no; the message names what to do instead. A `__getattr__` would cost each method call of the class a
/// lookup that is not cached.
#[pyclass(frozen, module = "fullbloom._core")]
pub(crate) struct AbsentMethod {
    class: &'static str,
    instead: fn() -> String,
}

impl AbsentMethod {
    /// `remove`, of classes that take no keys out.
    pub(crate) fn remove(class: &'static str) -> Self {
        let instead = || {
            let removes = VARIANTS.iter().filter(|row| row.is_open(&["key"]) && row.capabilities.contains(&"remove"));
            let names: Vec<&str> = removes.map(|row| row.class).collect();
            let others = "fullbloom.compose.WithRemovals removes from any filter, once a key";
            format!("remove keys; {} can, and {others}", names.join(", "))
        };
        AbsentMethod { class, instead }
    }

    /// `in`, of classes that know of no keys but those of a closed world.
    pub(crate) fn contains(class: &'static str) -> Self {
        let instead = || {
            "answer `in`, which may be asked for any key; includes(key) and includes_many(keys) answer for the keys that it \
             was built of"
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
