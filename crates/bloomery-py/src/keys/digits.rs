//! The value of an `int` of one or two digits, read from the object.
//!
//! The stable ABI's only way from an `int` to 64 bits walks the digits in 55 instructions, a third
//! of a whole `in` (170); reading them takes 8. The ABI does not promise where digits lie, so
//! [`learn`] finds out when the first number takes that way: it checks the sizes that `int` states of
//! itself, then reads numbers it knows. An interpreter that answers otherwise than expected keeps
//! the ABI's way, and so do numbers below 1 or of more digits.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyInt;

use super::has_sizes;

/// Bits of a digit, which takes four bytes.
const BITS: u32 = 30;
/// Where an object states sign and number of digits: after its reference count and its class.
const TAG_AT: usize = 16;
const DIGITS_AT: usize = 24;
/// No tag of any object: its number of digits would not fit into memory.
const NEVER: i64 = i64::MIN;

/// How an `int` above zero states one digit, and two.
#[derive(Clone, Copy)]
struct Tags {
    one: i64,
    two: i64,
}

/// CPython 3.11: the number of digits, negative for a number below zero.
const SIZES: Tags = Tags { one: 1, two: 2 };
/// CPython 3.12 and later: the number of digits times 8, plus 0 above zero, 1 for zero, 2 below.
const SHIFTED: Tags = Tags { one: 1 << 3, two: 2 << 3 };

static TRIED: AtomicBool = AtomicBool::new(false);
/// What [`learn`] found; written once.
static ONE: AtomicI64 = AtomicI64::new(NEVER);
static TWO: AtomicI64 = AtomicI64::new(NEVER);

/// The value of `int`, if the layout is known and it has one or two digits and is above zero.
///
/// # Safety
/// `int` must be a live object whose class is exactly `int`.
#[inline(always)]
pub(crate) unsafe fn short(int: *mut ffi::PyObject) -> Option<i64> {
    // SAFETY: the caller's promise; every `int` has its tag there.
    unsafe { short_as(|| TWO.load(Ordering::Relaxed), || ONE.load(Ordering::Relaxed), int) }
}

/// [`short`] for assumed tags. Digits are read only where the object states that it has them.
///
/// # Safety
/// `int` must be a live object of class `int`, with [`DIGITS_AT`] bytes before its digits.
#[inline(always)]
unsafe fn short_as(two: impl Fn() -> i64, one: impl Fn() -> i64, int: *mut ffi::PyObject) -> Option<i64> {
    let base = int.cast::<u8>();
    // SAFETY: the object has these bytes by the caller's promise, at multiples of their size.
    unsafe {
        let tag = base.add(TAG_AT).cast::<i64>().read();
        if tag == two() {
            let digits = base.add(DIGITS_AT).cast::<u32>();
            Some(i64::from(digits.read()) | i64::from(digits.add(1).read()) << BITS)
        } else if tag == one() {
            Some(i64::from(base.add(DIGITS_AT).cast::<u32>().read()))
        } else {
            None
        }
    }
}

/// Finds out, once, how the running interpreter lays out its numbers. Runs no Python code.
#[inline(always)]
pub(crate) fn learn(py: Python<'_>) {
    if !TRIED.swap(true, Ordering::Relaxed) {
        try_to_learn(py).unwrap_or_default();
    }
}

#[cold]
fn try_to_learn(py: Python<'_>) -> PyResult<()> {
    if !(cfg!(target_endian = "little") && has_sizes(&py.get_type::<PyInt>(), DIGITS_AT, 4)?) {
        return Ok(());
    }
    let tags = if py.version_info() >= (3, 12) { SHIFTED } else { SIZES };
    let limit = 1i64 << (2 * BITS);
    let short = [1, 255, 256, (1 << BITS) - 1, 1 << BITS, 0x0123_4567_89ab_cdef, limit - 1];
    let long = [limit, i64::MAX, 0, i64::MIN];
    let below = short.map(|number| -number);
    if short.iter().all(|&number| read(py, tags, number) == Some(number))
        && long.iter().chain(&below).all(|&number| read(py, tags, number).is_none())
    {
        ONE.store(tags.one, Ordering::Relaxed);
        TWO.store(tags.two, Ordering::Relaxed);
    }
    Ok(())
}

/// What is read from the object of `number`.
fn read(py: Python<'_>, tags: Tags, number: i64) -> Option<i64> {
    let Ok(object) = number.into_pyobject(py);
    // SAFETY: the object is alive, of class `int`, whose sizes `try_to_learn` has checked.
    unsafe { short_as(|| tags.two, || tags.one, object.as_ptr()) }
}
