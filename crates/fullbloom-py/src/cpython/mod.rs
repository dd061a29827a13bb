//! CPython's objects read in place, past the stable ABI: only this module does so.
//!
//! | file | reads |
//! |---|---|
//! | `ints` | the value of an `int` of one or two digits |
//! | `texts` | the bytes of an ASCII `str` |
//! | `items` | the items of a list or a tuple |
//! | `conditions` | nothing: the conditions of these reads, of objects and of the interpreter |
//!
//! The stable ABI promises calls, not layouts. So nothing is read before [`learn`], at the first call that a
//! read would have saved, has found the running version among those whose headers were read ([`layout`]), the sizes that
//! the classes state of themselves as expected, and objects of known value to read as they should. If
//! anything differs, the documented calls remain; [`fast_paths`] returns which reads are in use.

mod conditions;
mod ints;
mod items;
mod texts;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use conditions::READABLE;
pub(crate) use conditions::require_main_interpreter;
pub(crate) use ints::value;
pub(crate) use items::Items;
pub(crate) use texts::ascii_bytes;

/// The layout of objects, as the headers of a version document it.
struct Layout {
    /// How an `int` counts its digits (`longobject.h`, `longintrepr.h`).
    tags: ints::Tags,
    /// Where the bytes of an ASCII `str` lie (`unicodeobject.h`).
    ascii_at: usize,
    /// Where the items of a tuple lie (`tupleobject.h`).
    tuple_at: usize,
}

/// The layout of CPython `version`, if its headers are known.
fn layout(version: (u8, u8)) -> Option<Layout> {
    let (tags, ascii_at, tuple_at) = match version {
        (3, 11) => (ints::SIZES, 48, 24),
        // The number of digits moves up by three bits of sign; `str` loses `wstr`.
        (3, 12 | 13) => (ints::SHIFTED, 40, 24),
        // The third of these bits marks small immortal numbers; a tuple keeps its hash.
        (3, 14 | 15) => (ints::FLAGGED, 40, 32),
        _ => return None,
    };
    Some(Layout { tags, ascii_at, tuple_at })
}

/// Finds out, once, how the running interpreter lays out its objects.
#[inline(always)]
pub(crate) fn learn(py: Python<'_>) {
    static LEARNT: PyOnceLock<()> = PyOnceLock::new();
    if READABLE && LEARNT.get(py).is_none() {
        LEARNT.get_or_init(py, || learn_now(py));
    }
}

/// Runs no other Python code; an error leaves the calls in use.
#[cold]
fn learn_now(py: Python<'_>) {
    let version = py.version_info();
    if let Some(layout) = layout((version.major, version.minor)) {
        ints::learn(py, layout.tags).unwrap_or_default();
        texts::learn(py, layout.ascii_at).unwrap_or_default();
        items::learn(py, layout.tuple_at).unwrap_or_default();
    }
}

/// Which objects are read in place on this interpreter; the others take CPython's documented calls, which return the same
/// keys more slowly.
#[pyfunction]
#[pyo3(signature = () -> "dict[str, bool]")]
pub(crate) fn fast_paths(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    learn(py);
    let paths = PyDict::new(py);
    paths.set_item("int value", ints::is_known())?;
    paths.set_item("ASCII bytes", texts::is_known())?;
    paths.set_item("list and tuple items", items::is_known())?;
    Ok(paths)
}
