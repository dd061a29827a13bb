//! Vectors whose length the input decides: an error if memory is short, never an abort.

use crate::error::{Error, Result};

/// The error for `bytes` that cannot be had.
#[cold]
pub fn short(bytes: usize) -> Error {
    Error::Memory(format!(
        "the input needs at least {bytes} bytes of memory, which cannot be had; give it in smaller parts"
    ))
}

/// Reserves capacity in `vec` for `more` values; growth in small steps is amortised, as by `push`.
#[inline]
pub fn reserve<T>(vec: &mut Vec<T>, more: usize) -> Result<()> {
    vec.try_reserve(more).map_err(|_| short(vec.len().saturating_add(more).saturating_mul(size_of::<T>())))
}

/// `len` zeros.
pub fn zeroed<T: Copy + Default>(len: usize) -> Result<Vec<T>> {
    let mut vec = Vec::new();
    vec.try_reserve_exact(len).map_err(|_| short(len.saturating_mul(size_of::<T>())))?;
    vec.resize(len, T::default());
    Ok(vec)
}
