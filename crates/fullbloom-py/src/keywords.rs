//! Keywords that a constructor does not have: which one was meant.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::parameter_type;

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

/// Refuses keywords that are not among `known`, naming the one that was meant.
pub(crate) fn none_unknown(class: &str, unknown: Option<&Bound<'_, PyDict>>, known: &[&str]) -> PyResult<()> {
    let Some((name, _)) = unknown.and_then(|unknown| unknown.iter().next()) else { return Ok(()) };
    let (py, name) = (name.py(), name.to_string());
    let remedy = match meant(&name, known) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("it takes {}", known.join(", ")),
    };
    Err(parameter_type(py, format!("{class}() got an unexpected keyword argument '{name}'; {remedy}")))
}

/// Refuses a call without a required argument, which names no other.
#[cold]
#[cfg(not(feature = "stubs"))]
pub(crate) fn missing(py: Python<'_>, class: &str, name: &str) -> PyErr {
    parameter_type(py, format!("{class}() missing 1 required argument: '{name}'"))
}

/// The name among `known` for which `name` stands: by another name, or by up to two slips.
fn meant<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let plain = name.to_lowercase();
    let is_alias = |(meant, others): &&(&str, &[&str])| *meant == plain || others.contains(&plain.as_str());
    if let Some((meant, _)) = ALIASES.iter().find(is_alias) {
        // A filter that grows has an initial one.
        let same = known.iter().find(|known| known.strip_prefix("initial_").unwrap_or(known) == *meant);
        if same.is_some() {
            return same.copied();
        }
    }
    let slips = |known: &&&'a str| slips(&plain, known);
    known.iter().min_by_key(slips).filter(|known| slips(known) <= known.len().div_ceil(3).min(2)).copied()
}

/// Characters to be put in, left out or changed to make one name the other; those of long names are not counted.
fn slips(one: &str, other: &str) -> usize {
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
    fn the_nearest_name_is_meant() {
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
            assert_eq!(meant(name, &known), expected, "{name}");
        }
        assert_eq!(meant(&"x".repeat(1000), &known), None);
        assert_eq!(meant("n", &["initial_capacity", "fpr"]), Some("initial_capacity"));
        assert_eq!(meant("capacity", &["initial_capacity", "fpr"]), Some("initial_capacity"));
    }
}
