//! Vectors whose length the input decides: where memory is short an error, never an abort.

use std::alloc::{Layout, alloc_zeroed};

use crate::error::{Error, Result};

/// The error for `bytes` that cannot be had.
#[cold]
pub fn short(bytes: usize) -> Error {
    Error::Memory(format!(
        "the input needs at least {bytes} bytes of memory, which cannot be had; give it in smaller parts"
    ))
}

/// Makes room in `vec` for `more` values; what grows step by step is moved seldom, as by `push`.
#[inline]
pub fn reserve<T>(vec: &mut Vec<T>, more: usize) -> Result<()> {
    vec.try_reserve(more).map_err(|_| short(vec.len().saturating_add(more).saturating_mul(size_of::<T>())))
}

/// Types of which all zero bits are a value.
///
/// # Safety
///
/// They are.
pub unsafe trait Zero: Copy {}
// SAFETY: a number.
unsafe impl Zero for u8 {}
// SAFETY: a number.
unsafe impl Zero for u64 {}

/// `len` zeros, zeroed by the allocator as by `vec!`.
pub fn zeroed<T: Zero>(len: usize) -> Result<Vec<T>> {
    let short = || short(len.saturating_mul(size_of::<T>()));
    let layout = Layout::array::<T>(len).map_err(|_| short())?;
    if layout.size() == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the layout is not empty.
    let start = unsafe { alloc_zeroed(layout) }.cast::<T>();
    if start.is_null() {
        return Err(short());
    }
    // SAFETY: from the global allocator with the layout of `len` values, all of which are zero.
    Ok(unsafe { Vec::from_raw_parts(start, len, len) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_had_is_an_error_that_names_the_bytes() {
        assert_eq!(zeroed::<u64>(3).unwrap(), [0; 3]);
        assert!(zeroed::<u8>(0).unwrap().is_empty());
        for len in [1 << 50, usize::MAX] {
            let bytes = len.saturating_mul(8).to_string();
            let refused = [zeroed::<u64>(len).err(), reserve(&mut Vec::<u64>::new(), len).err()];
            assert!(refused.iter().all(|error| error.as_ref().is_some_and(|e| e.to_string().contains(&bytes))));
        }
    }
}
