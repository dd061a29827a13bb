//! Blocks: the bits of a line, or those of a key in its line, in the registers of an instruction set. The operations of
//! line kernels on blocks are written here once for all sets; a scheme computes a key's block.

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
use std::arch::aarch64::*;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
use std::arch::wasm32::*;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// A register of bits.
///
/// # Safety
/// The methods are instructions of a vector set: call them only on a machine that has it.
#[allow(clippy::missing_safety_doc)] // one for all
pub trait Register: Copy {
    /// The bits of both.
    unsafe fn or(self, other: Self) -> Self;
    /// The bits of `self` that are not in `held`.
    unsafe fn without(self, held: Self) -> Self;
    /// True when no bit is set.
    unsafe fn is_zero(self) -> bool;
}

/// The primitives of one instruction set.
macro_rules! register {
    ($type:ty, |$a:ident, $b:ident| or: $or:expr, without: $without:expr, is_zero: $is_zero:expr) => {
        #[allow(unused_unsafe)] // in plain Rust
        impl Register for $type {
            #[inline(always)]
            unsafe fn or(self, $b: Self) -> Self {
                let $a = self;
                // SAFETY: register arithmetic; the set is there by the caller's promise.
                unsafe { $or }
            }

            #[inline(always)]
            unsafe fn without(self, $b: Self) -> Self {
                let $a = self;
                // SAFETY: as above.
                unsafe { $without }
            }

            #[inline(always)]
            unsafe fn is_zero(self) -> bool {
                let $a = self;
                // SAFETY: as above.
                unsafe { $is_zero }
            }
        }
    };
}

// Words in storage order.
register!(u64, |a, b| or: a | b, without: a & !b, is_zero: a == 0);
#[cfg(target_arch = "x86_64")]
register!(__m256i, |a, b|
    or: _mm256_or_si256(a, b), without: _mm256_andnot_si256(b, a), is_zero: _mm256_testz_si256(a, a) != 0);
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
register!(uint64x2_t, |a, b|
    or: vorrq_u64(a, b), without: vbicq_u64(a, b), is_zero: vmaxvq_u32(vreinterpretq_u32_u64(a)) == 0);
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
register!(v128, |a, b| or: v128_or(a, b), without: v128_andnot(a, b), is_zero: !v128_any_true(a));

/// The widest register of this machine that kernels use.
#[cfg(target_arch = "x86_64")]
pub type Widest = __m256i;
/// The widest register of this machine that kernels use.
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
pub type Widest = uint64x2_t;
/// The widest register of this machine that kernels use.
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub type Widest = v128;
/// The widest register of this machine that kernels use: a word, without vectors.
#[cfg(not(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_endian = "little"),
    all(target_arch = "wasm32", target_feature = "simd128")
)))]
pub type Widest = u64;

/// [`Widest`] registers that hold `words` words.
pub const fn widest(words: usize) -> usize {
    words * 8 / size_of::<Widest>()
}

/// The bits of a line, or those of a key in its line.
///
/// # Safety
/// See [`Register`].
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
    /// See [`Register`]; `line` is valid for writing a block, aligned to its size, and nobody else accesses it.
    unsafe fn set(self, held: Self, line: *mut u64);

    /// True if a bit of `self` is missing in `held`.
    ///
    /// # Safety
    /// See [`Register`].
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
