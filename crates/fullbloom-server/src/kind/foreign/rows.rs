//! The rows of the filters of `RedisBloom`, in the form of the registry: names and numbers are those of the table of formats.

use fullbloom_core::foreign::formats::redisbloom::{BLOOM, CUCKOO};
use fullbloom_core::registry::{FalseNegatives, Variant};

pub(in crate::kind) const ROW: Variant = Variant {
    id: BLOOM.contents.variant(),
    name: BLOOM.name,
    class: BLOOM.contents.class(),
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
        id: CUCKOO.contents.variant(),
        name: CUCKOO.name,
        class: CUCKOO.contents.class(),
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
