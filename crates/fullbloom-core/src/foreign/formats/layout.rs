//! [`BitLayout`]: how the bits of a format are laid out, and which of them a key sets.

use super::head::{Head, Shape};
use super::order::Order;
use super::tail::Tail;
use crate::foreign::rules::Rule;

/// See the head of this file.
pub struct BitLayout {
    /// Which bits a key sets.
    pub rule: Rule,
    /// True if the bytes are the bits alone, which state no shape.
    pub is_bare: bool,
    /// True if filters have a seed.
    pub is_seeded: bool,
    /// num_bits is a multiple of this.
    pub bits_step: u64,
    /// The most bits of a filter.
    pub most_bits: u64,
    /// The most hashes of a filter.
    pub most_hashes: u32,
    /// The order of bytes.
    pub order: Order,
    /// Reads the head from the first bytes, [`Format::HEAD`](super::Format::HEAD) of them or all, of `len` in total; every
    /// length that it states is compared with `len`. Or which field is wrong.
    pub parse: fn(head: &[u8], len: u64) -> Result<Head, String>,
    /// The head of a filter of this shape.
    pub head: fn(&Shape) -> Vec<u8>,
    /// What is behind the bits.
    pub tail: Tail,
    /// num_bits and num_hashes of a new filter; `None` beyond the largest.
    pub size: fn(capacity: u64, fpr: f64) -> Option<(u64, u32)>,
}

impl BitLayout {
    /// [`BitLayout::parse`] of bits alone.
    pub(super) const BARE: fn(&[u8], u64) -> Result<Head, String> =
        |_, _| Err("its bytes are the bits alone; say num_bits and num_hashes".into());

    /// True if `len` bytes that begin with `head` are of this layout: what is behind the bits must fit, too, where it is at
    /// hand.
    pub(super) fn fits(&self, head: &[u8], len: u64) -> bool {
        let Ok(stated) = (self.parse)(head, len) else { return false };
        if self.tail.len == 0 || head.len() as u64 != len {
            return true;
        }
        let tail = head.len().checked_sub(self.tail.len).map(|at| (self.tail.finish)(stated, &head[at..]));
        matches!(tail, Some(Ok((_, None))))
    }
}
