//! [`AbsentMethod`]: a method that a class does not have, under a name by which people look for it.

use bloomery_core::registry::VARIANTS;
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;

/// Stands for `remove` in classes that take no keys out. Looking it up raises AttributeError, of the class as of its
/// instances, so that hasattr() says no; the message names the classes that can. A `__getattr__` would cost each
/// method call of the class a lookup that is not cached.
#[pyclass(frozen, module = "bloomery._core")]
pub(crate) struct AbsentMethod {
    pub(crate) class: &'static str,
}

#[pymethods]
impl AbsentMethod {
    fn __get__(&self, _instance: Option<&Bound<'_, PyAny>>, _owner: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let removes = VARIANTS.iter().filter(|row| row.adds == "key" && row.capabilities.contains(&"remove"));
        let names: Vec<&str> = removes.map(|row| row.class).collect();
        Err(PyAttributeError::new_err(format!(
            "a {} cannot remove keys; {} can, and bloomery.compose.WithRemovals removes from any filter, once a key",
            self.class,
            names.join(", ")
        )))
    }
}
