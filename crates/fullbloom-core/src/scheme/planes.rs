//! Planes: several line filters interleaved, so that the lines of a key are adjacent in memory.
//!
//! Slot `s` of a structure of `g` planes is the lines `g s .. g s + g`, line `g s + j` being line `s` of the filter in
//! plane `j`. A key chooses its slot as `columns` chooses its line, and its cells in each of the slot's lines by the
//! same scheme:
//!
//! * [`Planes::find`] and [`Planes::write`] (generations of a window) use one pattern in all planes;
//! * [`Planes::depths`] and [`Planes::deepen`] (layers) use a separate pattern in each plane `j`, that of `x = h + j *
//!   0x9e3779b97f4a7c15` after `x = (x ^ x >> 32) * 0xd6e8feb86659fd93` twice and `x ^ x >> 32` (`h` itself in plane
//!   0); otherwise a false positive of one layer would be repeated in the next, which holds the same keys.

use std::marker::PhantomData;
use std::ops::Range;

use super::ahead::{Visit, each, fetched};
use super::block::Block;
use super::columns::by_columns;
use super::fastrange;
use super::pattern::{InstructionSet, LineScheme};
use crate::cells::{LINE_BYTES, LINE_WORDS};
use crate::isa::prefetch;

/// Keys fetched ahead; each needs one to several adjacent lines.
const AHEAD: usize = 16;
/// Lines of a slot that are fetched ahead: a window reads two or three, a layered key seldom more.
const FETCHED: usize = 4;
/// Planes fit the bits of a mask.
pub const MAX_PLANES: usize = 64;

/// Planes of lines of scheme `columns`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Planes {
    planes: usize,
    per_column: u32,
}

/// The rule by which [`Planes::write`] writes a key.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The plane that is written to; must be below the number of planes.
    pub active: usize,
    /// Keys it still accepts.
    pub capacity: u64,
    /// True: a key is written unless the active plane holds it; false: unless any plane holds it.
    pub refresh: bool,
}

/// The cells in the form that loops use; valid as long as the slice they come from.
#[derive(Clone, Copy)]
struct View<S> {
    base: *mut u64,
    planes: usize,
    slots: u64,
    scheme: PhantomData<S>,
}

impl<S: LineScheme> View<S> {
    /// The first of the lines of the slot of `hash`, inside for every hash: `line` maps below `slots`.
    #[inline(always)]
    fn slot(&self, hash: u64) -> *mut u64 {
        self.base.wrapping_add(S::line(hash, self.slots) as usize * self.planes * LINE_WORDS)
    }

    #[inline(always)]
    fn fetch(&self, hash: u64) {
        let slot = self.slot(hash);
        for plane in 0..self.planes.min(FETCHED) {
            prefetch(slot.wrapping_add(plane * LINE_WORDS));
        }
    }

    /// The planes of `slot` that hold `bits`, one bit each.
    ///
    /// # Safety
    /// As [`Register`](super::block::Register); a slot of this view.
    #[inline(always)]
    unsafe fn find_planes(&self, slot: *mut u64, bits: impl Block) -> u64 {
        let (mut held, mut bit) = (0, 1u64);
        for plane in 0..self.planes {
            // SAFETY: the slot has that many lines.
            let missing = unsafe { bits.misses(Block::read(slot.wrapping_add(plane * LINE_WORDS))) };
            // No shift by a variable: 2.7 against 3.3 ns per lookup at three planes.
            held |= bit & u64::from(missing).wrapping_sub(1);
            bit <<= 1;
        }
        held
    }
}

