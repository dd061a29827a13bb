//! Probe kernels: k positions anywhere in the filter, or one in each of k slices.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::cells::bits::mask;
use crate::isa::prefetch;
use crate::source::{CHUNK, HashSource};
use crate::team;

/// Keys fetched ahead; each asks for k lines, and a core has 10 to 12 line-fill buffers.
const AHEAD: usize = 8;
/// Below 4 MiB every thread's look at every key costs more than the cache misses they share (two threads
/// on 1.2 MB: 0.9x, on 12 MB: 1.2x).
pub const SHARED_FROM_WORDS: usize = 1 << 19;
/// Keys whose positions are picked together.
const PACK: usize = 32;
/// Most probes of a key.
pub const MOST_HASHES: u32 = 64;
/// Positions within a part, each above the number of its key in the pack.
type Picked = [u64; PACK * MOST_HASHES as usize + 1];
/// Keys whose flags several threads raise before they are counted: 4 MiB.
const FLAGGED: usize = 1 << 22;

/// Successive positions of one hash below `range`.
pub trait Sequence: Copy {
    /// The sequence of `hash`.
    fn start(hash: u64, range: u64) -> Self;
    /// The next position.
    fn next(&mut self) -> u64;
}

/// Where probes fall: `classic` has one range of all bits (`stride` 0), `partitioned` a slice of
/// `range` bits for each probe (`stride` = `range`).
#[derive(Clone, Copy, Debug)]
pub struct ProbeKernel {
    /// Bits a probe chooses from.
    pub range: u64,
    /// Distance between the starts of successive ranges.
    pub stride: u64,
    /// k.
    pub num_hashes: u32,
}

impl ProbeKernel {
    /// True when all cells of `hash` are set.
    #[inline(always)]
    pub fn contains<S: Sequence>(&self, words: &[u64], hash: u64) -> bool {
        let mut sequence = S::start(hash, self.range);
        let mut offset = 0;
        for _ in 0..self.num_hashes {
            let bit = offset + sequence.next();
            if words[(bit >> 6) as usize] & mask(bit) == 0 {
                return false;
            }
            offset += self.stride;
        }
        true
    }

    /// Sets all cells of `hash`; true when one of them was clear.
    #[inline(always)]
    pub fn add<S: Sequence>(&self, words: &mut [u64], hash: u64) -> bool {
        let mut sequence = S::start(hash, self.range);
        let (mut offset, mut missing) = (0u64, 0);
        for _ in 0..self.num_hashes {
            let bit = offset + sequence.next();
            let word = &mut words[(bit >> 6) as usize];
            missing |= mask(bit) & !*word;
            *word |= mask(bit);
            offset += self.stride;
        }
        missing != 0
    }

    /// [`ProbeKernel::contains`], a call of its own: inlined into the scalar entry points, the loops of
    /// three sequences would take the registers of the line kernels.
    #[inline(never)]
    pub fn contains_one<S: Sequence>(&self, words: &[u64], hash: u64) -> bool {
        self.contains::<S>(words, hash)
    }

    /// [`ProbeKernel::add`] to a whole filter, likewise.
    #[inline(never)]
    pub fn add_one<S: Sequence>(&self, words: &mut [u64], hash: u64) -> bool {
        self.add::<S>(words, hash)
    }

    #[inline(always)]
    fn fetch<S: Sequence>(&self, words: &[u64], hash: u64) {
        let mut sequence = S::start(hash, self.range);
        let mut offset = 0;
        for _ in 0..self.num_hashes {
            prefetch(words.as_ptr().wrapping_add(((offset + sequence.next()) >> 6) as usize));
            offset += self.stride;
        }
    }

    /// Checks `hashes` in order.
    pub fn contains_all<S: Sequence>(&self, words: &[u64], hashes: &[u64], found: &mut [u8]) {
        hashes.iter().take(AHEAD).for_each(|&hash| self.fetch::<S>(words, hash));
        for (i, (&hash, found)) in hashes.iter().zip(found).enumerate() {
            if let Some(&next) = hashes.get(i + AHEAD) {
                self.fetch::<S>(words, next);
            }
            *found = u8::from(self.contains::<S>(words, hash));
        }
    }

