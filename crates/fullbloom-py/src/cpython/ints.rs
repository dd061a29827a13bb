//! The value of an `int` of one or two digits.
//!
//! The stable ABI's only way from an `int` to 64 bits walks the digits in 55 instructions, a third
//! of a whole `in` (170); reading them takes 8. Numbers below 1 or of more digits take the call.

use std::sync::atomic::{AtomicI64, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyInt;

use super::conditions::{READABLE, has_sizes};

/// Bits of a digit, which takes four bytes.
const BITS: u32 = 30;
/// Where an object states sign and number of digits: after its reference count and its class.
const TAG_AT: usize = 16;
const DIGITS_AT: usize = 24;

/// What an `int` above zero states if it has one digit, or two, or one and is immortal.
#[derive(Clone, Copy)]
pub(super) struct Tags {
    one: i64,
    two: i64,
    immortal: i64,
}

/// No tag of any object: its number of digits would not fit into memory.
const NEVER: i64 = i64::MIN;

/// The number of digits, negative below zero.
pub(super) const SIZES: Tags = Tags { one: 1, two: 2, immortal: NEVER };
/// 8 a digit, plus 0 above zero, 1 for zero, 2 below.
pub(super) const SHIFTED: Tags = Tags { one: 8, two: 16, immortal: NEVER };
/// The same, plus 4 for an immortal number; these have one digit.
pub(super) const FLAGGED: Tags = Tags { immortal: 8 + 4, ..SHIFTED };

/// The [`Tags`] of this interpreter. While they are not known, `TWO` is 0.
static TWO: AtomicI64 = AtomicI64::new(0);
static ONE: AtomicI64 = AtomicI64::new(NEVER);
static IMMORTAL: AtomicI64 = AtomicI64::new(NEVER);

pub(super) fn is_known() -> bool {
    TWO.load(Ordering::Relaxed) != 0
}

/// The value of `int`, if its layout is known and it has one or two digits and is above zero.
///
/// # Safety
/// `int` must be a live object whose class is exactly `int`.
#[inline(always)]
pub(crate) unsafe fn value(int: *mut ffi::PyObject) -> Option<i64> {
    let two = TWO.load(Ordering::Relaxed);
    if !READABLE || two == 0 {
        return None;
    }
    // SAFETY: the caller's promise; tags are known only once sizes and values have been checked.
    unsafe { value_as(two, || ONE.load(Ordering::Relaxed), || IMMORTAL.load(Ordering::Relaxed), int) }
}

/// [`value`] under these tags. Digits are read only where the object states that it has them.
///
/// # Safety
/// As [`value`], and objects of class `int` must have [`DIGITS_AT`] bytes before their digits.
#[inline(always)]
unsafe fn value_as(
    two: i64,
    one: impl Fn() -> i64,
    immortal: impl Fn() -> i64,
    int: *mut ffi::PyObject,
) -> Option<i64> {
    let base = int.cast::<u8>();
    // SAFETY: the object has these bytes by the caller's promise, at multiples of their size.
    unsafe {
        let tag = base.add(TAG_AT).cast::<i64>().read();
        let digits = base.add(DIGITS_AT).cast::<u32>();
        if tag == two {
            Some(i64::from(digits.read()) | i64::from(digits.add(1).read()) << BITS)
        } else if tag == one() || tag == immortal() {
            Some(i64::from(digits.read()))
        } else {
            None
        }
    }
}

/// Takes `tags` into use, if numbers of known value read as they should.
#[cold]
pub(super) fn learn(py: Python<'_>, tags: Tags) -> PyResult<()> {
    if !has_sizes(&py.get_type::<PyInt>(), DIGITS_AT, 4)? {
        return Ok(());
    }
    let reads = |number: i64| {
        let Ok(object) = number.into_pyobject(py);
        // SAFETY: the object is alive, of class `int`, whose sizes were checked.
        unsafe { value_as(tags.two, || tags.one, || tags.immortal, object.as_ptr()) }
    };
    let limit = 1i64 << (2 * BITS);
    let short = [1, 255, 256, 257, (1 << BITS) - 1, 1 << BITS, 0x0123_4567_89ab_cdef, limit - 1];
    let long = [limit, i64::MAX, 0, i64::MIN];
    if short.iter().all(|&number| reads(number) == Some(number) && reads(-number).is_none())
        && long.iter().all(|&number| reads(number).is_none())
    {
        ONE.store(tags.one, Ordering::Relaxed);
        IMMORTAL.store(tags.immortal, Ordering::Relaxed);
        TWO.store(tags.two, Ordering::Relaxed);
    }
    Ok(())
}
