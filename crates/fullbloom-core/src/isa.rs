//! Which vector instructions this machine has, decided once at run time.
//!
//! All kernels set the same bits; the choice is speed only. AVX-512 was measured and left out: it
//! gains nothing over AVX2 (5.5-6.0 against 4.8-6.4 ns per key in cache, equal beyond it).

use std::sync::atomic::{AtomicU8, Ordering};

/// A set of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Isa {
    /// Plain Rust, any machine.
    Portable = 1,
    /// 256-bit vectors of x86-64.
    Avx2 = 2,
    /// 128-bit vectors of AArch64.
    Neon = 3,
    /// 128-bit vectors of WebAssembly.
    Simd128 = 4,
}

static CHOSEN: AtomicU8 = AtomicU8::new(0);

/// The set of a target that has one only: the compiler then drops the second copy of each kernel. On WebAssembly these
/// are a tenth of the module.
const ONLY: Option<Isa> = if cfg!(all(target_arch = "wasm32", target_feature = "simd128")) {
    Some(Isa::Simd128)
} else if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
    None
} else {
    Some(Isa::Portable)
};

impl Isa {
    /// The best set this machine runs, or the one [`Isa::force`] chose.
    #[inline(always)]
    pub fn current() -> Isa {
        if let Some(only) = ONLY {
            return only;
        }
        match CHOSEN.load(Ordering::Relaxed) {
            1 => Isa::Portable,
            2 => Isa::Avx2,
            3 => Isa::Neon,
            _ => Self::detect(),
        }
    }

    /// True when a set of vectors was chosen: one comparison, for the scalar paths. Before the first
    /// [`Isa::current`] it was not; every memory asks that when it is made.
    #[inline(always)]
    pub fn is_vector() -> bool {
        ONLY.map_or_else(|| CHOSEN.load(Ordering::Relaxed), |only| only as u8) > Isa::Portable as u8
    }

    #[cold]
    fn detect() -> Isa {
        let best = Self::available().last().copied().unwrap_or(Isa::Portable);
        CHOSEN.store(best as u8, Ordering::Relaxed);
        best
    }

    /// Every set this machine runs, slowest first.
    pub fn available() -> Vec<Isa> {
        if let Some(only) = ONLY {
            return vec![only];
        }
        #[allow(unused_mut)]
        let mut sets = vec![Isa::Portable];
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("popcnt") {
            sets.push(Isa::Avx2);
        }
        #[cfg(target_arch = "aarch64")]
        sets.push(Isa::Neon);
        sets
    }

    /// Chooses a set for the whole process, for tests and measurements; false if it cannot run.
    pub fn force(isa: Isa) -> bool {
        let runs = Self::available().contains(&isa);
        if runs {
            CHOSEN.store(isa as u8, Ordering::Relaxed);
        }
        runs
    }

    /// Public name.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Portable => "portable",
            Isa::Avx2 => "avx2",
            Isa::Neon => "neon",
            Isa::Simd128 => "simd128",
        }
    }
}

/// Asks for the cache line at `address`, for reading or writing; never faults.
#[inline(always)]
pub fn prefetch(address: *const u64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint, valid for any address; SSE is part of x86-64.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above; stable Rust has no intrinsic for it.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

#[cfg(test)]
/// Runs `test` on every set of this machine, one after the other in the whole process.
pub fn on_each(mut test: impl FnMut(Isa)) {
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _held = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let before = Isa::current();
    for isa in Isa::available() {
        assert!(Isa::force(isa));
        test(isa);
    }
    Isa::force(before);
}
