//! What the stamped methods have in common.

use std::borrow::Cow;

use fullbloom_core::Error;
use fullbloom_core::cells::allocation::reserve;
use fullbloom_core::key::KeyDomains;
use fullbloom_core::labelled::valued::{Kind, Valued};
use fullbloom_core::structure::{Addable, Filter, Loadable, Removable, Value};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict};

use crate::biased_lock::BiasedLock;
use crate::errors::{self, OrRaise, Overfull, parameter_type};
use crate::files::{check_mapped, check_sound};
use crate::objects::{self, Unwritten};

/// Adds one hash and gives the warning when it is due.
#[inline(always)]
pub(crate) fn add_one<F: Addable>(
    py: Python<'_>,
    lock: &BiasedLock<F>,
    (hash, domains): (u64, KeyDomains),
) -> PyResult<bool> {
    let add = |filter: &mut F| {
        let added = filter.add_hash(hash);
        if added.is_ok() {
            filter.record(domains);
        }
        (added, filter.newly_overfull())
    };
    // One that has no room may have to make it, with memory to be cleared or had: a new stage, a new generation.
    let (added, overfull) = if lock.read(py, F::is_roomy) { lock.write(py, add) } else { lock.change(py, add) };
    if overfull {
        warn_overfull(py, lock, None)?;
    }
    added.or_raise(py)
}

/// Gives the warning that a filter holds more keys than it was sized for: `count`, or as many as were new. Cost: that of
/// the rate, O(nbytes) where cells are counted for it, once a filter.
#[cold]
pub(crate) fn warn_overfull<F: Filter>(py: Python<'_>, lock: &BiasedLock<F>, count: Option<u64>) -> PyResult<()> {
    let overfull = lock.look(py, |filter| Overfull {
        count: count.unwrap_or_else(|| filter.num_added()),
        capacity: filter.capacity(),
        fpr: filter.fpr(),
        target_fpr: filter.target_fpr(),
    });
    errors::warn_overfull(py, &overfull)
}

/// What `remove` raises for a key that is not there.
pub(crate) fn absent(key: &Bound<'_, PyAny>) -> PyErr {
    // In a tuple of its own: Python takes a bare tuple for all arguments of the exception.
    PyKeyError::new_err((key.clone().unbind(),))
}

/// Note for a key that is found after it could not be removed.
const STAYS: &str = "the key is found and stays: all its cells may be shared with others, which would be lost";

/// Removes one key; KeyError when it was certainly absent, or is found and cannot be taken out, which a note says.
pub(crate) fn remove_one<F: Removable>(lock: &BiasedLock<F>, hash: u64, key: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = key.py();
    if lock.write(py, |filter| filter.remove_hash(hash)).or_raise(py)? {
        return Ok(());
    }
    let error = absent(key);
    if lock.read(py, |filter| filter.contains_hash(hash)) {
        error.value(py).call_method1("add_note", (STAYS,))?;
    }
    Err(error)
}

/// The keys that a filter holds after others came in, of which num_added may be an estimate; `None` where they may fit
/// its capacity, which is within three deviations in 999 of 1000 filters that do.
fn beyond<F: Filter>(filter: &F) -> Option<u64> {
    let (count, capacity) = (filter.num_added(), filter.capacity());
    match filter.estimated() {
        Some((items, deviation)) if items.is_finite() => {
            (items - 3.0 * deviation > capacity as f64).then(|| items.round() as u64)
        }
        _ => (count > capacity).then_some(count),
    }
}

/// Gives the warning after keys came from another filter.
pub(crate) fn warn_if_overfull<F: Addable>(py: Python<'_>, lock: &BiasedLock<F>) -> PyResult<()> {
    if lock.read(py, |filter| filter.num_added() <= filter.capacity()) {
        return Ok(());
    }
    let Some(count) = lock.look(py, beyond) else { return Ok(()) };
    if lock.write(py, F::newly_overfull) { warn_overfull(py, lock, Some(count)) } else { Ok(()) }
}

/// Merges `other` into `biased_lock`, or a copy of itself where both are one, and gives the warning when due.
pub(crate) fn merge<F: Addable + Loadable>(
    py: Python<'_>,
    lock: &BiasedLock<F>,
    other: &BiasedLock<F>,
    combine: impl FnOnce(&mut F, &F) -> fullbloom_core::Result<()> + Send,
) -> PyResult<()> {
    if std::ptr::eq(lock, other) {
        let copy = lock.look(py, F::try_clone).or_raise(py)?;
        lock.change(py, |filter| combine(filter, &copy)).or_raise(py)?;
    } else {
        lock.change_from(other, py, |filter, other| check_sound(other).and_then(|()| combine(filter, other)))
            .or_raise(py)?;
    }
    warn_if_overfull(py, lock)
}

