//! Many keys at once: chunks that stay in the first-level cache, on one thread or several.

pub use crate::key::source::CHUNK;
use crate::key::{Domain, KeyDomains};
use crate::parallel::workers;
use crate::structure::{Filter, HashSource};

/// Below this a second thread costs more than it brings (30 us to start, 10 ns per key).
const KEYS_PER_THREAD: usize = 1 << 17;

/// Keys that a thread looks up at a time: 0.15 to 0.8 ms in a Bloom filter, some ten times the start of a thread.
pub const KEYS_A_PART: usize = 1 << 15;

/// The number of threads worth using for `keys` if `asked` are allowed.
pub fn useful_threads(asked: usize, keys: usize) -> usize {
    asked.clamp(1, 256).min(keys / KEYS_PER_THREAD).max(1)
}

/// Checks the keys `start..start + found.len()` of `source`.
pub fn contains<F: Filter>(filter: &F, source: &dyn HashSource, start: usize, found: &mut [u8]) {
    let mut hashes = [0u64; CHUNK];
    for (i, found) in found.chunks_mut(CHUNK).enumerate() {
        let hashes = &mut hashes[..found.len()];
        source.fill(start + i * CHUNK, hashes);
        filter.contains_hashes(hashes, found);
    }
}

/// [`contains`] of keys in parts, which threads take one after the other.
pub fn contains_threads<F: Filter>(
    filter: &F,
    source: &dyn HashSource,
    start: usize,
    found: &mut [u8],
    threads: usize,
) {
    let threads = useful_threads(threads, found.len());
    if threads == 1 {
        return contains(filter, source, start, found);
    }
    let parts = found.chunks_mut(KEYS_A_PART).enumerate();
    workers::queue(parts, threads, |(i, found)| contains(filter, source, start + i * KEYS_A_PART, found));
}

/// One answer of `ask` for each of the keys `start..start + out.len()` of `source`, in parts that threads take one after the
/// other.
pub fn ask_threads<T: Send>(
    source: &dyn HashSource,
    start: usize,
    out: &mut [T],
    threads: usize,
    ask: &(dyn Fn(&[u64], &mut [T]) + Sync),
) {
    let threads = useful_threads(threads, out.len());
    let part = |start: usize, out: &mut [T]| {
        let mut hashes = [0u64; CHUNK];
        for (i, out) in out.chunks_mut(CHUNK).enumerate() {
            let hashes = &mut hashes[..out.len()];
            source.fill(start + i * CHUNK, hashes);
            ask(hashes, out);
        }
    };
    if threads == 1 {
        return part(start, out);
    }
    workers::queue(out.chunks_mut(KEYS_A_PART).enumerate(), threads, |(i, out)| part(start + i * KEYS_A_PART, out));
}

/// A part of another source.
pub struct Part<'a> {
    /// The whole.
    pub source: &'a dyn HashSource,
    /// First key.
    pub start: usize,
    /// Number of keys.
    pub len: usize,
}

impl HashSource for Part<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn fill(&self, start: usize, out: &mut [u64]) {
        self.source.fill(self.start + start, out);
    }

    fn domains(&self) -> KeyDomains {
        self.source.domains()
    }

    fn each_key(&self, start: usize, count: usize, take: &mut dyn FnMut(Domain, &[u8])) -> bool {
        self.source.each_key(self.start + start, count, take)
    }

    fn as_words(&self) -> Option<&[[u8; 8]]> {
        self.source.as_words().map(|words| &words[self.start..self.start + self.len])
    }
}
