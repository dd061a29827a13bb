//! Arguments from Python: values are read under their names, so that errors name them; unknown keywords are refused with the
//! parameter that was meant; and each constructor's parameters by the number of its row.

use fullbloom_core::bloom::Layout;
use fullbloom_core::key::KeyHasher;
use fullbloom_core::structure::Declared;
use fullbloom_core::structure::declaration::{self, choice};
use pyo3::PyClass;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyString};

use crate::errors::{OrRaise, parameter, parameter_type};

/// [`of_variant`], one arm per row.
macro_rules! parameters {
    ({} $({
        $ID:ident = $number:literal, $module:ident $name:literal, $family:ident::$Class:ident;
        $($rest:tt)*
    })*) => {
        /// The parameters of the constructor of structure `variant`; empty if this release has no such structure.
        pub(crate) fn of_variant(variant: u16) -> &'static [declaration::Parameter] {
            match variant {
                $($number => fullbloom_core::$family::$Class::PARAMETERS,)*
                _ => &[],
            }
        }
    };
}
fullbloom_core::variants!(parameters! {});

/// Describes `value` for an error: as Python writes it, if it does.
pub(crate) fn describe(value: &Bound<'_, PyAny>) -> String {
    if let Ok(text) = value.repr() {
        return text.to_string();
    }
    // Python writes no int of more than 4300 digits.
    let bits = value.cast::<PyInt>().ok().and_then(|int| int.call_method0("bit_length").ok());
    let class = value.get_type().name().map_or_else(|_| "object".into(), |name| name.to_string());
    bits.map_or_else(|| format!("a {class} that has no repr"), |bits| format!("an int of {bits} bits"))
}

fn is_whole(value: &Bound<'_, PyAny>) -> bool {
    !value.is_instance_of::<PyBool>()
        && (value.is_instance_of::<PyInt>() || value.hasattr("__index__").unwrap_or(false))
}

/// A whole number of at least `least`.
pub(crate) fn parse_whole(name: &str, value: &Bound<'_, PyAny>, least: u64) -> PyResult<u64> {
    let py = value.py();
    if !is_whole(value) {
        let remedy = if value.is_instance_of::<PyFloat>() { " (write int(...) around it)" } else { "" };
        return Err(parameter_type(py, format!("{name} must be a whole number{remedy}, got {}", describe(value))));
    }
    match value.extract::<u64>() {
        Ok(number) if number >= least => Ok(number),
        _ => Err(parameter(py, format!("{name} must be between {least} and 2**64 - 1, got {}", describe(value)))),
    }
}

/// [`whole`] of an argument that may be missing or None.
pub(crate) fn optional_whole(name: &str, value: Option<&Bound<'_, PyAny>>, least: u64) -> PyResult<Option<u64>> {
    value.filter(|value| !value.is_none()).map(|value| parse_whole(name, value, least)).transpose()
}

/// A number of probes.
pub(crate) fn num_hashes(value: &Bound<'_, PyAny>) -> PyResult<u32> {
    let number = parse_whole("num_hashes", value, 1)?;
    u32::try_from(number)
        .map_err(|_| parameter(value.py(), format!("num_hashes must be between 1 and 64, got {number}")))
}

/// A real number; the core checks its range.
pub(crate) fn real(name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    let py = value.py();
    let number = if value.is_instance_of::<PyBool>() || value.is_instance_of::<PyString>() {
        None
    } else {
        value.extract::<f64>().ok()
    };
    number.ok_or_else(|| parameter_type(py, format!("{name} must be a number, got {}", describe(value))))
}

/// True or False, and no other object that behaves like them.
pub(crate) fn flag(name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = value.py();
    match value.cast::<PyBool>() {
        Ok(flag) => Ok(flag.is_true()),
        Err(_) => Err(parameter_type(py, format!("{name} must be True or False, got {}", describe(value)))),
    }
}

/// A text, such as the name of a choice.
pub(crate) fn text<'a>(name: &str, value: &'a Bound<'a, PyAny>) -> PyResult<&'a str> {
    match value.cast::<PyString>() {
        Ok(text) => text.to_str(),
        Err(_) => Err(parameter_type(value.py(), format!("{name} must be a str, got {}", describe(value)))),
    }
}

/// The text of `mode=` of open.
pub(crate) fn mode<'a>(value: &'a Bound<'a, PyAny>) -> PyResult<&'a str> {
    text("mode", value)
}

/// The text of `verify=` of open.
pub(crate) fn verify<'a>(value: &'a Bound<'a, PyAny>) -> PyResult<&'a str> {
    text("verify", value)
}

