//! Line kernels: filters that touch one line a key. The loops are written once, here, and
//! compiled twice: for any machine and for the vector set of this one.

use super::BUCKET_AHEAD;
use crate::isa::{Isa, prefetch};

/// How far ahead of the current key lines are fetched. 8 is too short; 32 to 64 measure the same.
const AHEAD: usize = 32;

/// Marks and checks one line for a hash.
///
/// # Safety
/// Implementations may use vector instructions: call the methods only where those are available,
/// with `line` valid for [`LineKernel::WORDS`] words and aligned to their size.
pub trait LineKernel: Copy + Send + Sync {
    /// 64-bit words of a line.
    const WORDS: usize;

    /// The line of `hash` among `lines`: below `lines`, and never falling as `hash` rises.
    fn line(hash: u64, lines: u64) -> u64;

    /// True when all cells of `hash` are set.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn contains(line: *const u64, hash: u64) -> bool;

    /// Sets all cells of `hash`; true when one of them was clear.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn add(line: *mut u64, hash: u64) -> bool;
}

/// A filter's lines as the loops see them: `first` is the number of the line at `base`, so that a
/// thread can work on its own part of a larger filter.
#[derive(Clone, Copy)]
pub struct Lines {
    /// The first line held here.
    pub base: *mut u64,
    /// Its number in the whole filter.
    pub first: u64,
    /// Lines of the whole filter, the range of the hash.
    pub total: u64,
}

impl Lines {
    #[inline(always)]
    fn address<K: LineKernel>(self, hash: u64) -> *mut u64 {
        let index = (K::line(hash, self.total) - self.first) as usize;
        self.base.wrapping_byte_add(index * K::WORDS * 8)
    }
}

/// Checks `hashes` in order with lines fetched ahead.
///
/// # Safety
/// As [`LineKernel`]; every hash's line must lie in `lines`; `found` is as long as `hashes`.
#[inline(always)]
pub unsafe fn contains_loop<K: LineKernel>(lines: Lines, hashes: &[u64], found: &mut [u8]) {
    let ahead = AHEAD.min(hashes.len());
    for &hash in &hashes[..ahead] {
        prefetch(lines.address::<K>(hash));
    }
    // No closure for the check: it would not inherit the instruction set (130 ns a key, not 6).
    let (found, last_found) = found.split_at_mut(hashes.len() - ahead);
    for ((&hash, &next), found) in hashes.iter().zip(&hashes[ahead..]).zip(found) {
        prefetch(lines.address::<K>(next));
        // SAFETY: the caller vouches for the instruction set and that every line is inside.
        *found = u8::from(unsafe { K::contains(lines.address::<K>(hash), hash) });
    }
    for (&hash, found) in hashes[hashes.len() - ahead..].iter().zip(last_found) {
        // SAFETY: as above.
        *found = u8::from(unsafe { K::contains(lines.address::<K>(hash), hash) });
    }
}

/// Adds `hashes` in order with lines fetched ahead; tells each one's novelty to `tell` and returns how many
/// were new (counted here, in a register, rather than through `tell`). A turn takes a cache line of hashes:
/// asking at each key whether a line begins costs 0.35 ns.
///
/// # Safety
/// As [`contains_loop`], and the lines are not accessed by anyone else meanwhile.
#[inline(always)]
pub unsafe fn add_loop<K: LineKernel>(lines: Lines, hashes: &[u64], mut tell: impl FnMut(usize, bool)) -> u64 {
    let mut count = 0;
    let ahead = AHEAD.min(hashes.len());
    for &hash in &hashes[..ahead] {
        prefetch(lines.address::<K>(hash));
    }
    let (eights, _) = hashes[..hashes.len() - ahead].as_chunks::<8>();
    let (later, _) = hashes[ahead..].as_chunks::<8>();
    for (i, (eight, later)) in eights.iter().zip(later).enumerate() {
        prefetch(eight.as_ptr().wrapping_add(BUCKET_AHEAD));
        for (j, (&hash, &later)) in eight.iter().zip(later).enumerate() {
            prefetch(lines.address::<K>(later));
            // SAFETY: as the caller vouches.
            let new = unsafe { K::add(lines.address::<K>(hash), hash) };
            count += u64::from(new);
            tell(8 * i + j, new);
        }
    }
    let rest = 8 * eights.len();
    for &hash in &hashes[rest + ahead..] {
        prefetch(lines.address::<K>(hash));
    }
    for (i, &hash) in hashes[rest..].iter().enumerate() {
        // SAFETY: as the caller vouches.
        let new = unsafe { K::add(lines.address::<K>(hash), hash) };
        count += u64::from(new);
        tell(rest + i, new);
    }
    count
}

