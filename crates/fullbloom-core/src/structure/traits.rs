//! The operations of a structure, as traits. A structure implements those that it supports, and its Python class has
//! the matching methods.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::cells::Memory;
use crate::container::{self, Container, Header};
use crate::error::{Error, Result};
use crate::growth::Growth;
use crate::key::source::CHUNK;
pub use crate::key::source::HashSource;
use crate::key::{KeyDomains, KeyHasher};
use crate::scheme::ahead::{answer_ahead, change_ahead};
use crate::sizing::Law;
use crate::sizing::chain::Member;
use crate::structure::{CellCounts, CellStats, Job};

/// Answers membership for 64-bit hashes.
pub trait Filter: Send + Sync + Sized {
    /// How keys become hashes, and the domains of those that were added.
    fn hasher(&self) -> &KeyHasher;
    /// [`Filter::hasher`], for the domains of keys to be recorded.
    fn hasher_mut(&mut self) -> &mut KeyHasher;
    /// Records the domains of keys that were added.
    #[inline(always)]
    fn record(&mut self, domains: KeyDomains) {
        self.hasher_mut().domains_mut().insert(domains);
    }
    /// True if a lookup of keys of these domains needs no warning.
    #[inline(always)]
    fn expects(&self, domains: KeyDomains) -> bool {
        self.hasher().domains().expects(domains)
    }
    /// False: the key was never added. True: it probably was.
    fn contains_hash(&self, hash: u64) -> bool;
    /// [`Filter::contains_hash`] as 1 or 0, as the interpreter wants it.
    #[inline(always)]
    fn look(&self, hash: u64) -> i32 {
        i32::from(self.contains_hash(hash))
    }
    /// Keys between [`Filter::fetch`] and the lookup or change, in batches.
    const AHEAD: usize = 0;
    /// Prefetches the memory of a key.
    #[inline(always)]
    fn fetch(&self, _hash: u64) {}
    /// One answer (0 or 1) a hash; the slices are equally long.
    fn contains_hashes(&self, hashes: &[u64], found: &mut [u8]) {
        answer_ahead(Self::AHEAD, hashes, found, |hash| self.fetch(hash), |hash| u8::from(self.contains_hash(hash)));
    }
    /// Keys the structure was sized for.
    fn capacity(&self) -> u64;
    /// The rate requested at capacity.
    fn target_fpr(&self) -> f64;
    /// Keys that were new when they were added, less those removed.
    fn num_added(&self) -> u64;
    /// Model rate of false positives at the present load.
    fn fpr(&self) -> f64;
    /// Model rate of false positives at `items` distinct keys, if the structure has such a law.
    fn fpr_at(&self, items: f64) -> Option<f64> {
        self.occupancy().map(|(law, _)| law.fpr(items))
    }
    /// Its effect on later stages, as a stage of a chain that holds each key once.
    fn member(&self) -> Member {
        match self.occupancy() {
            Some((law, fill)) => Member::of_cells(self.fpr(), law.as_ref(), fill),
            None => Member::of_rate(self.fpr()),
        }
    }
    /// The rate at `items` keys, up to a constant factor; that of fingerprints is proportional to their number.
    fn relative_fpr(&self, items: f64) -> f64 {
        items
    }
    /// Law and fill of the cells that lookups read, if keys leave nothing but set cells.
    fn occupancy(&self) -> Option<(Box<dyn Law>, f64)> {
        None
    }
    /// Share of set cells, counted.
    fn fill(&self) -> f64;
    /// [`Filter::fill`], [`Filter::fpr`] and [`Filter::estimate_count`] from one count of the cells, where one suffices.
    fn cell_stats(&self) -> CellStats {
        let (mut counts, sections) = (CellCounts::default(), self.container().sections);
        let steps = self.count_steps().unwrap_or_default();
        for (at, (section, _)) in sections.iter().zip(steps).enumerate().filter(|(_, (_, step))| *step > 0) {
            self.count_words(at, 0..section.bytes.len().div_ceil(8), &mut counts);
        }
        self.stats_of(&counts)
    }
    /// For each section of its file, the number of words to whose multiples a slice of a count must extend; 0 for a
    /// section that need not be counted. `None` if the cells can only be counted at once.
    fn count_steps(&self) -> Option<Vec<usize>> {
        None
    }
    /// Counts the cells in these words of a section. The sums of all slices give [`Filter::stats_of`].
    fn count_words(&self, _section: usize, _words: Range<usize>, _counts: &mut CellCounts) {}
    /// [`Filter::cell_stats`], given the counts of all cells.
    fn stats_of(&self, _counts: &CellCounts) -> CellStats {
        CellStats { fill: self.fill(), fpr: self.fpr(), estimated: self.estimate_count(), ..CellStats::default() }
    }
    /// Differs if cells were cleared by additions, so that slices counted before and after do not add up.
    fn num_expired(&self) -> u64 {
        0
    }
    /// The law of the set bits and the number of all bits, if the cells are bits of one section and their fill determines
    /// the rate.
    fn law_of_bits(&self) -> Option<(Box<dyn Law>, u64)> {
        None
    }
    /// The model rate by [`Filter::num_added`] alone, without reading the cells, if there is a law for it.
    fn fpr_by_count(&self) -> Option<f64> {
        None
    }
    /// Bytes of its cells.
    fn nbytes(&self) -> u64;
    /// Estimated number of distinct keys with its standard deviation, if the cells allow one.
    fn estimate_count(&self) -> Option<(f64, f64)> {
        None
    }
    /// Estimated share of members that lookups miss, if the cells allow one.
    fn estimate_missed(&self) -> Option<f64> {
        None
    }
    /// The structure as a file; fails only on bytes that cannot be borrowed.
    fn container(&self) -> Container<'_>;
    /// Writes the structure to `path`, atomically.
    fn save(&self, path: &Path) -> Result<()> {
        container::save(&self.container(), path)
    }
    /// Calls `word` with the section and the index of each word that adding or removing one of the keys may write.
    /// Returns false if that may write anywhere; an empty batch is enough to find out.
    fn writes(&self, _hashes: &[u64], _word: &mut dyn FnMut(usize, usize)) -> bool {
        false
    }
    /// An independent copy in memory of its own.
    fn try_clone(&self) -> Result<Self>;
    /// Same parameters, same hash, same cells.
    fn same_as(&self, other: &Self) -> bool;
}

