//! Secrets that `secret=True` drew: each is returned once, and no file is written before.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use fullbloom_core::key::KeyHasher;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::secret;

/// The fingerprints of the secrets that take_secret() has returned: copies and unions of a filter share its secret.
static TAKEN: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// Refuses to write a filter whose secret the caller has not taken yet: nobody could open the file.
pub(crate) fn check_secret_taken(py: Python<'_>, hasher: &KeyHasher) -> PyResult<()> {
    if hasher.drawn_secret().is_none() {
        return Ok(());
    }
    let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    if taken.contains(&hasher.secret_fingerprint()) {
        return Ok(());
    }
    let remedy = "keep what take_secret() returns first";
    Err(secret(
        py,
        format!("secret=True drew a secret that was not taken yet, so the file could never be opened; {remedy}"),
    ))
}

/// `take_secret()`.
pub(crate) fn take_secret<'py>(py: Python<'py>, hasher: &KeyHasher) -> PyResult<Bound<'py, PyBytes>> {
    let Some(drawn) = hasher.drawn_secret() else {
        return Err(secret(py, "the filter has no secret of its own: only secret=True draws one when it is created"));
    };
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    if !taken.insert(hasher.secret_fingerprint()) {
        return Err(secret(py, "the secret is returned once only; use what take_secret() returned before"));
    }
    drop(taken);
    Ok(PyBytes::new(py, &drawn))
}