/// A scheme of the line kind: the same rule in plain Rust and in this machine's vectors.
pub trait LineScheme {
    /// Plain Rust.
    type Portable: LineKernel;
    /// The vector twin; plain Rust where this architecture has none.
    type Vector: LineKernel;
}

/// Checks `hashes` against `words`, on the instruction set in use.
#[inline]
pub fn contains<S: LineScheme>(words: &[u64], hashes: &[u64], found: &mut [u8]) {
    assert!(hashes.len() == found.len());
    let total = (words.len() / S::Portable::WORDS) as u64;
    let lines = Lines { base: words.as_ptr().cast_mut(), first: 0, total };
    if Isa::is_vector() {
        // SAFETY: the vector set was detected; `line` maps every hash below `total`; reading only.
        unsafe { vector::contains::<S::Vector>(lines, hashes, found) }
    } else {
        // SAFETY: plain Rust; otherwise as above.
        unsafe { contains_loop::<S::Portable>(lines, hashes, found) }
    }
}

/// Adds `hashes` to a whole filter; tells each one's novelty to `tell`, returns how many were new.
#[inline]
pub fn add<S: LineScheme>(words: &mut [u64], hashes: &[u64], tell: impl FnMut(usize, bool)) -> u64 {
    let total = (words.len() / S::Portable::WORDS) as u64;
    let lines = Lines { base: words.as_mut_ptr(), first: 0, total };
    // SAFETY: `line` maps every hash below `total`; `&mut` excludes everyone else.
    unsafe { add_lines::<S>(lines, hashes, tell) }
}

/// Adds `hashes` to `lines` on the instruction set in use; see [`add`].
///
/// # Safety
/// Every hash's line must lie in `lines`, which nobody else accesses meanwhile.
pub(crate) unsafe fn add_lines<S: LineScheme>(lines: Lines, hashes: &[u64], tell: impl FnMut(usize, bool)) -> u64 {
    if Isa::is_vector() {
        // SAFETY: the vector set was detected; the caller vouches for the lines.
        unsafe { vector::add::<S::Vector>(lines, hashes, tell) }
    } else {
        // SAFETY: plain Rust; the caller vouches for the lines.
        unsafe { add_loop::<S::Portable>(lines, hashes, tell) }
    }
}

/// Looks at one line: 1 when the cells of the hash are set, else 0. By the C convention and in its kind
/// of answer, so that a look can be the last jump of the interpreter's call.
type LookFn = unsafe extern "C" fn(base: *mut u64, total: u64, hash: u64) -> i32;

/// Looks at single lines, on the instruction set that was in use when the filter was made: the
/// scalar path has no choice left to make.
#[derive(Clone, Copy)]
pub struct OneLine {
    look: LookFn,
    total: u64,
    words: usize,
}

impl OneLine {
    /// For filters of `words` words.
    pub fn of<S: LineScheme>(words: usize) -> Self {
        let look = match Isa::current() {
            Isa::Portable => portable::look::<S::Portable> as LookFn,
            _ => vector::look::<S::Vector>,
        };
        OneLine { look, total: (words / S::Portable::WORDS) as u64, words }
    }

    /// 1 when the cells of `hash` are set, else 0. Panics when `words` are fewer than this is for.
    #[inline(always)]
    pub fn look(&self, words: &[u64], hash: u64) -> i32 {
        assert!(words.len() >= self.words);
        // SAFETY: the instruction set was detected; the line lies below `total`, which `words` hold.
        unsafe { (self.look)(words.as_ptr().cast_mut(), self.total, hash) }
    }
}

/// Checks one hash.
#[inline(always)]
pub fn contains_one<S: LineScheme>(words: &[u64], hash: u64) -> bool {
    let total = (words.len() / S::Portable::WORDS) as u64;
    let base = words.as_ptr().cast_mut();
    if Isa::is_vector() {
        // SAFETY: the vector set was detected; the line lies below `total`; reading only.
        unsafe { vector::contains_one::<S::Vector>(base, total, hash) }
    } else {
        // SAFETY: plain Rust; otherwise as above.
        unsafe { portable::contains_one::<S::Portable>(base, total, hash) }
    }
}