/// Another filter of class `T`.
pub(crate) fn other<T: PyClass>(value: &Bound<'_, PyAny>) -> PyResult<Py<T>> {
    value.cast::<T>().map(|filter| filter.clone().unbind()).map_err(|_| {
        let py = value.py();
        let names = py.get_type::<T>().name().and_then(|wanted| Ok((wanted, value.get_type().name()?)));
        match names {
            Ok((wanted, class)) => parameter_type(py, format!("other must be a {wanted}, got {class}")),
            Err(error) => error,
        }
    })
}

/// The `fpr=` argument: an explicit None is an error, not the default.
pub(crate) struct Fpr(pub(crate) f64);

impl<'py> FromPyObject<'_, 'py> for Fpr {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        real("fpr", &value).map(Fpr)
    }
}

/// The `kind=` argument of freeze.
pub(crate) struct Kind(pub(crate) String);

impl Kind {
    /// Its default.
    pub(crate) fn auto() -> Self {
        Kind("auto".into())
    }
}

impl<'py> FromPyObject<'_, 'py> for Kind {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        text("kind", &value).map(|kind| Kind(kind.into()))
    }
}

/// A seed: any 64-bit whole number.
pub(crate) fn seed(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    parse_whole("seed", value, 0)
}

/// Threads: 1 and up.
pub(crate) fn threads(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    parse_whole("threads", value, 1).map(|n| usize::try_from(n).unwrap_or(usize::MAX))
}

/// A limit on bytes: 1 and up.
pub(crate) fn max_bytes(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    parse_whole("max_bytes", value, 1)
}

/// A layout by name; `None` for `auto`.
pub(crate) fn layout(value: &Bound<'_, PyAny>) -> PyResult<Option<Layout>> {
    choice("layout", text("layout", value)?, Layout::NAMES).or_raise(value.py())
}

/// Reads the 16 bytes of a secret that the caller has; `None` and `False` mean no secret. The value never appears in a
/// message.
pub(crate) fn secret(value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<[u8; 16]>> {
    let Some(value) = value.filter(|value| !value.is_none()) else { return Ok(None) };
    let py = value.py();
    if let Ok(flag) = value.cast::<PyBool>() {
        if !flag.is_true() {
            return Ok(None);
        }
        let remedy = "True draws another one when a filter is created, and take_secret() returns it";
        return Err(parameter_type(py, format!("secret must be the 16 bytes that were used; {remedy}")));
    }
    let Ok(bytes) = value.cast::<PyBytes>() else {
        let class = value.get_type().name()?;
        return Err(parameter_type(py, format!("secret must be 16 bytes, True or None, got {class}")));
    };
    <[u8; 16]>::try_from(bytes.as_bytes())
        .map(Some)
        .map_err(|_| parameter(py, format!("secret must be 16 bytes long, got {} bytes", bytes.as_bytes().len())))
}

/// Creates the key hasher of a new filter, for which `True` draws a secret from the system.
pub(crate) fn create_hasher(seed: u64, value: Option<&Bound<'_, PyAny>>) -> PyResult<KeyHasher> {
    let Some(value) = value.filter(|value| value.cast::<PyBool>().is_ok_and(|flag| flag.is_true())) else {
        return read_hasher(seed, value);
    };
    let drawn = value.py().import("secrets")?.call_method1("token_bytes", (16,))?;
    let drawn = secret(Some(&drawn))?;
    Ok(drawn.map_or_else(|| KeyHasher::seeded(seed), |secret| KeyHasher::with_drawn_secret(seed, &secret)))
}

/// Reads the key hasher for a seed and a secret that the caller has.
pub(crate) fn read_hasher(seed: u64, value: Option<&Bound<'_, PyAny>>) -> PyResult<KeyHasher> {
    Ok(match secret(value)? {
        None => KeyHasher::seeded(seed),
        Some(secret) => KeyHasher::keyed(seed, &secret),
    })
}

/// An argument as the caller passed it.
pub(crate) type Argument<'a> = &'a Bound<'a, PyAny>;

/// A parameter of a type that a declaration may name.
pub(crate) trait Parameter<'a>: Sized {
    /// Reads the argument `name`.
    fn read(name: &str, value: Argument<'a>) -> PyResult<Self>;
}

impl<'a> Parameter<'a> for u64 {
    fn read(name: &str, value: Argument<'a>) -> PyResult<Self> {
        parse_whole(name, value, 1)
    }
}

impl<'a> Parameter<'a> for f64 {
    fn read(name: &str, value: Argument<'a>) -> PyResult<Self> {
        real(name, value)
    }
}

impl<'a> Parameter<'a> for bool {
    fn read(name: &str, value: Argument<'a>) -> PyResult<Self> {
        flag(name, value)
    }
}

impl<'a> Parameter<'a> for &'a str {
    fn read(name: &str, value: Argument<'a>) -> PyResult<Self> {
        text(name, value)
    }
}

