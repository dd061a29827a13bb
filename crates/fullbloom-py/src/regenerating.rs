//! `regenerate`: the parameters of a filter that is to take the place of another.

use fullbloom_core::structure::declaration::Parameter;
use pyo3::prelude::*;

use crate::errors::parameter;
use crate::params;

/// What is asked of the new filter, and the one that tells the rest.
pub(crate) struct Asked<'a, 'py> {
    filter: &'a Bound<'py, PyAny>,
    parameters: &'static [Parameter],
    capacity: Option<&'a Bound<'py, PyAny>>,
    fpr: Option<&'a Bound<'py, PyAny>>,
}

/// The argument, unless it is None.
fn given<'a, 'py>(value: Option<&'a Bound<'py, PyAny>>) -> Option<&'a Bound<'py, PyAny>> {
    value.filter(|value| !value.is_none())
}

impl<'a, 'py> Asked<'a, 'py> {
    /// Refuses a rate where the class has none.
    pub(crate) fn of(
        filter: &'a Bound<'py, PyAny>,
        parameters: &'static [Parameter],
        capacity: Option<&'a Bound<'py, PyAny>>,
        fpr: Option<&'a Bound<'py, PyAny>>,
    ) -> PyResult<Self> {
        let (capacity, fpr) = (given(capacity), given(fpr));
        capacity.map(|capacity| params::whole("capacity", capacity, 1)).transpose()?;
        fpr.map(|fpr| params::real("fpr", fpr)).transpose()?;
        if fpr.is_some() && parameters.iter().all(|parameter| parameter.name != "fpr") {
            let class = filter.get_type().name()?;
            return Err(parameter(filter.py(), format!("a {class} has no fpr to choose; drop fpr")));
        }
        Ok(Asked { filter, parameters, capacity, fpr })
    }

    /// The value of the constructor's parameter `name`; `None` for its default. A number that a constructor need not be given
    /// follows from capacity and rate, now from others.
    pub(crate) fn value(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        match (name, self.capacity, self.fpr) {
            ("fpr", _, Some(fpr)) => return Ok(Some(fpr.clone())),
            ("fpr", _, None) => return self.filter.getattr("target_fpr").map(Some),
            ("capacity" | "initial_capacity", Some(capacity), _) => return Ok(Some(capacity.clone())),
            _ => {}
        }
        let follows = |parameter: &Parameter| parameter.name == name && parameter.python == "int | None";
        if self.parameters.iter().any(follows) {
            return Ok(None);
        }
        Ok(self.filter.getattr_opt(name)?.filter(|value| !value.is_callable()))
    }
}
