//! [`Job`]: what a batch does.

/// See the head of this file.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Job {
    /// Looks keys up, or counts them.
    Check,
    /// Adds keys, and returns which were new.
    Add,
    /// Adds keys.
    Update,
    /// Removes keys, and returns which were there.
    Discard,
}
