//! The bytes of an ASCII `str`.
//!
//! The stable ABI's way from a `str` to its bytes is a call; without it, an `in` takes 15 instead of 19 ns (1M
//! keys of 17 digits). Other texts take the call.

use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::conditions::READABLE;

/// Where an object states its number of characters: after its reference count and its class.
const LEN_AT: usize = 16;
/// Where it states how they are held: after its hash.
const STATE_AT: usize = 32;
/// "Compact" and "ascii", after two bits of being interned and three of kind.
const ASCII: u32 = 0b11 << 5;

/// The class of texts, null until their layout is known: one comparison proves that an object is a `str` and
/// that it may be read (a test of its own took 1 of 12 ns of an `in`).
static CLASS: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(std::ptr::null_mut());
/// Where ASCII bytes lie, once that is known.
static ASCII_AT: AtomicUsize = AtomicUsize::new(0);

pub(super) fn is_known() -> bool {
    !CLASS.load(Ordering::Relaxed).is_null()
}

/// The bytes of `object`, if it is exactly a `str`, the layout is known and they are ASCII.
///
/// # Safety
/// `object` must be a live object that outlives the answer, and the thread attached.
#[inline(always)]
pub(crate) unsafe fn ascii_bytes<'a>(object: *mut ffi::PyObject) -> Option<&'a [u8]> {
    // SAFETY: the object is alive; no class is null. The place was stored before the class, under the GIL.
    unsafe {
        if !READABLE || ffi::Py_TYPE(object) != CLASS.load(Ordering::Relaxed) {
            return None;
        }
        ascii_at(ASCII_AT.load(Ordering::Relaxed), object)
    }
}

/// [`ascii_bytes`] of a `str` if they lie at `at`. Bytes are read only where the object states that it has
/// them.
///
/// # Safety
/// `text` must be a live object of class `str` that outlives the answer, and such objects must have `at` bytes
/// before those of an ASCII text.
#[inline(always)]
unsafe fn ascii_at<'a>(at: usize, text: *mut ffi::PyObject) -> Option<&'a [u8]> {
    let base = text.cast::<u8>();
    // SAFETY: the object has these bytes by the caller's promise, at multiples of their size.
    unsafe {
        let state = base.add(STATE_AT).cast::<u32>().read();
        if state & ASCII != ASCII {
            return None;
        }
        let len = base.add(LEN_AT).cast::<usize>().read();
        Some(std::slice::from_raw_parts(base.add(at), len))
    }
}

/// Takes the place `at` into use, if texts of known value read as they should.
#[cold]
pub(super) fn learn(py: Python<'_>, at: usize) -> PyResult<()> {
    // An empty text is what precedes the bytes, and the zero that ends them.
    let empty: usize = PyString::new(py, "").call_method0("__sizeof__")?.extract()?;
    if empty != at + 1 {
        return Ok(());
    }
    let reads = |text: &str| {
        let object = PyString::new(py, text);
        // SAFETY: the object is alive, of class `str`, and no smaller than an empty one, whose size was
        // checked; it outlives the comparison. The length is compared first.
        unsafe { ascii_at(at, object.as_ptr()) }.map(|read| read.len() == text.len() && read == text.as_bytes())
    };
    let long = "0123456789abcdef".repeat(20);
    let ascii = ["", "a", "\0", "ada", "\u{7f}", "a key of more than a word", &long];
    let other = ["\u{80}", "é", "adé", "ключ", "鍵", "\u{1f511}", "a key and a \u{1f511}"];
    if ascii.iter().all(|text| reads(text) == Some(true)) && other.iter().all(|text| reads(text).is_none()) {
        ASCII_AT.store(at, Ordering::Relaxed);
        CLASS.store(&raw mut ffi::PyUnicode_Type, Ordering::Relaxed);
    }
    Ok(())
}