/// Takes new keys.
pub trait Addable: Filter {
    /// Adds; true if the key was certainly new.
    fn add_hash(&mut self, hash: u64) -> Result<bool>;
    /// Adds in order. `new`, if given, is as long as `hashes` and gets 1 for each new key. Keys
    /// before one that is refused are added.
    fn add_hashes(&mut self, hashes: &[u64], new: Option<&mut [u8]>) -> Result<()> {
        change_ahead(Self::AHEAD, self, hashes, new, Self::fetch, Self::add_hash)
    }
    /// Adds, in order, the keys that are absent, at most [`CHUNK`], and marks them in `new`: for a stage, which holds
    /// no copies. Returns the number of keys processed: all, or those before one for which there was no space.
    fn add_missing(&mut self, hashes: &[u64], new: &mut [u8]) -> Result<usize> {
        // This lookup of all keys also fetches their cells.
        let mut found = [0u8; CHUNK];
        let found = &mut found[..hashes.len()];
        self.contains_hashes(hashes, found);
        for (i, (&hash, &found)) in hashes.iter().zip(found.iter()).enumerate() {
            let missing = found == 0 && !self.contains_hash(hash);
            if missing {
                match self.add_hash(hash) {
                    Ok(_) => {}
                    // Otherwise a fresh stage that accepts no key would be opened again and again.
                    Err(Error::Capacity(_)) if self.num_added() > 0 => return Ok(i),
                    Err(error) => return Err(error),
                }
            }
            new[i] = u8::from(missing);
        }
        Ok(hashes.len())
    }
    /// True when [`Addable::add_source`] uses several threads.
    const ADDS_ON_THREADS: bool = false;
    /// Adds in order, on several threads if the structure can; same bits and same answers as on one thread.
    fn add_source(&mut self, source: &dyn HashSource, _threads: usize, new: Option<&mut [u8]>) -> Result<()> {
        self.expect_adds(source.len());
        self.add_in_turn(source, new)
    }
    /// Asks the kernel to supply the memory that `adds` insertions are about to write, where that pays.
    fn expect_adds(&mut self, _adds: usize) {}
    /// [`Addable::add_source`] on one thread.
    fn add_in_turn(&mut self, source: &dyn HashSource, mut new: Option<&mut [u8]>) -> Result<()> {
        let mut hashes = [0u64; CHUNK];
        for start in (0..source.len()).step_by(CHUNK) {
            let hashes = &mut hashes[..CHUNK.min(source.len() - start)];
            source.fill(start, hashes);
            let new = new.as_deref_mut().map(|new| &mut new[start..start + hashes.len()]);
            self.add_hashes(hashes, new)?;
        }
        Ok(())
    }
    /// True if nothing can be added: the cells are in a read-only mapping, or the file was released.
    fn is_read_only(&self) -> bool;
    /// Refuses a read-only structure.
    fn check_writable(&self) -> Result<()> {
        if self.is_read_only() { Err(Error::read_only()) } else { Ok(()) }
    }
    /// True if one more key is neither refused nor causes a warning. The scalar path checks this before every key.
    #[inline(always)]
    fn is_roomy(&self) -> bool {
        !self.is_read_only()
    }
    /// Adds if that needs no warning and no error; otherwise returns `None` and changes nothing.
    #[inline(always)]
    fn add_quietly(&mut self, hash: u64) -> Option<bool> {
        if self.is_roomy() { self.add_hash(hash).ok() } else { None }
    }
    /// True once, when the filter has just exceeded its capacity; never for a structure that this does not harm.
    fn newly_overfull(&mut self) -> bool {
        false
    }
    /// Records the domains of a batch whose insertion returned `done`. After an error the keys before the refused one
    /// are in; the domains of the whole batch are recorded then, which may suppress a warning and never causes a wrong
    /// one.
    fn record_domains<T>(&mut self, domains: KeyDomains, done: Result<T>) -> Result<T> {
        if done.is_ok() || self.num_added() > 0 && !self.is_read_only() {
            self.record(domains);
        }
        done
    }
    /// Forgets every key, but not the domains of keys: see [`Addable::empty`].
    fn clear(&mut self) -> Result<()>;
    /// Forgets every key and the domains of keys.
    fn empty(&mut self) -> Result<()> {
        self.clear()?;
        self.hasher_mut().domains_mut().clear();
        Ok(())
    }
    /// Advances time to `now`, in seconds, and returns how many generations expired; `None` if time does not matter.
    fn pass_time(&mut self, _now: f64) -> Option<Result<u64>> {
        None
    }
}

