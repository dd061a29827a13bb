//! Line kernels: filters that touch one line per key. The loops are written once and compiled twice: for any machine, and
//! for the vector set of this one.

use std::marker::PhantomData;

use super::ahead::{BUCKET_AHEAD, Visit, each, fetched};
use super::block::Block;
use super::pattern::{InstructionSet, LineScheme, Portable};
use crate::cells::LINE_WORDS;
use crate::isa::{Isa, prefetch};

/// How far ahead of the current key lines are fetched. 8 is too short; 32 to 64 measure the same.
const AHEAD: usize = 32;

/// A filter's lines as the loops see them: `first` is the number of the line at `base`, so that a
/// thread can work on its own part of a larger filter.
#[derive(Clone, Copy)]
pub struct Lines {
    /// The first line of the range.
    pub base: *mut u64,
    /// Its number in the whole filter.
    pub first: u64,
    /// Lines of the whole filter, the range of the hash.
    pub total: u64,
}

impl Lines {
    /// All lines of a filter of `words` words at `base`.
    #[inline(always)]
    fn all<S: LineScheme>(base: *const u64, words: usize) -> Self {
        Lines { base: base.cast_mut(), first: 0, total: (words / S::Words::WORDS) as u64 }
    }

    #[inline(always)]
    fn address<S: LineScheme>(self, hash: u64) -> *mut u64 {
        let index = (S::line(hash, self.total) - self.first) as usize;
        self.base.wrapping_byte_add(index * size_of::<S::Words>())
    }
}

/// Checks hashes.
struct Contains<'a, S> {
    lines: Lines,
    /// As long as the hashes.
    found: &'a mut [u8],
    scheme: PhantomData<S>,
}

impl<S: LineScheme> Visit for Contains<'_, S> {
    fetched! { AHEAD; this, hash => prefetch(this.lines.address::<S>(hash)) }

    #[inline(always)]
    fn visit<I: InstructionSet>(&mut self, set: I, i: usize, hash: u64) -> bool {
        // SAFETY: [`contains`] borrows all lines of the filter and compares the lengths; a check here costs 5 %.
        unsafe {
            *self.found.get_unchecked_mut(i) = u8::from(set.contains::<S>(self.lines.address::<S>(hash), hash));
        }
        true
    }
}

/// Checks `hashes` against `words`, on the instruction set in use.
#[inline]
pub fn contains<S: LineScheme>(words: &[u64], hashes: &[u64], found: &mut [u8]) {
    assert!(hashes.len() == found.len());
    let lines = Lines::all::<S>(words.as_ptr(), words.len());
    each(hashes, Contains { lines, found, scheme: PhantomData::<S> });
}

/// Adds `hashes` in order with lines fetched ahead; reports to `tell` whether each was new and returns how many were
/// (counted here, in a register, rather than through `tell`). One iteration handles a cache line of hashes: checking at
/// each key whether a line begins costs 0.35 ns.
///
/// # Safety
/// Every hash's line must be in `lines`, which nobody else accesses meanwhile.
#[inline(always)]
unsafe fn add_loop<S: LineScheme>(
    set: impl InstructionSet,
    lines: Lines,
    hashes: &[u64],
    mut tell: impl FnMut(usize, bool),
) -> u64 {
    let mut count = 0;
    let ahead = AHEAD.min(hashes.len());
    for &hash in &hashes[..ahead] {
        prefetch(lines.address::<S>(hash));
    }
    let (eights, _) = hashes[..hashes.len() - ahead].as_chunks::<8>();
    let (later, _) = hashes[ahead..].as_chunks::<8>();
    for (i, (eight, later)) in eights.iter().zip(later).enumerate() {
        prefetch(eight.as_ptr().wrapping_add(BUCKET_AHEAD));
        for (j, (&hash, &later)) in eight.iter().zip(later).enumerate() {
            prefetch(lines.address::<S>(later));
            // SAFETY: as the caller vouches.
            let new = unsafe { set.add::<S>(lines.address::<S>(hash), hash) };
            count += u64::from(new);
            tell(8 * i + j, new);
        }
    }
    let rest = 8 * eights.len();
    for &hash in &hashes[rest + ahead..] {
        prefetch(lines.address::<S>(hash));
    }
    for (i, &hash) in hashes[rest..].iter().enumerate() {
        // SAFETY: as the caller vouches.
        let new = unsafe { set.add::<S>(lines.address::<S>(hash), hash) };
        count += u64::from(new);
        tell(rest + i, new);
    }
    count
}

/// Adds `hashes` to a whole filter; reports to `tell` whether each was new and returns how many were.
#[inline]
pub fn add<S: LineScheme>(words: &mut [u64], hashes: &[u64], tell: impl FnMut(usize, bool)) -> u64 {
    // SAFETY: `line` maps every hash below `total`; `&mut` excludes everyone else.
    unsafe { add_lines::<S>(Lines::all::<S>(words.as_mut_ptr(), words.len()), hashes, tell) }
}