    /// Adds `hashes` in order; tells for each whether it was new, returns how many were.
    pub fn add_all<S: Sequence>(&self, words: &mut [u64], hashes: &[u64], mut tell: impl FnMut(usize, bool)) -> u64 {
        let mut count = 0;
        hashes.iter().take(AHEAD).for_each(|&hash| self.fetch::<S>(words, hash));
        for (i, &hash) in hashes.iter().enumerate() {
            if let Some(&next) = hashes.get(i + AHEAD) {
                self.fetch::<S>(words, next);
            }
            let new = self.add::<S>(words, hash);
            count += u64::from(new);
            tell(i, new);
        }
        count
    }

    /// Adds up to [`PACK`] hashes, in order, to the part of a filter in `words`, whose first bit is number
    /// `first`; tells for each hash that changed a bit there.
    ///
    /// Positions in the part are picked first and without a branch: whether a probe falls there is a
    /// coin toss, and k wrong guesses a key made two threads two to four times slower than one.
    #[inline(always)]
    fn add_pack<S: Sequence>(
        &self,
        words: &mut [u64],
        first: u64,
        hashes: &[u64],
        picked: &mut Picked,
        mut tell: impl FnMut(usize),
    ) {
        let (mut len, bits) = (0, words.len() as u64 * 64);
        for (i, &hash) in hashes.iter().take(PACK).enumerate() {
            let mut sequence = S::start(hash, self.range);
            let mut offset = 0u64;
            for _ in 0..self.num_hashes.min(MOST_HASHES) {
                let bit = (offset + sequence.next()).wrapping_sub(first);
                picked[len] = bit << PACK.ilog2() | i as u64;
                len += usize::from(bit < bits);
                offset += self.stride;
            }
        }
        for &pick in &picked[..len] {
            prefetch(words.as_ptr().wrapping_add((pick >> PACK.ilog2() >> 6) as usize));
        }
        let mut changed = [0u64; PACK];
        for &pick in &picked[..len] {
            let (bit, key) = (pick >> PACK.ilog2(), pick as usize % PACK);
            let word = &mut words[(bit >> 6) as usize];
            changed[key] |= mask(bit) & !*word;
            *word |= mask(bit);
        }
        changed.iter().enumerate().filter(|(_, changed)| **changed != 0).for_each(|(i, _)| tell(i));
    }
}

/// Adds all keys of `source` on several threads; marks the new ones in `new`, returns how many there
/// were.
///
/// Probes of a key fall anywhere, so each thread owns a range of words and looks at every key.
/// Several may change bits of one key: each raises its flag, none lowers it.
pub fn add_threads<S: Sequence>(
    probe: &ProbeKernel,
    words: &mut [u64],
    source: &dyn HashSource,
    threads: usize,
    mut new: Option<&mut [u8]>,
) -> u64 {
    let share = words.len().div_ceil(threads).max(1);
    let (mut flags, mut count, mut start): (Vec<AtomicU8>, _, _) = (Vec::new(), 0, 0);
    while start < source.len() {
        let end = source.len().min(start + FLAGGED);
        // Plain loops over plain bytes, which the compiler turns into vectors: with the flags
        // grown, counted and copied key by key, two threads gained nothing over one.
        flags.iter_mut().for_each(|flag| *flag.get_mut() = 0);
        flags.resize_with(end - start, || AtomicU8::new(0));
        team::share(words.chunks_mut(share).collect(), |owner, words| {
            add_share::<S>(probe, words, (owner * share) as u64 * 64, source, start, &flags);
        });
        count += flags.iter_mut().map(|flag| u64::from(*flag.get_mut())).sum::<u64>();
        if let Some(new) = new.as_deref_mut() {
            new[start..end].iter_mut().zip(&mut flags).for_each(|(new, flag)| *new = *flag.get_mut());
        }
        start = end;
    }
    count
}

/// Adds the keys from `start` on, one a flag, to the part of the filter in `words`.
fn add_share<S: Sequence>(
    probe: &ProbeKernel,
    words: &mut [u64],
    first: u64,
    source: &dyn HashSource,
    start: usize,
    flags: &[AtomicU8],
) {
    let (mut hashes, mut picked): (_, Picked) = ([0u64; CHUNK], [0; _]);
    for (i, flags) in flags.chunks(CHUNK).enumerate() {
        let hashes = &mut hashes[..flags.len()];
        source.fill(start + i * CHUNK, hashes);
        for (hashes, flags) in hashes.chunks(PACK).zip(flags.chunks(PACK)) {
            probe.add_pack::<S>(words, first, hashes, &mut picked, |i| flags[i].store(1, Ordering::Relaxed));
        }
    }
}