/// Removes keys.
pub trait Removable: Filter {
    /// Removes one occurrence; false when the key was certainly absent, and then nothing changed.
    fn remove_hash(&mut self, hash: u64) -> Result<bool>;
    /// Removes in order. `removed`, if given, is as long as `hashes` and gets 1 for each key that
    /// was not certainly absent.
    fn remove_hashes(&mut self, hashes: &[u64], removed: Option<&mut [u8]>) -> Result<()> {
        change_ahead(Self::AHEAD, self, hashes, removed, Self::fetch, Self::remove_hash)
    }
}

/// Counts how often a key was added.
pub trait Countable: Filter {
    /// Estimated number of occurrences: 0 for a key certainly absent.
    fn count_hash(&self, hash: u64) -> u64;
    /// The largest count that it can return; a larger one is returned as this.
    fn most_counted(&self) -> u64 {
        u64::MAX
    }
    /// For a key whose count is at the maximum, records `times` more additions or removals, which change no cell; false
    /// if the structure records none, so that the caller must make each of them.
    fn note_surplus(&mut self, _times: u64, _added: bool) -> bool {
        false
    }
    /// Adds a present key `times` times at once, with the effect of that many calls; `None` if the caller must make
    /// each of them. If there is no space for one, those before it are added.
    fn add_times(&mut self, _hash: u64, _times: u64) -> Option<Result<()>> {
        None
    }
    /// Removes a key, whose count is at least `times`, that often at once; `None` if the caller must make each removal.
    fn remove_times(&mut self, _hash: u64, _times: u64) -> Option<Result<()>> {
        None
    }
    /// One count a hash; the slices are equally long.
    fn count_hashes(&self, hashes: &[u64], counts: &mut [u64]) {
        answer_ahead(Self::AHEAD, hashes, counts, |hash| self.fetch(hash), |hash| self.count_hash(hash));
    }
}