/// Adds `hashes` to `lines` on the instruction set in use; see [`add`].
///
/// # Safety
/// Every hash's line must be in `lines`, which nobody else accesses meanwhile.
pub(crate) unsafe fn add_lines<S: LineScheme>(lines: Lines, hashes: &[u64], tell: impl FnMut(usize, bool)) -> u64 {
    if Isa::is_vector() {
        // SAFETY: the vector set was detected; the caller vouches for the lines.
        unsafe { vector::add_all::<S>(lines, hashes, tell) }
    } else {
        // SAFETY: the caller vouches for the lines.
        unsafe { add_loop::<S>(Portable, lines, hashes, tell) }
    }
}

/// Looks up a hash in its line: 1 if its cells are set, else 0. The C convention and return type make the lookup the
/// last jump of the interpreter's call.
type LookFn = unsafe extern "C" fn(base: *mut u64, total: u64, hash: u64) -> i32;

/// Lookups in single lines, on the instruction set that was in use when the filter was created: the scalar path has no
/// choice left to make.
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
            Isa::Portable => portable::look::<S> as LookFn,
            _ => vector::look::<S>,
        };
        OneLine { look, total: (words / S::Words::WORDS) as u64, words }
    }

    /// 1 when the cells of `hash` are set, else 0. Panics when `words` are fewer than this is for.
    #[inline(always)]
    pub fn look(&self, words: &[u64], hash: u64) -> i32 {
        assert!(words.len() >= self.words);
        // SAFETY: the instruction set was detected; the line lies below `total`, which `words` hold.
        unsafe { (self.look)(words.as_ptr().cast_mut(), self.total, hash) }
    }
}

/// The bits of a hash in its line, for lines that are not in this process's memory.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    /// The index of the line's first word in the filter.
    pub first: u64,
    /// Words of a line.
    pub words: usize,
    /// The bits, in storage order; nothing past `words`.
    bits: [u64; LINE_WORDS],
}

impl Pattern {
    /// Number of bits.
    pub fn ones(&self) -> u32 {
        self.bits.iter().map(|word| word.count_ones()).sum()
    }

    /// Gives the numbers of the bits in the line to `visit`, rising.
    #[inline]
    pub fn each(&self, mut visit: impl FnMut(u64)) {
        for (word, &held) in (0..).zip(&self.bits[..self.words]) {
            let mut set = u64::from_le(held);
            while set != 0 {
                visit(word * 64 + u64::from(set.trailing_zeros()));
                set &= set - 1;
            }
        }
    }

    /// How many of the bits are not set in `line`, the bytes of the line.
    #[inline]
    pub fn missing(&self, line: &[u8]) -> u32 {
        let (held, _) = line.as_chunks::<8>();
        let missing = |(bits, held): (&u64, &[u8; 8])| (bits & !u64::from_ne_bytes(*held)).count_ones();
        self.bits.iter().zip(held).map(missing).sum()
    }
}

/// The bits of `hash` in its line among `words`.
#[inline]
pub fn pattern<S: LineScheme>(words: usize, hash: u64) -> Pattern {
    let (block, mut bits) = (S::words(hash), [0; LINE_WORDS]);
    let held = block.as_ref();
    bits[..held.len()].copy_from_slice(held);
    let line = S::line(hash, (words / held.len()) as u64);
    Pattern { first: line * held.len() as u64, words: held.len(), bits }
}

/// The bits of `hash` among `words`, rising.
pub fn positions<S: LineScheme>(words: usize, hash: u64) -> Vec<u64> {
    let (pattern, mut positions) = (pattern::<S>(words, hash), Vec::new());
    pattern.each(|bit| positions.push(pattern.first * 64 + bit));
    positions
}

/// Checks one hash.
#[inline(always)]
pub fn contains_one<S: LineScheme>(words: &[u64], hash: u64) -> bool {
    let Lines { base, total, .. } = Lines::all::<S>(words.as_ptr(), words.len());
    // SAFETY: the vector set was detected; the line lies below `total`; reading only.
    0 != unsafe {
        if Isa::is_vector() { vector::look::<S>(base, total, hash) } else { portable::look::<S>(base, total, hash) }
    }
}

/// Adds one hash; true if it was new.
#[inline(always)]
pub fn add_one<S: LineScheme>(words: &mut [u64], hash: u64) -> bool {
    let Lines { base, total, .. } = Lines::all::<S>(words.as_mut_ptr(), words.len());
    // SAFETY: as in `contains_one`, and `&mut` excludes everyone else.
    unsafe {
        if Isa::is_vector() { vector::add::<S>(base, total, hash) } else { portable::add::<S>(base, total, hash) }
    }
}

/// Single keys in plain Rust: separate calls, so that the scalar entry points keep their registers for the vectors. The
/// fields of [`Lines`] are passed in registers.
mod portable {
    use crate::scheme::lines::Lines;
    use crate::scheme::pattern::{InstructionSet, LineScheme, Portable};

