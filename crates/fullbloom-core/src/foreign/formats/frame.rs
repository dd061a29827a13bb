//! [`Frame`]: what is in a file besides its head and bits.

use super::head::{Head, Shape};

/// What the head and the bytes behind the bits state together, and the number of the format if they are of another one.
/// Or which field is wrong.
type Finished = Result<(Head, Option<u16>), String>;

/// What is behind the bits, and what may be done with such bytes.
pub struct Frame {
    /// Bytes behind the bits.
    pub tail: usize,
    /// Completes the head by the bytes behind the bits.
    pub finish: fn(head: Head, tail: &[u8]) -> Finished,
    /// The bytes behind the bits of a filter of this shape.
    pub write: fn(&Shape) -> Vec<u8>,
    /// True if the first bytes and the length suffice to know such bytes.
    pub is_detected: bool,
    /// True if such bytes are written, too: a filter has all that its program records.
    pub is_written: bool,
}

impl Frame {
    /// The most bytes behind the bits.
    pub const MOST: usize = 32;

    /// Nothing but a head and bits.
    pub const HEAD: Frame = Frame {
        tail: 0,
        finish: |head, _| Ok((head, None)),
        write: |_| Vec::new(),
        is_detected: true,
        is_written: true,
    };
}
