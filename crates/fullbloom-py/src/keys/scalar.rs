//! One Python object to one hash. Exact `str`, `int`, `bytes` and `float` first: they are the hot path.

use fullbloom_core::key::{Domain, KeyHasher, float_bits};
use pyo3::ffi;
use pyo3::prelude::*;

use super::encoding;
use crate::{cpython, errors};

/// The hash of `key`.
#[inline(always)]
pub(crate) fn hash_key(hasher: &KeyHasher, key: &Bound<'_, PyAny>) -> PyResult<u64> {
    hash_key_in(hasher, key).map(|(hash, _)| hash)
}

/// The hash of `key`, and its domain.
#[inline(always)]
pub(crate) fn hash_key_in(hasher: &KeyHasher, key: &Bound<'_, PyAny>) -> PyResult<(u64, Domain)> {
    // SAFETY: a live object.
    match unsafe { hash_exact(hasher, key.as_ptr()) } {
        Some(hashed) => Ok(hashed),
        None => hash_other(hasher, key),
    }
}

/// The hash of an exact `str`, `bytes`, `float`, or `int` within 64 bits, and its domain; runs no Python code.
///
/// # Safety
/// `object` must be alive throughout, and the thread attached to the interpreter.
#[inline(always)]
pub(crate) unsafe fn hash_exact(hasher: &KeyHasher, object: *mut ffi::PyObject) -> Option<(u64, Domain)> {
    // SAFETY: the caller's promise; type objects are static; `str` and `bytes` keep their bytes, which do not
    // change, as long as they live.
    unsafe {
        if let Some(bytes) = cpython::ascii_bytes(object) {
            return Some((hasher.text(bytes), Domain::Text));
        }
        let class = ffi::Py_TYPE(object);
        if class == &raw mut ffi::PyUnicode_Type {
            hash_encoded(hasher, object).map(|hash| (hash, Domain::Text))
        } else if class == &raw mut ffi::PyLong_Type {
            hash_int(hasher, object).map(|hash| (hash, Domain::Integer))
        } else if class == &raw mut ffi::PyBytes_Type {
            let data = ffi::PyBytes_AsString(object);
            let len = ffi::PyBytes_Size(object);
            Some((hasher.text(std::slice::from_raw_parts(data.cast(), len as usize)), Domain::Text))
        } else if class == &raw mut ffi::PyFloat_Type {
            Some((hasher.float(ffi::PyFloat_AsDouble(object)), Domain::Float))
        } else {
            None
        }
    }
}

/// The hash of an exact `int` within 64 bits; runs no Python code.
///
/// # Safety
/// As [`hash_exact`].
#[inline(always)]
pub(super) unsafe fn hash_int(hasher: &KeyHasher, object: *mut ffi::PyObject) -> Option<u64> {
    // SAFETY: the caller's promise; type objects are static.
    unsafe {
        if ffi::Py_TYPE(object) != &raw mut ffi::PyLong_Type {
            return None;
        }
        let value = match cpython::value(object) {
            Some(value) => value,
            None => read_signed(object)?,
        };
        Some(hasher.hash_signed(value))
    }
}

/// The hash of a `str` by its UTF-8 bytes, which it keeps; `None` when it does not encode.
///
/// # Safety
/// `text` must be a live object of class `str`, and the thread attached.
#[inline(never)]
unsafe fn hash_encoded(hasher: &KeyHasher, text: *mut ffi::PyObject) -> Option<u64> {
    // SAFETY: the caller's promise.
    unsafe { get_utf8(text).map(|bytes| hasher.text(bytes)) }
}

/// The UTF-8 bytes of a `str`, which it keeps; `None` when it does not encode.
///
/// # Safety
/// `text` must be a live object of class `str` that outlives the answer, and the thread attached.
#[inline(always)]
unsafe fn get_utf8<'a>(text: *mut ffi::PyObject) -> Option<&'a [u8]> {
    let mut len = 0;
    // SAFETY: the caller's promise; a `str` keeps its UTF-8 bytes as long as it lives.
    unsafe {
        cpython::learn(Python::assume_attached());
        let data = ffi::PyUnicode_AsUTF8AndSize(text, &mut len);
        if data.is_null() {
            ffi::PyErr_Clear();
            return None;
        }
        Some(std::slice::from_raw_parts(data.cast(), len as usize))
    }
}

/// What `take` makes of the domain and the canonical bytes of an object that [`hash_exact`] hashes; `None` for others.
///
/// # Safety
/// As [`hash_exact`]; `take` must run no Python code.
#[inline(always)]
pub(crate) unsafe fn with_exact<R>(object: *mut ffi::PyObject, take: impl FnOnce(Domain, &[u8]) -> R) -> Option<R> {
    // SAFETY: as in `hash_exact`.
    unsafe {
        if let Some(bytes) = cpython::ascii_bytes(object) {
            return Some(take(Domain::Text, bytes));
        }
        let class = ffi::Py_TYPE(object);
        if class == &raw mut ffi::PyUnicode_Type {
            get_utf8(object).map(|bytes| take(Domain::Text, bytes))
        } else if class == &raw mut ffi::PyLong_Type {
            let value = match cpython::value(object) {
                Some(value) => value,
                None => read_signed(object)?,
            };
            Some(take(Domain::Integer, &value.to_le_bytes()))
        } else if class == &raw mut ffi::PyBytes_Type {
            let data = ffi::PyBytes_AsString(object);
            let len = ffi::PyBytes_Size(object);
            Some(take(Domain::Text, std::slice::from_raw_parts(data.cast(), len as usize)))
        } else if class == &raw mut ffi::PyFloat_Type {
            Some(take(Domain::Float, &float_bits(ffi::PyFloat_AsDouble(object)).to_le_bytes()))
        } else {
            None
        }
    }
}

/// The value of an exact `int` that is short enough to be read in place.
///
/// # Safety
/// `object` must be a live object.
#[inline(always)]
pub(crate) unsafe fn short_int(object: *mut ffi::PyObject) -> Option<i64> {
    // SAFETY: the object is alive; type objects are static; the class is compared first.
    unsafe { if ffi::Py_TYPE(object) == &raw mut ffi::PyLong_Type { cpython::value(object) } else { None } }
}

/// The value of an `int` within 64 bits.
///
/// # Safety
/// `int` must be a live object of class `int`, and the thread attached.
#[cold]
#[inline(never)]
unsafe fn read_signed(int: *mut ffi::PyObject) -> Option<i64> {
    let mut overflow = 0;
    // SAFETY: the caller's promise.
    let value = unsafe {
        cpython::learn(Python::assume_attached());
        ffi::PyLong_AsLongLongAndOverflow(int, &mut overflow)
    };
    (overflow == 0).then_some(value)
}

/// Everything else.
#[cold]
fn hash_other(hasher: &KeyHasher, key: &Bound<'_, PyAny>) -> PyResult<(u64, Domain)> {
    encoding::hash(hasher, key).map_err(|error| errors::in_tree(key.py(), error))
}
