//! One Python object to the digest of another program's rule.

use fullbloom_core::foreign::bits::Hashing;
use fullbloom_core::foreign::rules::Digest;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::errors::{in_tree, key_type};
use crate::keys::{encoding, scalar};

/// The digest of an exact `str`, `bytes`, `float` or `int` of a type that the filter takes; runs no Python code.
///
/// # Safety
/// As [`scalar::hash_exact`].
#[inline(always)]
pub(super) unsafe fn digest_exact(hashing: &Hashing, object: *mut ffi::PyObject) -> Option<Digest> {
    // SAFETY: the caller's promise.
    unsafe { scalar::with_exact(object, |domain, bytes| hashing.digest(domain, bytes)).flatten() }
}

/// The digest of `key`.
#[inline]
pub(super) fn digest_key(hashing: &Hashing, key: &Bound<'_, PyAny>) -> PyResult<Digest> {
    // SAFETY: a live object.
    match unsafe { digest_exact(hashing, key.as_ptr()) } {
        Some(digest) => Ok(digest),
        None => digest_other(hashing, key).map_err(|error| in_tree(key.py(), error)),
    }
}

/// All parts of the digest of `key`.
pub(super) fn digest_parts(hashing: &Hashing, key: &Bound<'_, PyAny>, out: &mut [Digest]) -> PyResult<()> {
    // SAFETY: a live object.
    let exact = unsafe { scalar::with_exact(key.as_ptr(), |domain, bytes| hashing.digest_parts(domain, bytes, out)) };
    if exact == Some(true) {
        return Ok(());
    }
    let mut is_key = false;
    encoding::pass(key, &mut |domain, bytes| is_key = hashing.digest_parts(domain, bytes, out))
        .map_err(|error| in_tree(key.py(), error))?;
    if is_key {
        return Ok(());
    }
    let got = key.get_type().name().map_err(|error| in_tree(key.py(), error))?;
    Err(refuse(key.py(), hashing, &got.to_string()))
}

#[cold]
fn digest_other(hashing: &Hashing, key: &Bound<'_, PyAny>) -> PyResult<Digest> {
    let mut digest = None;
    encoding::pass(key, &mut |domain, bytes| {
        digest = hashing.digest(domain, bytes);
    })?;
    digest.ok_or_else(|| match key.get_type().name() {
        Ok(class) => refuse(key.py(), hashing, &class.to_string()),
        Err(error) => error,
    })
}

/// The error for a key of the type `got`.
#[cold]
pub(super) fn refuse(py: Python<'_>, hashing: &Hashing, got: &str) -> PyErr {
    let accepted = hashing.describe();
    key_type(py, format!("keys of this filter must be {accepted}; got {got}, or a value outside of that range"))
}
