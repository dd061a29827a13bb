//! Blocks: the bits of a line, or those of a key in its line, in the registers of an instruction set. What line
//! kernels do with blocks stands here, once for all sets; a scheme says how a key's block is made.

/// A register of bits.
///
/// # Safety
/// The methods are instructions of a vector set: call them only where that is available.
#[allow(clippy::missing_safety_doc)] // one for all
pub trait Register: Copy {
    /// The bits of both.
    unsafe fn or(self, other: Self) -> Self;
    /// The bits of `self` that are not in `held`.
    unsafe fn without(self, held: Self) -> Self;
    /// True when no bit is set.
    unsafe fn is_zero(self) -> bool;
}

/// Plain Rust; a word in storage order.
impl Register for u64 {
    #[inline(always)]
    unsafe fn or(self, other: Self) -> Self {
        self | other
    }

    #[inline(always)]
    unsafe fn without(self, held: Self) -> Self {
        self & !held
    }

    #[inline(always)]
    unsafe fn is_zero(self) -> bool {
        self == 0
    }
}

/// AVX2.
#[cfg(target_arch = "x86_64")]
mod vector {
    use std::arch::x86_64::*;

    /// What a block is made of.
    pub type Widest = __m256i;

    // SAFETY (of all three): register arithmetic; AVX2 by the caller's promise.
    impl super::Register for __m256i {
        #[inline(always)]
        unsafe fn or(self, other: Self) -> Self {
            // SAFETY: see above.
            unsafe { _mm256_or_si256(self, other) }
        }

        #[inline(always)]
        unsafe fn without(self, held: Self) -> Self {
            // SAFETY: see above.
            unsafe { _mm256_andnot_si256(held, self) }
        }

        #[inline(always)]
        unsafe fn is_zero(self) -> bool {
            // SAFETY: see above.
            unsafe { _mm256_testz_si256(self, self) != 0 }
        }
    }
}

/// NEON.
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod vector {
    use std::arch::aarch64::*;

    /// What a block is made of.
    pub type Widest = uint64x2_t;

    // SAFETY (of all three): register arithmetic; every AArch64 machine has NEON.
    impl super::Register for uint64x2_t {
        #[inline(always)]
        unsafe fn or(self, other: Self) -> Self {
            // SAFETY: see above.
            unsafe { vorrq_u64(self, other) }
        }

        #[inline(always)]
        unsafe fn without(self, held: Self) -> Self {
            // SAFETY: see above.
            unsafe { vbicq_u64(self, held) }
        }

        #[inline(always)]
        unsafe fn is_zero(self) -> bool {
            // SAFETY: see above.
            unsafe { vmaxvq_u32(vreinterpretq_u32_u64(self)) == 0 }
        }
    }
}

/// No vectors.
#[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little"))))]
mod vector {
    /// What a block is made of.
    pub type Widest = u64;
}

/// The widest register of this machine that kernels use.
pub use vector::Widest;

/// [`Widest`] registers that hold `words` words.
pub const fn widest(words: usize) -> usize {
    words * 8 / size_of::<Widest>()
}

/// The bits of a line, or those of a key in its line.
///
/// # Safety
/// As [`Register`].
pub trait Block: Copy {
    /// 64-bit words of a block.
    const WORDS: usize = size_of::<Self>() / 8;

    /// The block at `line`.
    ///
    /// # Safety
    /// `line` is valid for reading a block and aligned to its size.
    #[inline(always)]
    unsafe fn read(line: *const u64) -> Self {
        // SAFETY: the caller's promise; any bits are a block.
        unsafe { line.cast::<Self>().read() }
    }

    /// Sets the bits of `self` in `held`, which was read from `line`.
    ///
    /// # Safety
    /// As [`Register`]; `line` is valid for writing a block, aligned to its size and nobody else's.
    unsafe fn set(self, held: Self, line: *mut u64);

    /// True when a bit of `self` is missing in `held`.
    ///
    /// # Safety
    /// As [`Register`].
    unsafe fn misses(self, held: Self) -> bool;
}

// Loops over indices: closures would not inherit the instruction set.
impl<R: Register, const N: usize> Block for [R; N] {
    #[inline(always)]
    unsafe fn set(self, mut held: Self, line: *mut u64) {
        // SAFETY: the caller's promise, passed on.
        unsafe {
            for i in 0..N {
                held[i] = held[i].or(self[i]);
            }
            line.cast::<Self>().write(held);
        }
    }

    #[inline(always)]
    unsafe fn misses(self, held: Self) -> bool {
        // SAFETY: the caller's promise, passed on.
        unsafe {
            let mut missing = self[0].without(held[0]);
            for i in 1..N {
                missing = missing.or(self[i].without(held[i]));
            }
            !missing.is_zero()
        }
    }
}
