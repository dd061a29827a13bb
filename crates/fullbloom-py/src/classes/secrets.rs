//! Secrets that `secret=True` drew: handed out once, and no file before that, as nobody could open it.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use fullbloom_core::key::KeyHasher;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::secret;

/// The fingerprints of those that were handed out: copies and unions of a filter have its secret.
static HANDED_OUT: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// Refuses to write a filter down whose secret nobody has.
pub(crate) fn check_kept(py: Python<'_>, hasher: &KeyHasher) -> PyResult<()> {
    if hasher.drawn_secret().is_none() {
        return Ok(());
    }
    let handed_out = HANDED_OUT.lock().unwrap_or_else(PoisonError::into_inner);
    if handed_out.contains(&hasher.secret_fingerprint()) {
        return Ok(());
    }
    let remedy = "keep what take_secret() returns first";
    Err(secret(py, format!("secret=True drew a secret that nobody has, so nobody could open the file; {remedy}")))
}

/// `take_secret()`.
pub(crate) fn take<'py>(py: Python<'py>, hasher: &KeyHasher) -> PyResult<Bound<'py, PyBytes>> {
    let Some(drawn) = hasher.drawn_secret() else {
        return Err(secret(py, "the filter has no secret of its own: only secret=True draws one when it is made"));
    };
    let mut handed_out = HANDED_OUT.lock().unwrap_or_else(PoisonError::into_inner);
    if !handed_out.insert(hasher.secret_fingerprint()) {
        return Err(secret(
            py,
            "the secret was handed out before, which is done once; use what take_secret() returned",
        ));
    }
    drop(handed_out);
    Ok(PyBytes::new(py, &drawn))
}
