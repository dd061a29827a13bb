//! The options of a spec that are numbers.

use crate::fault::{Fault, Result};
use crate::kind::spec::Spec;

/// The number given as an option, or its default.
pub(super) fn number(spec: &Spec, name: &str, default: Option<u64>, most: u64) -> Result<u64> {
    let Some(text) = spec.option(name) else {
        return default.ok_or_else(|| Fault::invalid(format!("{name} is missing; give {name}=...")));
    };
    let number = text.parse().ok().filter(|&number| number <= most);
    number.ok_or_else(|| Fault::invalid(format!("{name} must be a whole number of at most {most}, got {text:?}")))
}
