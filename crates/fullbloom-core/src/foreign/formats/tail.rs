//! [`Tail`]: what is in a file behind the bits.

use super::head::{Head, Shape};

/// What the head and the bytes behind the bits state together, and the number of the format if they are of another one.
/// Or which field is wrong.
type Finished = Result<(Head, Option<u16>), String>;

/// See the head of this file.
pub struct Tail {
    /// Bytes behind the bits.
    pub len: usize,
    /// Completes the head by the bytes behind the bits.
    pub finish: fn(head: Head, tail: &[u8]) -> Finished,
    /// The bytes behind the bits of a filter of this shape.
    pub write: fn(&Shape) -> Vec<u8>,
}

impl Tail {
    /// The most bytes behind the bits.
    pub const MOST: usize = 32;

    /// Nothing.
    pub const NONE: Tail = Tail { len: 0, finish: |head, _| Ok((head, None)), write: |_| Vec::new() };
}