    /// # Safety
    /// `base` holds `total` lines.
    #[inline(never)]
    pub(super) unsafe extern "C" fn look<S: LineScheme>(base: *mut u64, total: u64, hash: u64) -> i32 {
        let lines = Lines { base, first: 0, total };
        // SAFETY: the caller's promise; `line` maps every hash below `total`.
        i32::from(unsafe { Portable.contains::<S>(lines.address::<S>(hash), hash) })
    }

    /// # Safety
    /// As [`look`], and nobody else accesses the line meanwhile.
    #[inline(never)]
    pub(super) unsafe fn add<S: LineScheme>(base: *mut u64, total: u64, hash: u64) -> bool {
        let lines = Lines { base, first: 0, total };
        // SAFETY: as for `look`.
        unsafe { Portable.add::<S>(lines.address::<S>(hash), hash) }
    }
}

/// The same and the adding loop compiled for the vector set: x86-64 needs the feature switched on around them.
mod vector {
    use crate::scheme::lines::{Lines, add_loop};
    use crate::scheme::pattern::{InstructionSet, LineScheme, Vector};

    /// # Safety
    /// `base` holds `total` lines, and AVX2 must be present.
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
    pub(super) unsafe extern "C" fn look<S: LineScheme>(base: *mut u64, total: u64, hash: u64) -> i32 {
        let lines = Lines { base, first: 0, total };
        // SAFETY: the caller's promise; `line` maps every hash below `total`.
        i32::from(unsafe { Vector::new().contains::<S>(lines.address::<S>(hash), hash) })
    }

    /// # Safety
    /// As [`look`], and nobody else accesses the line meanwhile.
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
    pub(super) unsafe fn add<S: LineScheme>(base: *mut u64, total: u64, hash: u64) -> bool {
        let lines = Lines { base, first: 0, total };
        // SAFETY: as for `look`.
        unsafe { Vector::new().add::<S>(lines.address::<S>(hash), hash) }
    }

    /// # Safety
    /// As [`add_loop`], and AVX2 must be present.
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
    pub(super) unsafe fn add_all<S: LineScheme>(lines: Lines, hashes: &[u64], tell: impl FnMut(usize, bool)) -> u64 {
        // SAFETY: the caller's promise, passed on.
        unsafe { add_loop::<S>(Vector::new(), lines, hashes, tell) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::columns::Columns;
    use super::super::parquet::Parquet;
    use super::*;
    use crate::cells::Memory;
    use crate::isa::on_each;

    /// Every loop and every single look against the words of the scheme, on every instruction set.
    fn agrees<S: LineScheme<Words = [u64; N]>, const N: usize>() {
        let hashes: Vec<u64> = (1..=300u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let lines = 24 / N * 8;
        let (mut model, mut want) = (vec![0u64; lines * N], Vec::new());
        for &hash in &hashes {
            let at = S::line(hash, lines as u64) as usize * N;
            let (line, bits) = (&mut model[at..at + N], S::words(hash));
            want.push(line.iter().zip(bits).any(|(held, bits)| bits & !held != 0));
            line.iter_mut().zip(bits).for_each(|(held, bits)| *held |= bits);
        }
        on_each(|isa| {
            let mut memory = [0, 1].map(|_| Memory::zeroed(model.len() as u64).unwrap());
            let [batch, single] = memory.each_mut().map(|memory| memory.words_mut().unwrap());
            let mut new = Vec::new();
            let count = add::<S>(batch, &hashes, |_, fresh| new.push(fresh));
            assert_eq!((&*batch, &new), (&*model, &want), "{isa:?}");
            assert_eq!(count, new.iter().map(|&fresh| u64::from(fresh)).sum());
            assert_eq!(hashes.iter().map(|&hash| add_one::<S>(single, hash)).collect::<Vec<_>>(), want);
            assert_eq!(batch, single);
            let asked: Vec<u64> =
                (0..1000u64).map(|i| i.wrapping_mul(0xd134_2543_de82_ef95)).chain(hashes.clone()).collect();
            let mut found = vec![0; asked.len()];
            contains::<S>(batch, &asked, &mut found);
            let one_line = OneLine::of::<S>(batch.len());
            for (&hash, found) in asked.iter().zip(found) {
                let line = &model[S::line(hash, lines as u64) as usize * N..][..N];
                let held = line.iter().zip(S::words(hash)).all(|(held, bits)| bits & !held == 0);
                let looks = [i32::from(found), i32::from(contains_one::<S>(batch, hash)), one_line.look(batch, hash)];
                assert_eq!(looks, [i32::from(held); 3], "{isa:?} {hash}");
            }
        });
    }

    #[test]
    fn every_instruction_set_writes_and_finds_the_bits_of_the_scheme() {
        agrees::<Columns<1>, 8>();
        agrees::<Columns<2>, 8>();
        agrees::<Columns<3>, 8>();
        agrees::<Parquet, 4>();
    }
}
