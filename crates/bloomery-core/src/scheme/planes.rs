//! Planes: several line filters side by side, so that one key's lines are neighbours in memory.
//!
//! Slot `s` of a structure of `g` planes is the lines `g s .. g s + g`, line `g s + j` being line
//! `s` of the filter in plane `j`. A key chooses its slot as `columns` chooses its line, and its
//! cells in each of the slot's lines by the same scheme:
//!
//! * [`Planes::find`] and [`Planes::write`] (generations of a window) use one pattern in all planes;
//! * [`Planes::depths`] and [`Planes::deepen`] (layers) use a pattern of its own in each plane `j`,
//!   that of `x = h + j * 0x9e3779b97f4a7c15` after `x = (x ^ x >> 32) * 0xd6e8feb86659fd93` twice
//!   and `x ^ x >> 32` (`h` itself in plane 0), or a false answer in one layer would be repeated
//!   in the next, which holds the same keys.

use super::columns::Columns;
use super::lines::{LineKernel, LineScheme};
use crate::cells::{LINE_BYTES, LINE_WORDS};
use crate::isa::{Isa, prefetch};

/// Keys fetched ahead; each asks for one to several neighbouring lines.
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

/// What [`Planes::write`] does with a key.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The plane that is written to; must be below the number of planes.
    pub active: usize,
    /// Keys it still takes.
    pub room: u64,
    /// True: a key is written unless the active plane has it; false: unless any plane has it.
    pub refresh: bool,
}

/// The cells as the loops see them.
#[derive(Clone, Copy)]
struct View {
    base: *mut u64,
    planes: usize,
    slots: u64,
}

impl View {
    #[inline(always)]
    fn slot<K: LineKernel>(self, hash: u64) -> *mut u64 {
        self.base.wrapping_add(K::line(hash, self.slots) as usize * self.planes * LINE_WORDS)
    }

    #[inline(always)]
    fn fetch<K: LineKernel>(self, hash: u64) {
        let slot = self.slot::<K>(hash);
        for plane in 0..self.planes.min(FETCHED) {
            prefetch(slot.wrapping_add(plane * LINE_WORDS));
        }
    }

    /// Fetches the first keys' lines.
    #[inline(always)]
    fn warm<K: LineKernel>(self, hashes: &[u64]) {
        for &hash in &hashes[..AHEAD.min(hashes.len())] {
            self.fetch::<K>(hash);
        }
    }

    /// Fetches the lines of the key [`AHEAD`] of key `i`.
    #[inline(always)]
    fn fetch_next<K: LineKernel>(self, hashes: &[u64], i: usize) {
        if let Some(&next) = hashes.get(i + AHEAD) {
            self.fetch::<K>(next);
        }
    }

    /// The planes that hold `hash`, one bit each.
    ///
    /// # Safety
    /// As [`LineKernel`].
    #[inline(always)]
    unsafe fn held<K: LineKernel>(self, hash: u64) -> u64 {
        let slot = self.slot::<K>(hash);
        let mut held = 0;
        for plane in 0..self.planes {
            // SAFETY: the slot lies inside (`line` maps below `slots`), and so do all its planes.
            held |= u64::from(unsafe { K::contains(slot.wrapping_add(plane * LINE_WORDS), hash) }) << plane;
        }
        held
    }
}

/// The hash a layer takes its pattern from.
#[inline(always)]
fn twisted(hash: u64, plane: usize) -> u64 {
    if plane == 0 {
        return hash;
    }
    let mut x = hash.wrapping_add((plane as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for _ in 0..2 {
        x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    }
    x ^ (x >> 32)
}

/// A loop over keys, written once and compiled for every instruction set.
trait Job {
    type Out;
    /// # Safety
    /// As [`LineKernel`]; the view's words are valid, and nobody else uses them while they are written.
    unsafe fn run<K: LineKernel>(self, view: View) -> Self::Out;
}

struct Find<'a, T>(&'a [u64], T);

impl<T: FnMut(usize, u64)> Job for Find<'_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<K: LineKernel>(self, view: View) {
        let Find(hashes, mut tell) = self;
        view.warm::<K>(hashes);
        for (i, &hash) in hashes.iter().enumerate() {
            view.fetch_next::<K>(hashes, i);
            // SAFETY: the caller's promise, passed on.
            tell(i, unsafe { view.held::<K>(hash) });
        }
    }
}

struct Write<'a, T>(&'a [u64], Rule, T);

