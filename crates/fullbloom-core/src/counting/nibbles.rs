//! Counters of a key in one 64-byte line: one in each of k lanes, k = 4 or 8.
//!
//! With `w` the bits of a counter (2, 4, 8 or 16), `c = 64 / w` the counters of a word, and `h` the
//! hash of the key:
//!
//! ```text
//! line = fastrange(h, num_lines)                          top bits of h
//! g    = h * M1 mod 2^64                                  M1 of scheme 2, `columns`
//! k=8: b = log2 c,  counter (g >> (64 - b(j+1))) mod c of word j,          j = 0..7
//! k=4: b = 1 + log2 c,  p = (g >> (64 - b(j+1))) mod 2c,
//!      counter p mod c of word j + 4 (p / c),                              j = 0..3
//! ```
//!
//! A counter at its maximum never changes again. All loops are plain Rust over whole words, compiled
//! twice: for any machine and for the vector set of this one.

use crate::cells::LINE_WORDS;
use crate::isa::prefetch;
use crate::scheme::ahead::{Visit, each, fetched};
use crate::scheme::fastrange;
use crate::scheme::pattern::InstructionSet;

/// The multiplier of `columns`.
const M1: u64 = 0xd134_2543_de82_ef95;
/// Lines fetched ahead of the current key: 8.4 ns per lookup in 57 MB, with 32 lines 8.9.
const AHEAD: usize = 64;

type Line = [u64; LINE_WORDS];

/// The lines of a filter with counters of `width` bits and `lanes` counters per key.
#[derive(Clone, Copy, Debug)]
pub struct Nibbles {
    width: u32,
    lanes: u32,
}

/// Counters of W bits, K a key.
struct Key<const W: u32, const K: usize> {
    bits: u64,
}

impl<const W: u32, const K: usize> Key<W, K> {
    const MAX: u64 = u64::MAX >> (64 - W);
    /// log2 of the counters of a word.
    const LOG: u32 = (64 / W).trailing_zeros();

    #[inline(always)]
    fn new(hash: u64) -> Self {
        Key { bits: hash.wrapping_mul(M1) }
    }

    /// Shift of counter `j` in its word, and, for a lane of two words, all ones for the second.
    #[inline(always)]
    fn place(&self, j: usize) -> (u64, u64) {
        let b = if K == LINE_WORDS { Self::LOG } else { Self::LOG + 1 };
        let p = self.bits >> (64 - b * (j as u32 + 1));
        let shift = (p & ((1 << Self::LOG) - 1)) << W.trailing_zeros();
        (shift, if K == LINE_WORDS { 0 } else { 0u64.wrapping_sub((p >> Self::LOG) & 1) })
    }

    /// The values of the key's counters.
    #[inline(always)]
    fn values(&self, line: &Line) -> [u64; K] {
        let mut values = [0; K];
        for (j, value) in values.iter_mut().enumerate() {
            let (shift, second) = self.place(j);
            let word = if K == LINE_WORDS { line[j] } else { (line[j] & !second) | (line[j + 4] & second) };
            *value = (u64::from_le(word) >> shift) & Self::MAX;
        }
        values
    }

    /// Adds `step`, 1 or -1, to each counter whose value, as in `values`, is below the maximum.
    #[inline(always)]
    fn step(&self, line: &mut Line, values: [u64; K], step: u64) {
        for (j, value) in values.into_iter().enumerate() {
            let (shift, second) = self.place(j);
            let change = (if value == Self::MAX { 0 } else { step }) << shift;
            line[j] = u64::from_le(line[j]).wrapping_add(change & !second).to_le();
            if K != LINE_WORDS {
                line[j + 4] = u64::from_le(line[j + 4]).wrapping_add(change & second).to_le();
            }
        }
    }

    /// The least of the counters.
    #[inline(always)]
    fn least(&self, line: &Line) -> u64 {
        self.values(line).into_iter().fold(u64::MAX, u64::min)
    }

    /// True if every counter is `least` or more.
    #[inline(always)]
    fn reaches(&self, line: &Line, least: u64) -> bool {
        self.values(line).into_iter().fold(0, |below, value| below | u64::from(value < least)) == 0
    }

    /// Increments each counter below the maximum; true if one was 0.
    #[inline(always)]
    fn add(&self, line: &mut Line) -> bool {
        let values = self.values(line);
        self.step(line, values, 1);
        values.into_iter().fold(0, |zeros, value| zeros | u64::from(value == 0)) != 0
    }

    /// Decrements each counter below the maximum, unless one is 0; reports whether none was, and whether one is now.
    #[inline(always)]
    fn remove(&self, line: &mut Line) -> (bool, bool) {
        let values = self.values(line);
        let any = |least| values.into_iter().fold(0, |any, value| any | u64::from(value == least)) != 0;
        if any(0) {
            return (false, false);
        }
        self.step(line, values, u64::MAX);
        (true, any(1))
    }
}

