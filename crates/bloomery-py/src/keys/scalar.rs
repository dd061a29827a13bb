//! One Python object to one hash. Exact `str`, `int` and `bytes` first: they are the hot path.

use bloomery_core::key::{Domain, KeyHasher, float_bits, push_part};
use pyo3::exceptions::PyUnicodeEncodeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyFloat, PyInt, PyMemoryView, PyString, PyTuple};

use crate::cpython;
use crate::errors::key_type;

const ACCEPTED: &str = "str, bytes, bytearray, memoryview, int, bool, float, uuid.UUID, \
                        NumPy scalars, or a tuple of these";

/// The hash of `key`.
#[inline(always)]
pub(crate) fn hash_key(hasher: &KeyHasher, key: &Bound<'_, PyAny>) -> PyResult<u64> {
    // SAFETY: a live object.
    match unsafe { hash_exact(hasher, key.as_ptr()) } {
        Some(hash) => Ok(hash),
        None => hash_other(hasher, key),
    }
}

/// The hash of an exact `str`, `bytes`, or `int` within 64 bits; runs no Python code.
///
/// # Safety
/// `object` must be alive throughout, and the thread attached to the interpreter.
#[inline(always)]
pub(crate) unsafe fn hash_exact(hasher: &KeyHasher, object: *mut ffi::PyObject) -> Option<u64> {
    // SAFETY: the caller's promise; type objects are static; `str` and `bytes` keep their bytes, which do not
    // change, as long as they live.
    unsafe {
        if let Some(bytes) = cpython::ascii_bytes(object) {
            return Some(hasher.text(bytes));
        }
        let class = ffi::Py_TYPE(object);
        if class == &raw mut ffi::PyUnicode_Type {
            hash_encoded(hasher, object)
        } else if class == &raw mut ffi::PyLong_Type {
            let value = match cpython::value(object) {
                Some(value) => value,
                None => signed(object)?,
            };
            Some(hasher.signed(value))
        } else if class == &raw mut ffi::PyBytes_Type {
            let data = ffi::PyBytes_AsString(object);
            let len = ffi::PyBytes_Size(object);
            Some(hasher.text(std::slice::from_raw_parts(data.cast(), len as usize)))
        } else {
            None
        }
    }
}

/// The hash of a `str` by its UTF-8 bytes, which it keeps; `None` when it does not encode.
///
/// # Safety
/// `text` must be a live object of class `str`, and the thread attached.
#[inline(never)]
unsafe fn hash_encoded(hasher: &KeyHasher, text: *mut ffi::PyObject) -> Option<u64> {
    let mut len = 0;
    // SAFETY: the caller's promise; a `str` keeps its UTF-8 bytes as long as it lives.
    unsafe {
        cpython::learn(Python::assume_attached());
        let data = ffi::PyUnicode_AsUTF8AndSize(text, &mut len);
        if data.is_null() {
            ffi::PyErr_Clear();
            return None;
        }
        Some(hasher.text(std::slice::from_raw_parts(data.cast(), len as usize)))
    }
}

/// The value of an exact `int` that is short enough to be read where it lies.
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
unsafe fn signed(int: *mut ffi::PyObject) -> Option<i64> {
    let mut overflow = 0;
    // SAFETY: the caller's promise.
    let value = unsafe {
        cpython::learn(Python::assume_attached());
        ffi::PyLong_AsLongLongAndOverflow(int, &mut overflow)
    };
    (overflow == 0).then_some(value)
}

/// Everything else: through the canonical bytes.
#[cold]
fn hash_other(hasher: &KeyHasher, key: &Bound<'_, PyAny>) -> PyResult<u64> {
    let mut bytes = Vec::new();
    let domain = canonical(key, &mut bytes)?;
    Ok(hasher.bytes(domain, &bytes))
}

