//! The rows of the filters of `RedisBloom`, in the form of the registry.

use fullbloom_core::foreign::redisbloom::file;
use fullbloom_core::registry::{FalseNegatives, Variant};

pub(in crate::kind) const ROW: Variant = Variant {
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

/// The row of this name.
pub(in crate::kind) fn by_name(name: &str) -> Option<&'static Variant> {
    ROWS.iter().find(|row| row.name == name)
}