#[rustfmt::skip] // one arm a line
/// Runs `$work` with width and number of lanes as constants.
macro_rules! with_constants {
    ($nibbles:expr, $W:ident, $K:ident => $work:expr) => {
        match ($nibbles.width, $nibbles.lanes) {
            (2, 4) => { const $W: u32 = 2; const $K: usize = 4; $work }
            (2, _) => { const $W: u32 = 2; const $K: usize = 8; $work }
            (4, 4) => { const $W: u32 = 4; const $K: usize = 4; $work }
            (4, _) => { const $W: u32 = 4; const $K: usize = 8; $work }
            (8, 4) => { const $W: u32 = 8; const $K: usize = 4; $work }
            (8, _) => { const $W: u32 = 8; const $K: usize = 8; $work }
            (_, 4) => { const $W: u32 = 16; const $K: usize = 4; $work }
            (_, _) => { const $W: u32 = 16; const $K: usize = 8; $work }
        }
    };
}

impl Nibbles {
    /// The counters of `hash` among `cells`, one in each lane.
    pub fn positions(&self, cells: u64, hash: u64) -> Vec<u64> {
        let (a_word, words) = (64 / u64::from(self.width), LINE_WORDS as u64);
        let first = fastrange(hash, cells / (a_word * words)) * words;
        with_constants!(self, W, K => {
            let key = Key::<W, K>::new(hash);
            (0..K).map(|j| {
                let (shift, second) = key.place(j);
                (first + j as u64 + (second & 4)) * a_word + shift / u64::from(self.width)
            }).collect()
        })
    }
}

/// The line of `hash`; `None` only if there are no lines.
#[inline(always)]
fn line_of(lines: &[Line], hash: u64) -> Option<&Line> {
    lines.get(fastrange(hash, lines.len() as u64) as usize)
}

/// [`line_of`] for writing.
#[inline(always)]
fn line_of_mut(lines: &mut [Line], hash: u64) -> Option<&mut Line> {
    lines.get_mut(fastrange(hash, lines.len() as u64) as usize)
}

#[inline(always)]
fn fetch_line(lines: &[Line], hash: u64) {
    prefetch(lines.as_ptr().wrapping_add(fastrange(hash, lines.len() as u64) as usize).cast());
}

/// Reports which keys have no counter below `least`.
struct Reach<'a, const W: u32, const K: usize> {
    lines: &'a [Line],
    least: u64,
    found: &'a mut [u8],
}

impl<const W: u32, const K: usize> Visit for Reach<'_, W, K> {
    fetched! { AHEAD; this, hash => fetch_line(this.lines, hash) }

    #[inline(always)]
    fn visit<I: InstructionSet>(&mut self, _: I, i: usize, hash: u64) -> bool {
        if let Some(line) = line_of(self.lines, hash) {
            self.found[i] = u8::from(Key::<W, K>::new(hash).reaches(line, self.least));
        }
        true
    }
}

/// Reports the smallest counter of keys.
struct Count<'a, const W: u32, const K: usize> {
    lines: &'a [Line],
    counts: &'a mut [u64],
}

impl<const W: u32, const K: usize> Visit for Count<'_, W, K> {
    fetched! { AHEAD; this, hash => fetch_line(this.lines, hash) }

    #[inline(always)]
    fn visit<I: InstructionSet>(&mut self, _: I, i: usize, hash: u64) -> bool {
        if let Some(line) = line_of(self.lines, hash) {
            self.counts[i] = Key::<W, K>::new(hash).least(line);
        }
        true
    }
}

/// Adds or removes keys; `mask`, if given, records whether each was new, or present.
struct Change<'a, const W: u32, const K: usize, const ADD: bool> {
    lines: &'a mut [Line],
    mask: Option<&'a mut [u8]>,
    /// Keys that were new, or present.
    count: u64,
    /// Keys that were present and are absent now.
    gone: u64,
}

impl<const W: u32, const K: usize, const ADD: bool> Visit for Change<'_, W, K, ADD> {
    fetched! { AHEAD; this, hash => fetch_line(this.lines, hash) }

    #[inline(always)]
    fn visit<I: InstructionSet>(&mut self, _: I, i: usize, hash: u64) -> bool {
        if let Some(line) = line_of_mut(self.lines, hash) {
            let key = Key::<W, K>::new(hash);
            let (counted, gone) = if ADD { (key.add(line), false) } else { key.remove(line) };
            self.count += u64::from(counted);
            self.gone += u64::from(gone);
            if let Some(mask) = &mut self.mask {
                mask[i] = u8::from(counted);
            }
        }
        true
    }
}

impl Nibbles {
    /// For counters of `width` bits, a power of two from 2 to 16, and `lanes` (4 or 8) of them a key.
    pub fn new(width: u32, lanes: u32) -> Self {
        Nibbles { width, lanes }
    }