impl<T: FnMut(usize, bool)> Job for Write<'_, T> {
    type Out = (usize, u64);

    #[inline(always)]
    unsafe fn run<K: LineKernel>(self, view: View) -> (usize, u64) {
        let Write(hashes, rule, mut tell) = self;
        let counted = if rule.refresh { 1 << rule.active } else { u64::MAX };
        let mut room = rule.room;
        view.warm::<K>(hashes);
        for (i, &hash) in hashes.iter().enumerate() {
            view.fetch_next::<K>(hashes, i);
            // SAFETY: the caller's promise, passed on.
            let held = unsafe { view.held::<K>(hash) };
            if held & counted == 0 {
                if room == 0 {
                    return (i, rule.room);
                }
                room -= 1;
                // SAFETY: as above; `active` is below the number of planes.
                unsafe { K::add(view.slot::<K>(hash).wrapping_add(rule.active * LINE_WORDS), hash) };
            }
            tell(i, held == 0);
        }
        (hashes.len(), rule.room - room)
    }
}

struct Depths<'a, T>(&'a [u64], T);

impl<T: FnMut(usize, usize)> Job for Depths<'_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<K: LineKernel>(self, view: View) {
        let Depths(hashes, mut tell) = self;
        view.warm::<K>(hashes);
        for (i, &hash) in hashes.iter().enumerate() {
            view.fetch_next::<K>(hashes, i);
            let (mut line, mut depth) = (view.slot::<K>(hash), 0);
            // SAFETY: the caller's promise, passed on; the slot has that many lines.
            while depth < view.planes && unsafe { K::contains(line, twisted(hash, depth)) } {
                line = line.wrapping_add(LINE_WORDS);
                depth += 1;
            }
            tell(i, depth);
        }
    }
}

struct Deepen<'a, T>(&'a [u64], T);

impl<T: FnMut(usize, usize)> Job for Deepen<'_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<K: LineKernel>(self, view: View) {
        let Deepen(hashes, mut tell) = self;
        view.warm::<K>(hashes);
        for (i, &hash) in hashes.iter().enumerate() {
            view.fetch_next::<K>(hashes, i);
            let (mut line, mut depth) = (view.slot::<K>(hash), 0);
            // SAFETY: the caller's promise, passed on; a line that has the pattern is not changed.
            while depth < view.planes && !unsafe { K::add(line, twisted(hash, depth)) } {
                line = line.wrapping_add(LINE_WORDS);
                depth += 1;
            }
            tell(i, depth);
        }
    }
}

impl Planes {
    /// `planes` lines a slot, 1 to 64, with `per_column` positions a column, 1 to 3.
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

    /// Tells for each hash which planes hold it, one bit each.
    #[inline(always)]
    pub fn find(&self, words: &[u64], hashes: &[u64], tell: impl FnMut(usize, u64)) {
        self.dispatch(words.as_ptr().cast_mut(), words.len(), Find(hashes, tell));
    }

    /// The planes that hold one hash.
    #[inline(always)]
    pub fn find_one(&self, words: &[u64], hash: u64) -> u64 {
        let mut planes = 0;
        self.find(words, &[hash], |_, held| planes = held);
        planes
    }

    /// Writes hashes in order by `rule` until one finds no room; tells for each whether no plane held
    /// it. Returns how many were looked at, and how many of them were written.
    #[inline(always)]
    pub fn write(&self, words: &mut [u64], rule: Rule, hashes: &[u64], tell: impl FnMut(usize, bool)) -> (usize, u64) {
        assert!(rule.active < self.planes);
        self.dispatch(words.as_mut_ptr(), words.len(), Write(hashes, rule, tell))
    }

    /// Tells for each hash how many leading planes hold it.
    #[inline(always)]
    pub fn depths(&self, words: &[u64], hashes: &[u64], tell: impl FnMut(usize, usize)) {
        self.dispatch(words.as_ptr().cast_mut(), words.len(), Depths(hashes, tell));
    }

