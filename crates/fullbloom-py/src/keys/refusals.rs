//! Errors for objects that are not keys, and for filters passed as keys.

use fullbloom_core::registry::{VARIANTS, Variant};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyString};

use crate::dataframes::queries;
use crate::errors::key_type;

const ACCEPTED: &str = "str, bytes, bytearray, memoryview, int, bool, float, decimal.Decimal, uuid.UUID, a date, time, \
                        datetime or timedelta, a scalar of NumPy or pandas, or a tuple of these";

/// What to pass instead of a key of a class, or of one derived from it.
const REMEDIES: &[(&str, &str)] = &[
    ("NoneType", "leave out what is missing, or pass a column with nulls, which are skipped"),
    ("NAType", "leave out what is missing, or pass a column with nulls, which are skipped"),
    ("NaTType", "leave out what is missing, or pass a column with nulls, which are skipped"),
    ("list", "pass tuple(key)"),
    ("dict", "pass tuple(sorted(key.items()))"),
    ("set", "pass tuple(sorted(key))"),
    ("frozenset", "pass tuple(sorted(key))"),
    ("complex", "pass (key.real, key.imag)"),
    ("Fraction", "pass (key.numerator, key.denominator)"),
    ("Enum", "pass key.value"),
    ("PurePath", "pass os.fspath(key)"),
    ("_IPAddressBase", "pass str(key)"),
    ("ndarray", "pass tuple(array.tolist())"),
    ("Period", "pass key.start_time"),
    ("Interval", "pass (key.left, key.right)"),
    ("pyarrow.lib.Scalar", "pass key.as_py()"),
];

/// The name of a class, with its module where it is not built in.
fn name(class: &Bound<'_, PyAny>) -> PyResult<String> {
    let (module, name) = (class.getattr("__module__")?.to_string(), class.getattr("__qualname__")?.to_string());
    Ok(if module == "builtins" { name } else { format!("{module}.{name}") })
}

/// The error for `key`, which has no canonical bytes.
#[cold]
pub(super) fn refuse_key(key: &Bound<'_, PyAny>) -> PyErr {
    let class = key.get_type();
    let shown = name(class.as_any()).unwrap_or_default();
    let bases = class.mro().iter().filter_map(|base| name(&base).ok()).collect::<Vec<_>>();
    let suits = |known: &str| bases.iter().any(|base| base == known || base.rsplit('.').next() == Some(known));
    let known = || REMEDIES.iter().find(|(known, _)| suits(known)).map(|(_, remedy)| *remedy);
    let remedy = queries::find_remedy(&class).or_else(known).map(|remedy| format!("; {remedy}"));
    key_type(key.py(), format!("a key must be {ACCEPTED}; got {shown}{}", remedy.unwrap_or_default()))
}

/// Refuses a batch that is one key: a text or bytes.
pub(crate) fn refuse_single(keys: &Bound<'_, PyAny>) -> PyResult<()> {
    if keys.is_instance_of::<PyString>() || keys.is_instance_of::<PyBytes>() || keys.is_instance_of::<PyByteArray>() {
        let name = keys.get_type().name()?;
        return Err(key_type(keys.py(), format!("a batch takes many keys, got one {name}; use add(), in, or [key]")));
    }
    Ok(())
}

/// Refuses a filter passed as keys.
pub(crate) fn refuse_filter(keys: &Bound<'_, PyAny>) -> PyResult<()> {
    let (py, class) = (keys.py(), keys.get_type());
    // The classes are final, so the name identifies them.
    if !class.getattr(intern!(py, "__module__"))?.eq(intern!(py, "fullbloom")).unwrap_or(false) {
        return Ok(());
    }
    let name = class.name()?;
    let row = VARIANTS.iter().find(|row| name == row.class);
    row.map_or(Ok(()), |row| Err(key_type(py, explain(row))))
}

/// Why a filter of the row `of` is not a batch of keys.
fn explain(of: &Variant) -> String {
    let class = of.class;
    let remedy = if of.capabilities.contains(&"merge") {
        format!("update() and merge() of a {class} take in another {class}")
    } else {
        format!("a {class} cannot be merged")
    };
    format!("a {class} is not a batch: its keys cannot be read out of it; pass the keys themselves ({remedy})")
}
