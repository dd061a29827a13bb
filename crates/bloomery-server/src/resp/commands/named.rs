//! To come.

use super::Command;

pub(super) const COMMANDS: &[Command] = &[];