/// The warning for filters of pairs.
pub(crate) fn warn_if_pairs_overfull<V: Kind>(py: Python<'_>, lock: &BiasedLock<Valued<V>>) -> PyResult<()>
where
    Valued<V>: Filter,
{
    let newly = lock.write(py, Valued::newly_overfull);
    newly.map_or(Ok(()), |count| warn_overfull(py, lock, Some(count)))
}

/// [`merge`] for filters of pairs, where a join with itself changes nothing.
pub(crate) fn merge_pairs<V: Kind>(
    py: Python<'_>,
    lock: &BiasedLock<Valued<V>>,
    other: &BiasedLock<Valued<V>>,
    join: impl FnOnce(&mut Valued<V>, &Valued<V>) -> fullbloom_core::Result<()> + Send,
) -> PyResult<()>
where
    Valued<V>: Loadable,
{
    if !std::ptr::eq(lock, other) {
        lock.change_from(other, py, |filter, other| check_sound(other).and_then(|()| join(filter, other)))
            .or_raise(py)?;
    }
    let fits = lock.read(py, |filter| filter.num_added() <= filter.capacity());
    if fits || lock.look(py, beyond).is_none() { Ok(()) } else { warn_if_pairs_overfull(py, lock) }
}

/// A Python bool.
pub(crate) fn boolean(py: Python<'_>, value: bool) -> PyResult<Bound<'_, PyAny>> {
    Ok(PyBool::new(py, value).to_owned().into_any())
}

/// The bytes of a bytes-like object, borrowed from `bytes` and copied from the rest (which other
/// threads may change).
pub(crate) fn bytes_of<'a>(name: &str, data: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    if let Ok(bytes) = data.cast::<PyBytes>() {
        return Ok(Cow::Borrowed(bytes.as_bytes()));
    }
    let py = data.py();
    let buffer = pyo3::buffer::PyBuffer::<u8>::get(data).map_err(|error| {
        parameter_type(py, format!("{name} must be bytes, a bytearray or a memoryview of bytes ({})", error.value(py)))
    })?;
    let mut bytes = Vec::new();
    let len = buffer.item_count();
    reserve(&mut bytes, len).or_raise(py)?;
    if !buffer.is_c_contiguous() {
        bytes.resize(len, 0);
        buffer.copy_to_slice(py, &mut bytes)?;
        return Ok(Cow::Owned(bytes));
    }
    let start = buffer.buf_ptr() as usize;
    py.detach(|| {
        for at in (0..len).step_by(objects::LARGE) {
            // SAFETY: the buffer is contiguous, `len` bytes long, and stays where it is until it is given back below.
            // Bytes that another thread changes meanwhile are the old or the new ones.
            bytes.extend_from_slice(unsafe {
                std::slice::from_raw_parts((start as *const u8).wrapping_add(at), objects::LARGE.min(len - at))
            });
        }
    });
    drop(buffer);
    Ok(Cow::Owned(bytes))
}

/// The filter as the bytes of its file, if it is sound.
pub(crate) fn to_bytes<'py, F: Loadable>(py: Python<'py>, lock: &BiasedLock<F>) -> PyResult<Bound<'py, PyBytes>> {
    let checked = |filter: &F| check_mapped(filter).map(|()| filter.container().nbytes());
    let mut len = lock.look(py, checked).or_raise(py)?;
    loop {
        let made = Unwritten::new(py, len)?;
        let needed = lock.look(py, |filter| {
            let (container, mut room) = (filter.container(), made.room());
            if container.nbytes() == len {
                container.write_with(&container.head()?, &mut room).map_err(|e| Error::Io(e, "to_bytes".into()))?;
            }
            Ok(container.nbytes())
        });
        match needed.or_raise(py)? {
            needed if needed == len => return made.written(py, true),
            // It grew meanwhile.
            needed => len = needed,
        }
    }
}

/// `info()`.
pub(crate) fn info<'py>(class: &str, info: &[(&str, Value)], py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("class", class)?;
    for (name, value) in info {
        match value {
            Value::Number(n) => dict.set_item(name, n)?,
            Value::Real(x) => dict.set_item(name, x)?,
            Value::Text(text) => dict.set_item(name, text)?,
            Value::Flag(flag) => dict.set_item(name, flag)?,
            Value::Nothing => {}
        }
    }
    Ok(dict)
}

fn number(info: &[(&str, Value)], name: &str) -> f64 {
    match info.iter().find(|(n, _)| *n == name) {
        Some((_, Value::Number(n))) => *n as f64,
        Some((_, Value::Real(x))) => *x,
        _ => f64::NAN,
    }
}

/// A byte count with a unit.
fn bytes_text(bytes: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let step = ((bytes.max(1.0).log2() / 10.0) as usize).min(units.len() - 1);
    let value = bytes / 1024f64.powi(step as i32);
    if step == 0 { format!("{value:.0} B") } else { format!("{value:.1} {}", units[step]) }
}

/// One line a person can read: what it is for, how full it is, what it would answer wrongly now.
pub(crate) fn repr(class: &str, info: &[(&str, Value)]) -> String {
    let text = |name: &str| match info.iter().find(|(n, _)| *n == name) {
        Some((_, Value::Text(text))) => text.clone(),
        _ => String::new(),
    };
    let layout = match text("layout") {
        name if name.is_empty() => name,
        name => format!(", layout={name:?}"),
    };
    format!(
        "{class}(capacity={:.0}, fpr={}{layout}: {:.0} keys, {}, {:.1} % full, rate now {:.2e})",
        number(info, "capacity"),
        number(info, "target_fpr"),
        number(info, "num_added"),
        bytes_text(number(info, "nbytes")),
        100.0 * number(info, "fill"),
        number(info, "fpr"),
    )
}
