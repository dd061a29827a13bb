//! [`Head`]: the bytes before the bits.

use crate::foreign::rules::Seed;

/// What the bytes before the bits state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Their number.
    pub len: usize,
    /// k.
    pub num_hashes: u32,
    /// The seed, or each of them.
    pub seed: Seed,
    /// m.
    pub num_bits: u64,
}

/// The numbers of a filter that a head states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The seed, or each of them.
    pub seed: Seed,
    /// m.
    pub num_bits: u64,
    /// k.
    pub num_hashes: u32,
}

/// A big-endian number of 4 bytes at `at`.
pub(super) fn i32_at(head: &[u8], at: usize) -> Result<i32, String> {
    let bytes = head.get(at..).and_then(<[u8]>::first_chunk::<4>);
    bytes.map(|bytes| i32::from_be_bytes(*bytes)).ok_or_else(|| "it ends within its header".into())
}

/// The bits of a filter whose head of `len` bytes states `words` words, in a file of `file` bytes.
pub(super) fn parse_num_bits(words: i32, len: usize, file: u64) -> Result<u64, String> {
    let Some(count) = u64::try_from(words).ok().filter(|count| *count > 0) else {
        return Err(format!("its number of words is {words}"));
    };
    let (wanted, present) = (count * 8, file.saturating_sub(len as u64));
    if wanted != present {
        return Err(format!("it states {words} words, {wanted} bytes, and {present} bytes follow its header"));
    }
    Ok(count * 64)
}
