//! What the methods of several classes share.

use fullbloom_core::Error;
use fullbloom_core::key::KeyDomains;
use fullbloom_core::labelled::valued::{Kind, Valued};
use fullbloom_core::structure::{Addable, Loadable, Removable, Value};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict};

use crate::errors::{OrRaise, convert};
use crate::files::{check_mapped, check_sound};
use crate::locking::biased_lock::BiasedLock;
use crate::operations::warnings::{count_excess, warn_if_overfull, warn_if_pairs_overfull, warn_overfull};
use crate::python_objects::bytes::Unwritten;

/// Adds one hash and warns if the filter is over capacity.
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
    // A full one may have to allocate or clear memory: a new stage, a new generation.
    let (added, overfull) = if lock.read(py, F::is_roomy) { lock.write(py, add) } else { lock.change(py, add) };
    if overfull {
        warn_overfull(py, lock, None)?;
    }
    added.or_raise(py)
}

/// The error of `remove` for an absent key.
pub(crate) fn absent(key: &Bound<'_, PyAny>) -> PyErr {
    // In a tuple of its own: Python takes a bare tuple for all arguments of the exception.
    PyKeyError::new_err((key.clone().unbind(),))
}

/// The note for a key that is still found after it could not be removed.
const STAYS: &str = "the key is found and stays: all its cells may be shared with others, which would be lost";

/// Removes one key; KeyError if it was certainly absent, or if it is found and cannot be removed, which a note says.
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

/// Merges the filter behind `other` into that behind `lock`, or a copy of itself if both are one; warns if it is over capacity.
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

/// [`merge`] for filters of pairs, for which a join with itself changes nothing.
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
    if count_excess(py, lock).is_none() { Ok(()) } else { warn_if_pairs_overfull(py, lock) }
}

/// A Python bool.
pub(crate) fn boolean(py: Python<'_>, value: bool) -> PyResult<Bound<'_, PyAny>> {
    Ok(PyBool::new(py, value).to_owned().into_any())
}

/// The filter as the bytes of its file, if it is sound.
pub(crate) fn to_bytes<'py, F: Loadable>(py: Python<'py>, lock: &BiasedLock<F>) -> PyResult<Bound<'py, PyBytes>> {
    let checked = |filter: &F| check_mapped(filter).map(|()| filter.container().nbytes());
    let mut len = lock.look(py, checked).or_raise(py)?;
    loop {
        let created = Unwritten::new(py, len)?;
        let needed = lock.look(py, |filter| {
            let (container, mut writer) = (filter.container(), created.writer());
            if container.nbytes() == len {
                container.write_with(&container.head()?, &mut writer).map_err(|e| Error::Io(e, "to_bytes".into()))?;
            }
            Ok(container.nbytes())
        });
        match needed.or_raise(py)? {
            needed if needed == len => return created.finish(py, true),
            // It has grown.
            needed => len = needed,
        }
    }
}

/// `bits()`. The container says how the cells of each class are arranged, so Python code unpacks those of all classes.
pub(crate) fn bits<'py, F: Loadable>(
    py: Python<'py>,
    class: &str,
    lock: &BiasedLock<F>,
    max_bytes: u64,
) -> PyResult<Bound<'py, PyAny>> {
    let nbytes = lock.read(py, F::nbytes);
    if nbytes > max_bytes {
        let (has, most) = (bytes_text(nbytes as f64), bytes_text(max_bytes as f64));
        let remedy = "give a larger max_bytes, or save() it for `fullbloom show`, which prints the fill of each region";
        let why =
            format!("bits() is for small filters: this {class} has {has} of cells, max_bytes is {most}; {remedy}");
        return Err(convert(py, Error::Memory(why)));
    }
    // Without a check of the secret: the bytes of the file do not leave this function.
    py.import("fullbloom.cells")?.call_method1("unpack_cells", (to_bytes(py, lock)?,))
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

/// One line for people: the capacity and rate it was sized for, how full it is, its rate now.
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