    /// Adds each hash to the first plane that does not hold it; tells how many held it before.
    #[inline(always)]
    pub fn deepen(&self, words: &mut [u64], hashes: &[u64], tell: impl FnMut(usize, usize)) {
        self.dispatch(words.as_mut_ptr(), words.len(), Deepen(hashes, tell));
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

    #[inline(always)]
    fn dispatch<J: Job>(&self, base: *mut u64, len: usize, job: J) -> J::Out {
        let view = View { base, planes: self.planes, slots: (len / (self.planes * LINE_WORDS)) as u64 };
        assert!(view.slots > 0 && (base as usize).is_multiple_of(LINE_BYTES));
        match self.per_column {
            1 => on::<Columns<1>, J>(view, job),
            2 => on::<Columns<2>, J>(view, job),
            _ => on::<Columns<3>, J>(view, job),
        }
    }
}

#[inline(always)]
fn on<S: LineScheme, J: Job>(view: View, job: J) -> J::Out {
    if Isa::current() == Isa::Portable {
        // SAFETY: plain Rust; the view spans whole slots of a slice that the caller borrowed, for
        // writing if the job writes.
        unsafe { job.run::<S::Portable>(view) }
    } else {
        // SAFETY: the vector set was detected; otherwise as above.
        unsafe { vector::<S::Vector, J>(view, job) }
    }
}

/// The loop compiled for the vector set.
///
/// # Safety
/// As [`Job::run`], and AVX2 must be present on x86-64.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
unsafe fn vector<K: LineKernel, J: Job>(view: View, job: J) -> J::Out {
    // SAFETY: the caller's promise, passed on.
    unsafe { job.run::<K>(view) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::Memory;

    fn zeroed(lines: u64) -> Memory {
        Memory::zeroed(lines * 8).unwrap()
    }

    fn hashes(n: u64) -> Vec<u64> {
        (1..=n).map(|i| twisted(i, 1)).collect()
    }

    #[test]
    fn one_plane_is_a_line_filter() {
        let keys = hashes(500);
        let (mut a, mut b) = (zeroed(64), zeroed(64));
        let (words, lines) = (a.words_mut().unwrap(), b.words_mut().unwrap());
        let planes = Planes::new(1, 2).unwrap();
        let rule = Rule { active: 0, room: u64::MAX, refresh: true };
        let (done, written) = planes.write(words, rule, &keys, |_, _| {});
        let new = super::super::lines::add::<Columns<2>>(lines, &keys, |_, _| {});
        assert_eq!((done, written), (500, new));
        assert_eq!(words, lines);
    }

    #[test]
    fn writing_stops_where_there_is_no_room() {
        let keys = hashes(100);
        let mut memory = zeroed(3 * 64);
        let words = memory.words_mut().unwrap();
        let planes = Planes::new(3, 3).unwrap();
        let mut told = 0;
        let rule = Rule { active: 1, room: 40, refresh: true };
        assert_eq!(planes.write(words, rule, &keys, |_, _| told += 1), (40, 40));
        assert_eq!(told, 40);
        assert!(keys[..40].iter().all(|&key| planes.find_one(words, key) == 2));
        planes.clear(words, 0);
        assert!(planes.ones(words, 1) > 0 && planes.ones(words, 0) == 0);
        planes.clear(words, 1);
        assert!(words.iter().all(|&word| word == 0));
    }

    #[test]
    fn portable_and_vector_loops_set_the_same_bits() {
        let keys = hashes(300);
        for per_column in 1..=3 {
            let planes = Planes::new(5, per_column).unwrap();
            let run = || {
                let mut memory = zeroed(5 * 20);
                let words = memory.words_mut().unwrap();
                let mut told = Vec::new();
                planes.deepen(words, &keys, |_, depth| told.push(depth));
                planes.deepen(words, &keys[..100], |_, depth| told.push(depth));
                planes.depths(words, &keys, |_, depth| told.push(depth));
                (memory.words().to_vec(), told)
            };
            let best = run();
            let view_run = {
                let mut memory = zeroed(5 * 20);
                let words = memory.words_mut().unwrap();
                let view = View { base: words.as_mut_ptr(), planes: 5, slots: 20 };
                // SAFETY: plain Rust over a vector of 20 slots.
                unsafe {
                    match per_column {
                        1 => Deepen(&keys, |_, _| {}).run::<super::super::columns::Portable<1>>(view),
                        2 => Deepen(&keys, |_, _| {}).run::<super::super::columns::Portable<2>>(view),
                        _ => Deepen(&keys, |_, _| {}).run::<super::super::columns::Portable<3>>(view),
                    }
                };
                words.to_vec()
            };
            let mut memory = zeroed(5 * 20);
            let again = memory.words_mut().unwrap();
            planes.deepen(again, &keys, |_, _| {});
            assert_eq!(view_run, again.to_vec());
            assert!(best.1[300..400].iter().all(|&depth| depth >= 1));
        }
    }
}