/// Stores each key in cells that its hash selects.
pub trait Positioned: Filter {
    /// The distinct cells of a key: in the order of its probes, or in order within its line.
    fn positions(&self, hash: u64) -> Vec<u64>;
}

/// Names and texts of options of a constructor that are not to have their defaults.
pub type Options<'a> = &'a [(&'static str, &'a str)];

/// Computes its size in advance.
pub trait Planned: Filter {
    /// Bytes of cells of a structure for `capacity` keys at rate `fpr`; parameters that are not among `options` have
    /// their defaults. The errors of making it, nothing allocated.
    fn nbytes_for(capacity: u64, fpr: f64, options: Options<'_>) -> Result<u64>;
}

/// Needs only a capacity and a rate.
pub trait Sizable: Planned {
    /// An empty structure for `capacity` keys at rate `fpr`; parameters that are not among `options` have their
    /// defaults.
    fn for_capacity(capacity: u64, fpr: f64, options: Options<'_>, hasher: KeyHasher) -> Result<Self>;
}

/// Is built from all its keys at once.
pub trait Built: Planned {
    /// Words of a key: its hash, and a value if it has one.
    type Keys;
    /// The structure of `keys` at rate `fpr`; other parameters have their defaults.
    fn of_keys(keys: &Self::Keys, fpr: f64, hasher: KeyHasher, job: &Job<'_>) -> Result<Self>;
}

/// Gives the memory of a section, by its kind, its index and the words that it should have.
pub type Sections<'a> = &'a mut dyn FnMut(u32, u32, u64) -> Result<Memory>;

/// Can be read from a file.
pub trait Loadable: Filter {
    /// Restores the structure from a valid header, the hasher that [`Header::hasher`] creates from it, and its
    /// sections.
    fn load(header: &Header, hasher: KeyHasher, memory: Sections<'_>) -> Result<Self>;
    /// Refuses cells that contradict each other or the numbers stored with them, if that would cost time or give a file
    /// that cannot be read: O(nbytes), once for each file whose every byte is checked, and before a copy is made.
    fn check_cells(&self) -> Result<()> {
        Ok(())
    }
    /// Refuses to grow beyond `max_bytes` of cells from now on.
    fn bound(&mut self, _max_bytes: u64) {}
    /// Asks `growth` before the structure grows, from now on.
    fn share(&mut self, _growth: Arc<dyn Growth>) {}
}

/// The methods of [`crate::structure::Addable`] that follow from the memories that adding writes; the first one decides
/// whether adding is allowed.
macro_rules! write_methods {
    ($first:ident $(, $more:ident)*) => {
        #[inline(always)]
        fn is_read_only(&self) -> bool {
            self.$first.is_read_only()
        }

        fn expect_adds(&mut self, adds: usize) {
            self.$first.expect_writes(adds);
            $(self.$more.expect_writes(adds);)*
        }
    };
}

pub(crate) use write_methods;
