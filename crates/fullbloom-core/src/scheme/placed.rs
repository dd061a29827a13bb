//! Line kernels over lines that the caller chooses: many small filters in one array, of which each key has its own. The
//! caller has prefetched the lines ([`fetch`]) while it looked for those of later keys.

use super::pattern::{InstructionSet, LineScheme, Portable};
use crate::cells::LINE_WORDS;
use crate::isa::{Isa, prefetch};

/// A line beyond every array: its key is in no filter.
pub const NOWHERE: u32 = u32::MAX;

/// A scheme whose lines are cache lines.
pub trait CacheLineScheme: LineScheme<Words = [u64; LINE_WORDS]> {}

impl<S: LineScheme<Words = [u64; LINE_WORDS]>> CacheLineScheme for S {}

/// The lines of an array.
#[derive(Clone, Copy)]
struct Array {
    base: *mut u64,
    lines: usize,
}

impl Array {
    fn of(words: &[u64]) -> Self {
        Array { base: words.as_ptr().cast_mut(), lines: words.len() / LINE_WORDS }
    }

    /// Any address for a line beyond the array, which is not read.
    #[inline(always)]
    fn address(self, line: u32) -> *mut u64 {
        self.base.wrapping_add(line as usize * LINE_WORDS)
    }

    #[inline(always)]
    fn holds(self, line: u32) -> bool {
        (line as usize) < self.lines
    }
}

/// Prefetches a line of the array whose words begin at `words`.
#[inline(always)]
pub fn fetch(words: *const u64, line: u32) {
    prefetch(words.wrapping_add(line as usize * LINE_WORDS));
}

/// Checks each of `hashes` in its line of `words`; one answer each, 0 for lines beyond the words.
pub fn contains<S: CacheLineScheme>(words: &[u64], lines: &[u32], hashes: &[u64], found: &mut [u8]) {
    assert!(lines.len() == hashes.len() && hashes.len() == found.len());
    let array = Array::of(words);
    if Isa::is_vector() {
        // SAFETY: the vector set was detected; the array is borrowed, and the loop checks every line.
        unsafe { vector::contains_all::<S>(array, lines, hashes, found) }
    } else {
        // SAFETY: as above.
        unsafe { contains_loop::<S>(Portable, array, lines, hashes, found) }
    }
}

/// Adds each of `hashes` to its line of `words`, in order: 1 for each that was new, 0 for the others and for lines beyond
/// the words.
pub fn add<S: CacheLineScheme>(words: &mut [u64], lines: &[u32], hashes: &[u64], new: &mut [u8]) {
    assert!(lines.len() == hashes.len() && hashes.len() == new.len());
    let array = Array { base: words.as_mut_ptr(), lines: words.len() / LINE_WORDS };
    if Isa::is_vector() {
        // SAFETY: the vector set was detected; `&mut` excludes everyone else, and the loop checks every line.
        unsafe { vector::add_all::<S>(array, lines, hashes, new) }
    } else {
        // SAFETY: as above.
        unsafe { add_loop::<S>(Portable, array, lines, hashes, new) }
    }
}

/// # Safety
/// `array` is valid for reading.
#[inline(always)]
unsafe fn contains_loop<S: CacheLineScheme>(
    set: impl InstructionSet,
    array: Array,
    lines: &[u32],
    hashes: &[u64],
    found: &mut [u8],
) {
    for ((&line, &hash), found) in lines.iter().zip(hashes).zip(found) {
        // SAFETY: the line is one of the array, whose lines are aligned as its base is.
        *found = u8::from(array.holds(line) && unsafe { set.contains::<S>(array.address(line), hash) });
    }
}

/// # Safety
/// `array` is valid for writing, and nobody else accesses it.
#[inline(always)]
unsafe fn add_loop<S: CacheLineScheme>(
    set: impl InstructionSet,
    array: Array,
    lines: &[u32],
    hashes: &[u64],
    new: &mut [u8],
) {
    for ((&line, &hash), new) in lines.iter().zip(hashes).zip(new) {
        // SAFETY: as in `contains_loop`; the caller vouches for writing.
        *new = u8::from(array.holds(line) && unsafe { set.add::<S>(array.address(line), hash) });
    }
}

/// The loops compiled for the vector set: x86-64 needs the feature switched on around them.
mod vector {
    use super::{Array, CacheLineScheme, add_loop, contains_loop};
    use crate::scheme::pattern::Vector;

    /// # Safety
    /// As [`contains_loop`], and AVX2 must be present.
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
    pub(super) unsafe fn contains_all<S: CacheLineScheme>(
        array: Array,
        lines: &[u32],
        hashes: &[u64],
        found: &mut [u8],
    ) {
        // SAFETY: the caller's promise, passed on.
        unsafe { contains_loop::<S>(Vector::new(), array, lines, hashes, found) }
    }

    /// # Safety
    /// As [`add_loop`], and AVX2 must be present.
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
    pub(super) unsafe fn add_all<S: CacheLineScheme>(array: Array, lines: &[u32], hashes: &[u64], new: &mut [u8]) {
        // SAFETY: the caller's promise, passed on.
        unsafe { add_loop::<S>(Vector::new(), array, lines, hashes, new) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::columns::Columns;
    use super::*;
    use crate::cells::Memory;
    use crate::isa::on_each;

    #[test]
    fn keys_set_and_find_the_bits_of_the_scheme_in_their_lines() {
        const LINES: u32 = 24;
        let hashes: Vec<u64> = (1..=300u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let lines: Vec<u32> = (0..300).map(|i| if i % 7 == 0 { NOWHERE } else { i * 5 % (LINES + 2) }).collect();
        let (mut model, mut want) = (vec![0u64; LINES as usize * LINE_WORDS], Vec::new());
        for (&line, &hash) in lines.iter().zip(&hashes) {
            let held = model.chunks_exact_mut(LINE_WORDS).nth(line as usize);
            want.push(held.is_some_and(|held| {
                let bits = Columns::<2>::words(hash);
                let new = held.iter().zip(bits).any(|(held, bits)| bits & !held != 0);
                held.iter_mut().zip(bits).for_each(|(held, bits)| *held |= bits);
                new
            }));
        }
        on_each(|isa| {
            let mut memory = Memory::zeroed(model.len() as u64).unwrap();
            let words = memory.words_mut().unwrap();
            let mut new = vec![0; hashes.len()];
            add::<Columns<2>>(words, &lines, &hashes, &mut new);
            assert_eq!((&*words, new.iter().map(|&new| new == 1).collect()), (&*model, want.clone()), "{isa:?}");
            let mut found = vec![9; hashes.len()];
            contains::<Columns<2>>(words, &lines, &hashes, &mut found);
            for (&line, found) in lines.iter().zip(found) {
                assert_eq!(found, u8::from(line < LINES), "{isa:?}");
            }
        });
    }
}
