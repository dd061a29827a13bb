//! [`Kind`]: the trait of the structures behind the names.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use fullbloom_core::bank::FilterBank;
use fullbloom_core::container::Container;
use fullbloom_core::growth::Growth;
use fullbloom_core::key::{Domain, KeyDomains, KeyHasher};
use fullbloom_core::registry::Variant;
use fullbloom_core::structure::parts::Parts;
use fullbloom_core::structure::{CellCounts, CellStats, Value};

use super::foreign::dump_format::DumpFormat;
use super::keying::Keying;
use crate::fault::{Fault, Result};

/// The structure of a named filter. An operation that a kind does not support is a
/// [`Code::Unsupported`](crate::fault::Code::Unsupported) fault that names the class.
pub trait Kind: Any + Send + Sync {
    /// Its row of the registry.
    fn variant(&self) -> &'static Variant;
    /// The key hash, and the domains of the keys added so far.
    fn hasher(&self) -> KeyHasher;
    /// How texts become the words that the other methods call hashes.
    fn keying(&self) -> Keying {
        Keying::Own(self.hasher().of(Domain::Text))
    }
    /// The number of keys it was sized for.
    fn capacity(&self) -> u64;
    /// The requested rate at capacity.
    fn target_fpr(&self) -> f64;
    /// The number of keys that were new when added, less those removed.
    fn num_added(&self) -> u64;
    /// True once it holds more keys than it was sized for, so that its rate exceeds the requested one.
    fn is_over_capacity(&self) -> bool {
        self.num_added() > self.capacity() && self.fpr() > self.target_fpr()
    }
    /// The model rate at the present fill.
    fn fpr(&self) -> f64;
    /// The share of set cells, counted: O(nbytes).
    fn fill(&self) -> f64;
    /// The bytes of its cells.
    fn nbytes(&self) -> u64;
    /// Fill, rate and estimate from one count of the cells.
    fn cell_stats(&self) -> CellStats {
        CellStats { fill: self.fill(), fpr: self.fpr(), ..CellStats::default() }
    }
    /// For each section of its file, the number of words to whose multiples a slice of a count must extend; 0 for a
    /// section that need not be counted. `None` if the cells can only be counted at once.
    fn count_steps(&self) -> Option<Vec<usize>> {
        None
    }
    /// Counts the cells in these words of a section. The sums of all slices give [`Kind::stats_of`].
    fn count_words(&self, _section: usize, _words: Range<usize>, _counts: &mut CellCounts) {}
    /// [`Kind::cell_stats`], given the counts of all cells.
    fn stats_of(&self, _counts: &CellCounts) -> CellStats {
        self.cell_stats()
    }
    /// Differs once the filter has grown, or once keys have expired: what was copied or counted before is then no part
    /// of it.
    fn epoch(&self) -> u64 {
        self.nbytes()
    }
    /// The model rate by the number of keys, without reading the cells, if there is a law for it.
    fn fpr_by_count(&self) -> Option<f64> {
        None
    }
    /// The fields of `info()`, with what a count of the cells said.
    fn info_with(&self, cells: CellStats) -> Vec<(&'static str, Value)>;
    /// A whole number among the fields of `info()`, without a count of the cells.
    fn number(&self, name: &str) -> Option<u64> {
        let fields = self.info_with(CellStats::default());
        fields.into_iter().find_map(|(known, value)| if known == name { value.as_number() } else { None })
    }
    /// Its file.
    fn container(&self) -> Container<'_>;
    /// A copy in its own memory.
    fn duplicate(&self) -> Result<Box<dyn Kind>>;
    /// Calls `word` with the section and position of each word that adding or removing the keys may write, as long as
    /// the [`Kind::epoch`] is the same. Returns false for a kind in which that may write anywhere; an empty batch is
    /// enough to find out.
    fn visit_written_words(&self, _hashes: &[u64], _word: &mut dyn FnMut(usize, usize)) -> bool {
        false
    }
    /// True if [`Kind::with_parts`] is possible.
    fn takes_parts(&self) -> bool {
        false
    }
    /// The filter with these cells, which are its own, and the numbers of this one.
    fn with_parts(&self, _parts: Parts) -> Result<Box<dyn Kind>> {
        Err(self.unsupported("be copied in slices"))
    }
    /// Writes one result (0 or 1) per hash.
    fn contains(&self, hashes: &[u64], found: &mut [u8]);
    /// Refuses growth beyond this many bytes of cells.
    fn bound(&mut self, max_bytes: u64);
    /// Asks `growth` before it grows, from now on.
    fn share(&mut self, _growth: Arc<dyn Growth>) {}
    /// Itself, for comparison with another filter of its class.
    fn as_any(&self) -> &dyn Any;

    /// The filter in the dump format of RedisBloom, if it is one of RedisBloom's.
    fn dump_format(&self) -> Option<&dyn DumpFormat> {
        None
    }
    /// [`Kind::dump_format`], for changes.
    fn dump_format_mut(&mut self) -> Option<&mut dyn DumpFormat> {
        None
    }
    /// Itself, if its keys have owners.
    fn bank(&self) -> Result<&FilterBank> {
        Err(self.unsupported("have owners: it is not a bank"))
    }
    /// [`Kind::bank`], for changes.
    fn bank_mut(&mut self) -> Result<&mut FilterBank> {
        Err(self.unsupported("have owners: it is not a bank"))
    }
    /// Adds keys in order; sets `new` to 1 for each key that was certainly new.
    fn add(&mut self, _hashes: &[u64], _new: Option<&mut [u8]>) -> Result<()> {
        Err(self.unsupported("add keys"))
    }
    /// Records the domains of keys that were added.
    fn record(&mut self, _domains: KeyDomains) {}
    /// Removes all keys.
    fn clear(&mut self) -> Result<()> {
        Err(self.unsupported("be cleared"))
    }
    /// Removes keys in order; sets `removed` to 1 for each key that was not certainly absent.
    fn remove(&mut self, _hashes: &[u64], _removed: Option<&mut [u8]>) -> Result<()> {
        Err(self.unsupported("remove keys"))
    }
    /// The number of occurrences of each key.
    fn count(&self, _hashes: &[u64], _counts: &mut [u64]) -> Result<()> {
        Err(self.unsupported("count keys"))
    }
    /// The cells of a key.
    fn positions(&self, _hash: u64) -> Result<Vec<u64>> {
        Err(self.unsupported("return the positions of a key"))
    }
    /// Merges another filter of its class; an error changes nothing.
    fn merge(&mut self, _other: &dyn Kind) -> Result<()> {
        Err(self.unsupported("be merged"))
    }
    /// Advances the time to `now`, in seconds; returns how many generations expired.
    fn advance(&mut self, _now: f64) -> Result<u64> {
        Err(self.unsupported("advance the time"))
    }
    /// Adds keys with a label or value each.
    fn add_pairs(&mut self, _hashes: &[u64], _values: &[u64]) -> Result<()> {
        Err(self.unsupported("add keys with a value"))
    }
    /// The label or value of each key; 0 for a key without one.
    fn values(&self, _hashes: &[u64], _values: &mut [u64]) -> Result<()> {
        Err(self.unsupported("return the value of a key"))
    }
    /// True for a key that is certainly absent, in a kind whose absent keys have no value.
    fn lacks_value(&self, _hash: u64) -> bool {
        false
    }
    /// Refuses a kind that cannot remove keys.
    fn check_removes(&self) -> Result<()> {
        let does = ["remove", "delete"].iter().any(|what| self.variant().capabilities.contains(what));
        if does { Ok(()) } else { Err(self.unsupported("remove keys")) }
    }
    /// The refusal of an unsupported operation.
    fn unsupported(&self, operation: &str) -> Fault {
        Fault::unsupported(self.variant().class, operation)
    }
}