/// Adds one hash; true when it was new.
#[inline(always)]
pub fn add_one<S: LineScheme>(words: &mut [u64], hash: u64) -> bool {
    let total = (words.len() / S::Portable::WORDS) as u64;
    let base = words.as_mut_ptr();
    if Isa::is_vector() {
        // SAFETY: as in `contains_one`, and `&mut` excludes everyone else.
        unsafe { vector::add_one::<S::Vector>(base, total, hash) }
    } else {
        // SAFETY: plain Rust; otherwise as above.
        unsafe { portable::add_one::<S::Portable>(base, total, hash) }
    }
}

/// Single looks in plain Rust: calls of their own, so that the scalar entry points keep their
/// registers for the vectors.
mod portable {
    use super::{LineKernel, Lines};

    /// # Safety
    /// `base` holds `total` lines.
    #[inline(never)]
    pub(super) unsafe fn contains_one<K: LineKernel>(base: *mut u64, total: u64, hash: u64) -> bool {
        let lines = Lines { base, first: 0, total };
        // SAFETY: the caller's promise; `line` maps every hash below `total`.
        unsafe { K::contains(lines.address::<K>(hash), hash) }
    }

    /// # Safety
    /// As [`contains_one`].
    pub(super) unsafe extern "C" fn look<K: LineKernel>(base: *mut u64, total: u64, hash: u64) -> i32 {
        // SAFETY: the caller's promise, passed on.
        i32::from(unsafe { contains_one::<K>(base, total, hash) })
    }

    /// # Safety
    /// As [`contains_one`], and the line is nobody else's meanwhile.
    #[inline(never)]
    pub(super) unsafe fn add_one<K: LineKernel>(base: *mut u64, total: u64, hash: u64) -> bool {
        let lines = Lines { base, first: 0, total };
        // SAFETY: the caller's promise; `line` maps every hash below `total`.
        unsafe { K::add(lines.address::<K>(hash), hash) }
    }
}

/// The loops compiled for the vector set: x86-64 needs the feature switched on around them.
mod vector {
    use super::{LineKernel, Lines, add_loop, contains_loop};

    /// # Safety
    /// As [`contains_loop`], and AVX2 must be present.
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
    pub(super) unsafe fn contains<K: LineKernel>(lines: Lines, hashes: &[u64], found: &mut [u8]) {
        // SAFETY: the caller's promise, passed on.
        unsafe { contains_loop::<K>(lines, hashes, found) }
    }

    /// # Safety
    /// As [`add_loop`], and AVX2 must be present.
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
    pub(super) unsafe fn add<K: LineKernel>(lines: Lines, hashes: &[u64], tell: impl FnMut(usize, bool)) -> u64 {
        // SAFETY: the caller's promise, passed on.
        unsafe { add_loop::<K>(lines, hashes, tell) }
    }

    /// # Safety
    /// As [`contains`], for one hash. The parts of [`Lines`] come in registers.
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
    pub(super) unsafe fn contains_one<K: LineKernel>(base: *mut u64, total: u64, hash: u64) -> bool {
        let lines = Lines { base, first: 0, total };
        // SAFETY: the caller's promise, passed on.
        unsafe { K::contains(lines.address::<K>(hash), hash) }
    }

    /// # Safety
    /// As [`contains_one`].
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
    pub(super) unsafe extern "C" fn look<K: LineKernel>(base: *mut u64, total: u64, hash: u64) -> i32 {
        let lines = Lines { base, first: 0, total };
        // SAFETY: the caller's promise, passed on.
        i32::from(unsafe { K::contains(lines.address::<K>(hash), hash) })
    }

    /// # Safety
    /// As [`add`], for one hash.
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
    pub(super) unsafe fn add_one<K: LineKernel>(base: *mut u64, total: u64, hash: u64) -> bool {
        let lines = Lines { base, first: 0, total };
        // SAFETY: the caller's promise, passed on.
        unsafe { K::add(lines.address::<K>(hash), hash) }
    }
}