    /// The least counter of one hash.
    #[inline(always)]
    pub fn count_one(&self, words: &[u64], hash: u64) -> u64 {
        let Some(line) = line_of(words.as_chunks().0, hash) else { return 0 };
        with_constants!(self, W, K => Key::<W, K>::new(hash).least(line))
    }

    /// Adds one hash; true if it was new.
    #[inline(always)]
    pub fn add_one(&self, words: &mut [u64], hash: u64) -> bool {
        let Some(line) = line_of_mut(words.as_chunks_mut().0, hash) else { return false };
        with_constants!(self, W, K => Key::<W, K>::new(hash).add(line))
    }

    /// Removes one hash unless it is certainly absent; reports whether it did, and whether the hash is absent now.
    #[inline(always)]
    pub fn remove_one(&self, words: &mut [u64], hash: u64) -> (bool, bool) {
        let Some(line) = line_of_mut(words.as_chunks_mut().0, hash) else { return (false, false) };
        with_constants!(self, W, K => Key::<W, K>::new(hash).remove(line))
    }

    /// Writes 1 into `found` for each hash whose counters are all `least` or more, else 0.
    pub fn reach_all(&self, words: &[u64], hashes: &[u64], least: u64, found: &mut [u8]) {
        let lines = words.as_chunks().0;
        with_constants!(self, W, K => { each(hashes, Reach::<W, K> { lines, least, found }); })
    }

    /// The least counter of each hash.
    pub fn count_all(&self, words: &[u64], hashes: &[u64], counts: &mut [u64]) {
        let lines = words.as_chunks().0;
        with_constants!(self, W, K => { each(hashes, Count::<W, K> { lines, counts }); })
    }

    /// Adds each hash; the number of new ones.
    pub fn add_all(&self, words: &mut [u64], hashes: &[u64], new: Option<&mut [u8]>) -> u64 {
        let lines = words.as_chunks_mut().0;
        with_constants!(self, W, K => each(hashes, Change::<W, K, true> { lines, mask: new, count: 0, gone: 0 }).1.count)
    }

    /// Removes each hash that is not certainly absent; how many there were, and how many of them
    /// are absent now.
    pub fn remove_all(&self, words: &mut [u64], hashes: &[u64], removed: Option<&mut [u8]>) -> (u64, u64) {
        let lines = words.as_chunks_mut().0;
        with_constants!(self, W, K => {
            let (_, done) = each(hashes, Change::<W, K, false> { lines, mask: removed, count: 0, gone: 0 });
            (done.count, done.gone)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::on_each;

    #[test]
    fn portable_and_vector_loops_agree_with_a_model_of_single_counters() {
        for width in [2u32, 4, 8, 16] {
            for lanes in [4u32, 8] {
                let nibbles = Nibbles::new(width, lanes);
                let hashes: Vec<u64> =
                    (0..3000u64).map(|i| (i % 900).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
                let mut results = Vec::new();
                on_each(|_| {
                    let (mut words, mut new, mut gone) = (vec![0u64; 40], vec![0; 3000], vec![0; 700]);
                    nibbles.add_all(&mut words, &hashes, Some(&mut new));
                    nibbles.remove_all(&mut words, &hashes[..700], Some(&mut gone));
                    results.push((words, new, gone));
                });
                assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "{width} {lanes}");
                let (c, max) = (64 / width, u64::MAX >> (64 - width));
                let b = c.trailing_zeros() + u32::from(lanes == 4);
                let mut model = vec![0u64; 40 * c as usize];
                let cells = |hash: u64| -> Vec<usize> {
                    let (line, g) = (fastrange(hash, 5), hash.wrapping_mul(M1));
                    let place = |j: u32| {
                        let p = (g >> (64 - b * (j + 1))) & ((1 << b) - 1);
                        let word = if lanes == 8 { u64::from(j) } else { u64::from(j) + 4 * (p / u64::from(c)) };
                        ((line * 8 + word) * u64::from(c) + p % u64::from(c)) as usize
                    };
                    (0..lanes).map(place).collect()
                };
                for &hash in &hashes {
                    cells(hash).into_iter().for_each(|i| model[i] = (model[i] + 1).min(max));
                }
                for &hash in &hashes[..700] {
                    if cells(hash).into_iter().all(|i| model[i] > 0) {
                        cells(hash)
                            .into_iter()
                            .filter(|&i| model[i] < max)
                            .collect::<Vec<_>>()
                            .into_iter()
                            .for_each(|i| model[i] -= 1);
                    }
                }
                let packed = crate::cells::PackedCells::new(width).unwrap();
                assert!((0..model.len()).all(|i| packed.get(&results[0].0, i as u64) == model[i]), "{width} {lanes}");
            }
        }
    }
}