/// Appends the canonical bytes of `key` to `out` and tells its domain.
pub(crate) fn canonical(key: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> PyResult<Domain> {
    let py = key.py();
    if let Ok(text) = key.cast::<PyString>() {
        out.extend_from_slice(utf8(text)?.as_bytes());
        return Ok(Domain::Text);
    }
    if let Ok(bytes) = key.cast::<PyBytes>() {
        out.extend_from_slice(bytes.as_bytes());
        return Ok(Domain::Text);
    }
    if let Ok(int) = key.cast::<PyInt>() {
        push_int(int, out)?;
        return Ok(Domain::Integer);
    }
    if let Ok(float) = key.cast::<PyFloat>() {
        out.extend_from_slice(&float_bits(float.value()).to_le_bytes());
        return Ok(Domain::Float);
    }
    if let Ok(tuple) = key.cast::<PyTuple>() {
        return push_tuple(tuple, out);
    }
    if key.is_instance_of::<PyByteArray>() || key.is_instance_of::<PyMemoryView>() {
        let copy = key.py().get_type::<PyBytes>().call1((key,))?;
        out.extend_from_slice(copy.cast::<PyBytes>()?.as_bytes());
        return Ok(Domain::Text);
    }
    let class = key.get_type();
    let module = class.module().map(|m| m.to_string()).unwrap_or_default();
    let name = class.qualname().map(|n| n.to_string()).unwrap_or_default();
    if module == "uuid" && name == "UUID" {
        out.extend_from_slice(key.getattr("bytes")?.cast::<PyBytes>()?.as_bytes());
        return Ok(Domain::Text);
    }
    // Arrays have item() as well, and that of a date is an int in some units.
    let scalar = !key.hasattr("__array_finalize__")? && name != "datetime64" && name != "timedelta64";
    if module == "numpy" && scalar && key.hasattr("item")? && key.hasattr("dtype")? {
        let item = key.call_method0("item")?;
        if !item.get_type().is(&class) && !item.hasattr("dtype")? {
            return canonical(&item, out);
        }
    }
    let shown = if module == "builtins" { name } else { format!("{module}.{name}") };
    let remedy = match shown.as_str() {
        "numpy.ndarray" => "; pass tuple(array.tolist())",
        "numpy.datetime64" | "numpy.timedelta64" => "; pass key.astype(\"int64\")",
        _ => "",
    };
    Err(key_type(py, format!("a key must be {ACCEPTED}; got {shown}{remedy}")))
}

fn utf8<'a>(text: &'a Bound<'_, PyString>) -> PyResult<std::borrow::Cow<'a, str>> {
    text.to_cow().map_err(|error| {
        if error.is_instance_of::<PyUnicodeEncodeError>(text.py()) {
            let remedy = "a str key must encode to UTF-8, this one holds a lone surrogate; \
                          pass key.encode(\"utf-8\", \"surrogateescape\") instead";
            return key_type(text.py(), remedy);
        }
        error
    })
}

/// 8 bytes little-endian within the signed 64-bit range, else the shortest two's complement of 9
/// bytes or more: no two integers share an encoding.
fn push_int(int: &Bound<'_, PyInt>, out: &mut Vec<u8>) -> PyResult<()> {
    if let Ok(value) = int.extract::<i64>() {
        out.extend_from_slice(&value.to_le_bytes());
        return Ok(());
    }
    // int.bit_length of the value, or of its complement below zero, plus one bit for the sign.
    let py = int.py();
    let negative = int.lt(0)?;
    let magnitude = if negative { int.call_method0("__invert__")? } else { int.as_any().clone() };
    let bits: usize = magnitude.call_method0("bit_length")?.extract()?;
    let options = pyo3::types::PyDict::new(py);
    options.set_item("signed", true)?;
    let bytes = int.call_method("to_bytes", (bits / 8 + 1, "little"), Some(&options))?;
    out.extend_from_slice(bytes.cast::<PyBytes>()?.as_bytes());
    Ok(())
}

/// Tuples nest; Python's own recursion limit bounds how deep they were built, this how deep we go.
const DEEPEST: usize = 64;

fn push_tuple(tuple: &Bound<'_, PyTuple>, out: &mut Vec<u8>) -> PyResult<Domain> {
    fn parts(tuple: &Bound<'_, PyTuple>, depth: usize, out: &mut Vec<u8>) -> PyResult<()> {
        if depth > DEEPEST {
            return Err(key_type(tuple.py(), format!("a tuple key may nest {DEEPEST} levels, got more")));
        }
        for part in tuple.iter() {
            let mut bytes = Vec::new();
            let domain = match part.cast::<PyTuple>() {
                Ok(inner) => {
                    parts(inner, depth + 1, &mut bytes)?;
                    Domain::Tuple
                }
                Err(_) => canonical(&part, &mut bytes)?,
            };
            push_part(out, domain, &bytes);
        }
        Ok(())
    }
    parts(tuple, 1, out)?;
    Ok(Domain::Tuple)
}
