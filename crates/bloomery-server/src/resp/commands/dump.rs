//! To come.

use super::Command;

pub(super) const COMMANDS: &[Command] = &[];

/// Bytes of a filter on their way.
pub(in crate::resp) enum Transfer {
    /// None.
    None,
}