/// The hash for the pattern in a layer.
#[inline(always)]
fn twist(hash: u64, plane: usize) -> u64 {
    if plane == 0 {
        return hash;
    }
    let mut x = hash.wrapping_add((plane as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for _ in 0..2 {
        x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    }
    x ^ (x >> 32)
}

/// Reports which planes hold a key.
struct Find<S, T> {
    view: View<S>,
    tell: T,
}

impl<S: LineScheme, T: FnMut(usize, u64)> Visit for Find<S, T> {
    fetched! { AHEAD; this, hash => this.view.fetch(hash) }

    #[inline(always)]
    fn visit<I: InstructionSet>(&mut self, set: I, i: usize, hash: u64) -> bool {
        // SAFETY: the slot of a hash; `set` is proof of the instruction set.
        let held = unsafe { self.view.find_planes(self.view.slot(hash), set.pattern::<S>(hash)) };
        (self.tell)(i, held);
        true
    }
}

/// Writes keys to one plane; reports whether no plane held them.
struct Write<S, T> {
    view: View<S>,
    active: usize,
    /// The planes that a key must not be in to be written.
    mask: u64,
    /// Keys that the active plane still accepts.
    capacity: u64,
    tell: T,
}

impl<S: LineScheme, T: FnMut(usize, bool)> Visit for Write<S, T> {
    fetched! { AHEAD; this, hash => this.view.fetch(hash) }

    #[inline(always)]
    fn visit<I: InstructionSet>(&mut self, set: I, i: usize, hash: u64) -> bool {
        let (slot, bits) = (self.view.slot(hash), set.pattern::<S>(hash));
        // SAFETY: the slot of a hash; `set` is proof of the instruction set.
        let held = unsafe { self.view.find_planes(slot, bits) };
        if held & self.mask == 0 {
            if self.capacity == 0 {
                return false;
            }
            self.capacity -= 1;
            let line = slot.wrapping_add(self.active * LINE_WORDS);
            // SAFETY: as above; `active` is below the number of planes.
            unsafe { bits.set(Block::read(line), line) };
        }
        (self.tell)(i, held == 0);
        true
    }
}

/// Reports how many leading planes hold a key, and adds it to the next one if `ADD`.
struct Depth<S, T, const ADD: bool> {
    view: View<S>,
    tell: T,
}

impl<S: LineScheme, T: FnMut(usize, usize), const ADD: bool> Visit for Depth<S, T, ADD> {
    fetched! { AHEAD; this, hash => this.view.fetch(hash) }

    #[inline(always)]
    fn visit<I: InstructionSet>(&mut self, set: I, i: usize, hash: u64) -> bool {
        let (mut line, mut depth) = (self.view.slot(hash), 0);
        while depth < self.view.planes {
            let own = twist(hash, depth);
            // SAFETY: the slot has that many lines; a line that has the pattern is not changed.
            let held = unsafe { if ADD { !set.add::<S>(line, own) } else { set.contains::<S>(line, own) } };
            if !held {
                break;
            }
            line = line.wrapping_add(LINE_WORDS);
            depth += 1;
        }
        (self.tell)(i, depth);
        true
    }
}

impl Planes {
    /// `planes` lines per slot, 1 to 64, with `per_column` positions per column, 1 to 3.
    pub fn new(planes: usize, per_column: u32) -> Option<Self> {
        let fits = (1..=MAX_PLANES).contains(&planes) && (1..=super::columns::MAX_PER_COLUMN).contains(&per_column);
        fits.then_some(Planes { planes, per_column })
    }

    /// Number of planes.
    #[inline(always)]
    pub fn planes(&self) -> usize {
        self.planes
    }

    /// k: positions of a key in a line.
    pub fn num_hashes(&self) -> u32 {
        4 * self.per_column
    }

    /// Words of `slots` slots; `None` beyond 64 bits.
    pub fn words(&self, slots: u64) -> Option<u64> {
        slots.checked_mul((self.planes * LINE_WORDS) as u64)
    }

    /// Reports for each hash which planes hold it, one bit each.
    #[inline(always)]
    pub fn find(&self, words: &[u64], hashes: &[u64], tell: impl FnMut(usize, u64)) {
        by_columns!(self.per_column, S => { each(hashes, Find { view: self.view::<S>(words), tell }); })
    }

    /// The planes that hold one hash.
    #[inline(always)]
    pub fn find_one(&self, words: &[u64], hash: u64) -> u64 {
        let mut planes = 0;
        self.find(words, &[hash], |_, held| planes = held);
        planes
    }

    /// Writes hashes in order by `rule` until one finds no capacity; reports for each whether no plane held it. Returns
    /// how many were looked up, and how many of them were written.
    #[inline(always)]
    pub fn write(&self, words: &mut [u64], rule: Rule, hashes: &[u64], tell: impl FnMut(usize, bool)) -> (usize, u64) {
        let Rule { active, capacity, refresh } = rule;
        assert!(active < self.planes);
        let mask = if refresh { 1 << active } else { u64::MAX };
        by_columns!(self.per_column, S => {
            let write = Write { view: self.view_mut::<S>(words), active, mask, capacity, tell };
            let (seen, write) = each(hashes, write);
            (seen, capacity - write.capacity)
        })
    }

    /// Reports for each hash how many leading planes hold it.
    #[inline(always)]
    pub fn depths(&self, words: &[u64], hashes: &[u64], tell: impl FnMut(usize, usize)) {
        by_columns!(self.per_column, S => {
            each(hashes, Depth::<_, _, false> { view: self.view::<S>(words), tell });
        })
    }

    /// Adds each hash to the first plane that does not hold it; reports how many held it before.
    #[inline(always)]
    pub fn deepen(&self, words: &mut [u64], hashes: &[u64], tell: impl FnMut(usize, usize)) {
        by_columns!(self.per_column, S => {
            each(hashes, Depth::<_, _, true> { view: self.view_mut::<S>(words), tell });
        })
    }

    /// Clears one plane.
    pub fn clear(&self, words: &mut [u64], plane: usize) {
        for line in words.chunks_exact_mut(LINE_WORDS).skip(plane).step_by(self.planes) {
            line.fill(0);
        }
    }

    /// Set bits of one plane.
    pub fn ones(&self, words: &[u64], plane: usize) -> u64 {
        let lines = words.chunks_exact(LINE_WORDS).skip(plane).step_by(self.planes);
        lines.map(crate::cells::bits::count_ones).sum()
    }

    /// [`Planes::ones`] of every plane, in a range of words that begins with a slot.
    pub fn each_ones(&self, words: &[u64], range: Range<usize>, mut visit: impl FnMut(usize, u64)) {
        let words = &words[range];
        (0..self.planes).for_each(|plane| visit(plane, self.ones(words, plane)));
    }

    /// Words of a slot.
    pub fn slot_words(&self) -> usize {
        self.planes * LINE_WORDS
    }

    /// Calls `word` with each word of `words` that a key with one of these hashes may write.
    pub fn writes(&self, words: &[u64], hashes: &[u64], word: &mut dyn FnMut(usize, usize)) {
        let slots = (words.len() / self.slot_words()) as u64;
        for &hash in hashes {
            let first = fastrange(hash, slots) as usize * self.slot_words();
            (first..first + self.slot_words()).for_each(|at| word(0, at));
        }
    }

    /// For reading.
    #[inline(always)]
    fn view<S: LineScheme>(&self, words: &[u64]) -> View<S> {
        let (base, slots) = (words.as_ptr().cast_mut(), (words.len() / (self.planes * LINE_WORDS)) as u64);
        assert!(slots > 0 && (base as usize).is_multiple_of(LINE_BYTES));
        View { base, planes: self.planes, slots, scheme: PhantomData }
    }

    /// For writing.
    #[inline(always)]
    fn view_mut<S: LineScheme>(&self, words: &mut [u64]) -> View<S> {
        let view = self.view(words);
        View { base: words.as_mut_ptr(), ..view }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::Memory;
    use crate::isa::on_each;

    #[test]
    fn portable_and_vector_loops_set_the_same_bits() {
        let keys: Vec<u64> = (1..=300).map(|i| twist(i, 1)).collect();
        for per_column in 1..=3 {
            let planes = Planes::new(5, per_column).unwrap();
            let mut results = Vec::new();
            on_each(|_| {
                let mut memory = Memory::zeroed(8 * 5 * 20).unwrap();
                let words = memory.words_mut().unwrap();
                let mut result = Vec::new();
                planes.deepen(words, &keys, |_, depth| result.push(depth));
                planes.deepen(words, &keys[..100], |_, depth| result.push(depth));
                planes.depths(words, &keys, |_, depth| result.push(depth));
                let rule = Rule { active: 3, capacity: 50, refresh: false };
                planes.write(words, rule, &keys, |_, new| result.push(usize::from(new)));
                planes.find(words, &keys, |_, held| result.push(held as usize));
                results.push((memory.words().to_vec(), result));
            });
            assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "{per_column}");
            assert!(results[0].1[300..400].iter().all(|&depth| depth >= 1));
        }
    }
}
