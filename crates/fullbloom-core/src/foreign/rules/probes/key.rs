//! [`Key`]: what the positions of a key depend on.

use crate::foreign::rules::seed::Seed;
use crate::foreign::rules::walk::Range;

/// See the head of this file.
#[derive(Clone, Copy)]
pub(super) struct Key<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) seed: &'a Seed,
    pub(super) range: Range,
}
