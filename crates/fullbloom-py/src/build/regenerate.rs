//! `regenerate`: the parameters of a filter that replaces another.

use fullbloom_core::structure::declaration::Parameter;
use pyo3::prelude::*;

use crate::errors::parameter;
use crate::parameters;

/// The parameters of the new filter: those that the caller gives, and the rest from the old filter.
pub(crate) struct NewParameters<'a, 'py> {
    filter: &'a Bound<'py, PyAny>,
    parameters: &'static [Parameter],
    capacity: Option<&'a Bound<'py, PyAny>>,
    fpr: Option<&'a Bound<'py, PyAny>>,
}

/// The argument, unless it is None.
fn not_none<'a, 'py>(value: Option<&'a Bound<'py, PyAny>>) -> Option<&'a Bound<'py, PyAny>> {
    value.filter(|value| !value.is_none())
}

impl<'a, 'py> NewParameters<'a, 'py> {
    /// Reads the arguments; refuses a rate if the class has no parameter for it.
    pub(crate) fn read(
        filter: &'a Bound<'py, PyAny>,
        parameters: &'static [Parameter],
        capacity: Option<&'a Bound<'py, PyAny>>,
        fpr: Option<&'a Bound<'py, PyAny>>,
    ) -> PyResult<Self> {
        let (capacity, fpr) = (not_none(capacity), not_none(fpr));
        capacity.map(|capacity| parameters::parse_whole("capacity", capacity, 1)).transpose()?;
        fpr.map(|fpr| parameters::real("fpr", fpr)).transpose()?;
        if fpr.is_some() && parameters.iter().all(|parameter| parameter.name != "fpr") {
            let class = filter.get_type().name()?;
            return Err(parameter(filter.py(), format!("a {class} has no fpr to choose; drop fpr")));
        }
        Ok(NewParameters { filter, parameters, capacity, fpr })
    }

    /// The value of the constructor's parameter `name`; `None` for its default. An optional number depends on capacity and
    /// rate, and is chosen again for the new ones.
    pub(crate) fn value(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        match (name, self.capacity, self.fpr) {
            ("fpr", _, Some(fpr)) => return Ok(Some(fpr.clone())),
            ("fpr", _, None) => return self.filter.getattr("target_fpr").map(Some),
            ("capacity" | "initial_capacity", Some(capacity), _) => return Ok(Some(capacity.clone())),
            _ => {}
        }
        let is_optional = |parameter: &Parameter| parameter.name == name && parameter.python == "int | None";
        if self.parameters.iter().any(is_optional) {
            return Ok(None);
        }
        Ok(self.filter.getattr_opt(name)?.filter(|value| !value.is_callable()))
    }
}
