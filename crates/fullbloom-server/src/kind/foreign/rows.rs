//! Rows of these kinds, and what their options say.

use fullbloom_core::foreign::redisbloom::file;
use fullbloom_core::registry::{FalseNegatives, Variant};

use crate::fault::{Fault, Result};
use crate::kind::Spec;

const ROW: Variant = Variant {
    id: file::BLOOM,
    name: "redisbloom",
    class: "RedisBloomFilter",
    adds: "key",
    entry: &["key"],
    family: "foreign",
    capabilities: &["add", "grow"],
    stage: false,
    layouts: &[],
    ns: [0.0, 0.0],
    false_negatives: FalseNegatives::Never,
    merging: "",
    formula: "",
    paper: "",
    role: "",
    once: false,
    fixed: &[],
};

/// Their rows.
pub(super) static ROWS: [Variant; 2] = [
    ROW,
    Variant {
        id: file::CUCKOO,
        name: "redisbloom-cuckoo",
        class: "RedisBloomCuckooFilter",
        capabilities: &["add", "remove", "count", "grow"],
        false_negatives: FalseNegatives::OnMisuse,
        once: true,
        ..ROW
    },
];

/// The number of an option, or its default.
pub(super) fn number(spec: &Spec, name: &str, default: Option<u64>, most: u64) -> Result<u64> {
    let Some(text) = spec.option(name) else {
        return default.ok_or_else(|| Fault::invalid(format!("{name} is missing; give {name}=...")));
    };
    let number = text.parse().ok().filter(|&number| number <= most);
    number.ok_or_else(|| Fault::invalid(format!("{name} must be a whole number of at most {most}, got {text:?}")))
}

/// Refuses other options than these.
pub(super) fn check_options(spec: &Spec, known: &[&str]) -> Result<()> {
    match spec.options.iter().find(|(name, _)| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some((name, _)) => {
            let text = format!("a {} has no parameter {name:?}; it has {}", spec.kind, known.join(", "));
            Err(Fault::invalid(text))
        }
    }
}
