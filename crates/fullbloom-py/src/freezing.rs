//! `freeze`: a filter's keys as a static filter, under the same hash.

use fullbloom_core::key::KeyHasher;
use fullbloom_core::registry::{VARIANTS, Variant};
use pyo3::prelude::*;

use crate::building::How;
use crate::errors::parameter;
use crate::parameters;

/// The structures that are made of all their keys at once, for a rate.
fn statics() -> impl Iterator<Item = &'static Variant> {
    VARIANTS.iter().filter(|row| row.is_built(&["key"]) && parameters::of(row.id).iter().any(|p| p.name == "fpr"))
}

/// The class of a row. It is asked of the module: every class can be frozen to it, so that to name it here would be a
/// circle.
fn class<'py>(py: Python<'py>, row: &Variant) -> PyResult<Bound<'py, PyAny>> {
    py.import("fullbloom._core")?.getattr(row.class)
}

/// The row that `kind` names, or the smallest for so many keys at a rate.
fn chosen(py: Python<'_>, kind: &str, keys: u64, fpr: f64) -> PyResult<&'static Variant> {
    if kind != "auto" {
        return statics().find(|row| row.name == kind).ok_or_else(|| {
            let known: Vec<&str> = statics().map(|row| row.name).collect();
            parameter(py, format!("kind must be auto or one of {}, got {kind:?}", known.join(", ")))
        });
    }
    let (mut best, mut refused) = (None, None);
    for row in statics() {
        match class(py, row)?.call_method1("nbytes_for", (keys.max(1), fpr)).and_then(|nbytes| nbytes.extract::<u64>())
        {
            Ok(nbytes) if best.is_none_or(|(least, _)| nbytes < least) => best = Some((nbytes, row)),
            Ok(_) => {}
            // Of this rate it has none; another may.
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    match (best, refused) {
        (Some((_, row)), _) => Ok(row),
        (None, Some(error)) => Err(error),
        (None, None) => Err(parameter(py, "this release has no static filters")),
    }
}

/// A static filter of `keys` that hashes as `hasher` does, which stays in here.
pub(crate) fn freeze<'py>(
    hasher: KeyHasher,
    kind: &str,
    keys: &Bound<'py, PyAny>,
    fpr: f64,
    how: &How,
) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    chosen(py, kind, 1, fpr)?;
    let (gathering, distinct) = how.gathered(hasher, keys)?;
    let row = chosen(py, kind, distinct, fpr)?;
    let options = how.keywords(py)?;
    options.set_item("fpr", fpr)?;
    class(py, row)?.call_method("build_hashed", (Bound::new(py, gathering)?,), Some(&options))
}
