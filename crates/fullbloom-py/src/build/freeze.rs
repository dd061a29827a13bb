//! `freeze`: a filter's keys as a static filter, under the same hash.

use fullbloom_core::key::KeyHasher;
use fullbloom_core::registry::{VARIANTS, Variant};
use pyo3::prelude::*;

use super::BuildOptions;
use crate::errors::parameter;
use crate::parameters;

/// The structures that are built from all their keys at once, for a rate.
fn static_filters() -> impl Iterator<Item = &'static Variant> {
    VARIANTS
        .iter()
        .filter(|row| row.is_built(&["key"]) && parameters::of_variant(row.id).iter().any(|p| p.name == "fpr"))
}

/// The class of a row, from the module at run time: every class can be frozen to it, so naming it here would be a circle.
fn class<'py>(py: Python<'py>, row: &Variant) -> PyResult<Bound<'py, PyAny>> {
    py.import("fullbloom._core")?.getattr(row.class)
}

/// Chooses the row that `kind` names, or the smallest for `keys` keys at a rate.
fn choose(py: Python<'_>, kind: &str, keys: u64, fpr: f64) -> PyResult<&'static Variant> {
    if kind != "auto" {
        return static_filters().find(|row| row.name == kind).ok_or_else(|| {
            let known: Vec<&str> = static_filters().map(|row| row.name).collect();
            parameter(py, format!("kind must be auto or one of {}, got {kind:?}", known.join(", ")))
        });
    }
    let (mut best, mut refused) = (None, None);
    for row in static_filters() {
        match class(py, row)?.call_method1("nbytes_for", (keys.max(1), fpr)).and_then(|nbytes| nbytes.extract::<u64>())
        {
            Ok(nbytes) if best.is_none_or(|(least, _)| nbytes < least) => best = Some((nbytes, row)),
            Ok(_) => {}
            // It does not support this rate; another may.
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    match (best, refused) {
        (Some((_, row)), _) => Ok(row),
        (None, Some(error)) => Err(error),
        (None, None) => Err(parameter(py, "this release has no static filters")),
    }
}

/// Builds a static filter of `keys` with the same hasher, which Python code never sees.
pub(crate) fn freeze<'py>(
    hasher: KeyHasher,
    kind: &str,
    keys: &Bound<'py, PyAny>,
    fpr: f64,
    options: &BuildOptions,
) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    choose(py, kind, 1, fpr)?;
    let (buffer, distinct) = options.collect_sorted(hasher, keys)?;
    let row = choose(py, kind, distinct, fpr)?;
    let keywords = options.keywords(py)?;
    keywords.set_item("fpr", fpr)?;
    class(py, row)?.call_method("build_hashed", (Bound::new(py, buffer)?,), Some(&keywords))
}
