//! The letters of an ASCII `str`, read from the object.
//!
//! The stable ABI's way from a `str` to its bytes is a call; without it, an `in` takes 15 instead of 19 ns (1M
//! keys of 17 digits). The ABI does not promise where letters lie, so [`learn`] finds out when the first `str`
//! takes that way: it asks an empty one for its size, then reads texts it knows. An interpreter that answers
//! otherwise than expected keeps the ABI's way, and so do texts of other letters.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Where an object states its number of letters: after its reference count and its class.
const LEN_AT: usize = 16;
/// Where it states how they are held: after its hash.
const STATE_AT: usize = 32;
/// Where letters lie at the earliest, a 32-bit state being followed by 4 bytes or more.
const LETTERS_FROM: usize = STATE_AT + 8;

/// How objects hold ASCII letters.
#[derive(Clone, Copy)]
struct Layout {
    /// Bits of the state, all of which are set.
    flags: u32,
    letters_at: u32,
}

/// No state has all bits set.
const UNKNOWN: Layout = Layout { flags: u32::MAX, letters_at: 0 };

impl Layout {
    const fn pack(self) -> u64 {
        self.flags as u64 | (self.letters_at as u64) << 32
    }

    const fn unpack(packed: u64) -> Self {
        Layout { flags: packed as u32, letters_at: (packed >> 32) as u32 }
    }
}

static TRIED: AtomicBool = AtomicBool::new(false);
/// What [`learn`] found; written once.
static FOUND: AtomicU64 = AtomicU64::new(UNKNOWN.pack());

/// The bytes of `text`, if the layout is known and they are ASCII.
///
/// # Safety
/// `text` must be a live object whose class is exactly `str`, and outlive the answer.
#[inline(always)]
pub(crate) unsafe fn ascii<'a>(text: *mut ffi::PyObject) -> Option<&'a [u8]> {
    // SAFETY: the caller's promise.
    unsafe { ascii_as(Layout::unpack(FOUND.load(Ordering::Relaxed)), text) }
}

/// [`ascii`] for an assumed layout. Letters are read only where the object states that it has them.
///
/// # Safety
/// `text` must be a live object of class `str`, of [`LETTERS_FROM`] bytes at least, and outlive the answer.
#[inline(always)]
unsafe fn ascii_as<'a>(layout: Layout, text: *mut ffi::PyObject) -> Option<&'a [u8]> {
    let base = text.cast::<u8>();
    // SAFETY: the object has these bytes by the caller's promise, at multiples of their size.
    unsafe {
        let state = base.add(STATE_AT).cast::<u32>().read();
        if layout.flags & !state != 0 {
            return None;
        }
        let len = base.add(LEN_AT).cast::<usize>().read();
        Some(std::slice::from_raw_parts(base.add(layout.letters_at as usize), len))
    }
}

/// Finds out, once, how the running interpreter lays out its texts. Runs no Python code.
#[inline(always)]
pub(crate) fn learn(py: Python<'_>) {
    if !TRIED.load(Ordering::Relaxed) && !TRIED.swap(true, Ordering::Relaxed) {
        try_to_learn(py).unwrap_or_default();
    }
}

#[cold]
fn try_to_learn(py: Python<'_>) -> PyResult<()> {
    // An empty text is what precedes the letters, and the zero that ends them.
    let empty: usize = PyString::new(py, "").call_method0("__sizeof__")?.extract()?;
    if !(cfg!(target_endian = "little") && size_of::<usize>() == 8 && (LETTERS_FROM + 1..=64).contains(&empty)) {
        return Ok(());
    }
    let long = "0123456789abcdef".repeat(20);
    let held = ["", "a", "\0", "ada", "\u{7f}", "a key of more than a word", &long];
    let not_held = ["\u{80}", "é", "adé", "ключ", "鍵", "\u{1f511}", "a key and a \u{1f511}"];
    // "compact" and "ascii" come after three bits of kind, and two or sixteen of being interned.
    for flags in [0b11 << 5, 0b11 << 19] {
        let layout = Layout { flags, letters_at: empty as u32 - 1 };
        if held.iter().all(|text| reads(py, layout, text)) && !not_held.iter().any(|text| is_ascii(py, layout, text)) {
            FOUND.store(layout.pack(), Ordering::Relaxed);
            break;
        }
    }
    Ok(())
}

/// Whether the flags of the object of `text` say that it holds ASCII.
fn is_ascii(py: Python<'_>, layout: Layout, text: &str) -> bool {
    let object = PyString::new(py, text);
    // SAFETY: the object is alive, of class `str`, and larger than an empty one, whose size was checked.
    unsafe { ascii_as(layout, object.as_ptr()) }.is_some()
}

/// Whether `text` is what is read from its object.
fn reads(py: Python<'_>, layout: Layout, text: &str) -> bool {
    let object = PyString::new(py, text);
    let stated = object.len().ok();
    // SAFETY: as in `is_ascii`; the object outlives the comparison. The length is compared before the letters,
    // and they lie inside an object that states this length and the size of an empty one before it.
    let read = unsafe { ascii_as(layout, object.as_ptr()) };
    stated == Some(text.len()) && read.is_some_and(|read| read.len() == text.len() && read == text.as_bytes())
}
