//! What only `CompactApproximator` has: values.

use pyo3::prelude::*;

use super::pairs::pair_methods;
use crate::classes::compact::CompactApproximator;

pair_methods!(
    CompactApproximator,
    value,
    values,
    get,
    get_many,
    "The value of a key: never below the join of those added with it; the bottom when there was none."
);