impl<'a, T: Parameter<'a>> Parameter<'a> for Option<T> {
    fn read(name: &str, value: Argument<'a>) -> PyResult<Self> {
        if value.is_none() { Ok(None) } else { T::read(name, value).map(Some) }
    }
}

/// One function per argument, which reads it under its name.
macro_rules! readers {
    ($($p:ident: $pt:tt;)*) => {
        $(pub(super) fn $p(
            value: crate::parameters::Argument<'_>,
        ) -> pyo3::PyResult<fullbloom_core::parameter_type!($pt)> {
            crate::parameters::Parameter::read(stringify!($p), value)
        })*
    };
}

pub(crate) use readers;

/// What other libraries call a parameter.
const ALIASES: &[(&str, &[&str])] = &[
    (
        "capacity",
        &[
            "n",
            "size",
            "items",
            "num_items",
            "max_items",
            "max_elements",
            "num_elements",
            "expected_items",
            "expected_elements",
            "expected_num_items",
            "expected_keys",
            "max_keys",
            "num_keys",
            "elements",
            "est_elements",
            "expected_insertions",
            "count",
            "length",
            "max_size",
            "initial_capacity",
        ],
    ),
    (
        "fpr",
        &[
            "p",
            "error",
            "error_rate",
            "err_rate",
            "fp_rate",
            "fp_prob",
            "false_positive_rate",
            "false_positive_probability",
            "epsilon",
            "eps",
            "max_fp_rate",
            "rate",
            "prob",
        ],
    ),
    ("num_hashes", &["k", "hashes", "hash_count", "num_hash", "hash_functions"]),
    ("num_bits", &["m", "bits", "size_in_bits"]),
    ("secret", &["key", "hash_key", "salt"]),
    ("seed", &["random_state", "hash_seed"]),
];

/// Refuses keywords that are not among `known` and suggests one that is.
pub(crate) fn refuse_unknown(class: &str, unknown: Option<&Bound<'_, PyDict>>, known: &[&str]) -> PyResult<()> {
    let Some((name, _)) = unknown.and_then(|unknown| unknown.iter().next()) else { return Ok(()) };
    let (py, name) = (name.py(), name.to_string());
    let remedy = match suggest(&name, known) {
        Some(known) => format!("did you mean `{known}`?"),
        None => format!("it takes {}", known.join(", ")),
    };
    Err(parameter_type(py, format!("{class}() got an unexpected keyword argument '{name}'; {remedy}")))
}

/// The error for a call without a required argument.
#[cold]
#[cfg(not(feature = "stubs"))]
pub(crate) fn missing_argument(py: Python<'_>, class: &str, name: &str) -> PyErr {
    parameter_type(py, format!("{class}() missing 1 required argument: '{name}'"))
}

/// The name among `known` that `name` probably means: by another name, or by up to two edits.
fn suggest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let plain = name.to_lowercase();
    let is_alias = |(parameter, others): &&(&str, &[&str])| *parameter == plain || others.contains(&plain.as_str());
    if let Some((parameter, _)) = ALIASES.iter().find(is_alias) {
        // A filter that grows has an initial one.
        let same = known.iter().find(|known| known.strip_prefix("initial_").unwrap_or(known) == *parameter);
        if same.is_some() {
            return same.copied();
        }
    }
    let edits = |known: &&&'a str| edit_distance(&plain, known);
    known.iter().min_by_key(edits).filter(|known| edits(known) <= known.len().div_ceil(3).min(2)).copied()
}

/// The number of characters to insert, delete or change to make one name the other; not counted for long names.
fn edit_distance(one: &str, other: &str) -> usize {
    if one.len() > 64 {
        return usize::MAX;
    }
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut before = row[0];
        row[0] = i + 1;
        for (j, &b) in other.iter().enumerate() {
            let changed = before + usize::from(a != b);
            before = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(before + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested() {
        let known = ["capacity", "fpr", "layout", "num_hashes", "seed", "secret"];
        for (name, expected) in [
            ("error_rate", Some("fpr")),
            ("fpt", Some("fpr")),
            ("Capacity", Some("capacity")),
            ("capasity", Some("capacity")),
            ("n", Some("capacity")),
            ("sead", Some("seed")),
            ("num_hash", Some("num_hashes")),
            ("expected_elements", Some("capacity")),
            ("m", None),
            ("callback", None),
            ("", None),
        ] {
            assert_eq!(suggest(name, &known), expected, "{name}");
        }
        assert_eq!(suggest(&"x".repeat(1000), &known), None);
        assert_eq!(suggest("n", &["initial_capacity", "fpr"]), Some("initial_capacity"));
        assert_eq!(suggest("capacity", &["initial_capacity", "fpr"]), Some("initial_capacity"));
    }
}
