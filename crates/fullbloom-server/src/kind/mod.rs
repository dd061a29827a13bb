//! [`Kind`]: any structure of the registry behind one trait, so that the store and its commands name none.
//!
//! * `declared`: the trait for each row of the registry, with what its capabilities allow;
//! * [`foreign`]: the trait for filters as other programs keep them; [`exchange`]: how these go there and come back;
//! * `making`: a filter of either sort, new or from a file; [`note`]: a small text, which is none;
//! * [`keying`]: how a text becomes the words by which a filter is asked;
//! * [`spec`]: what a filter was made of, as words; [`settings`]: and how it is treated.

use fullbloom_core::container::Container;
use fullbloom_core::growth::Growth;
use fullbloom_core::key::{Domain, KeyDomains, KeyHasher};
use fullbloom_core::registry::{VARIANTS, Variant};
use fullbloom_core::structure::Value;
use fullbloom_core::structure::parts::Parts;
use std::any::Any;
use std::sync::Arc;

use crate::fault::{Fault, Result};

mod declared;
pub mod exchange;
pub mod foreign;
pub mod keying;
mod making;
pub mod note;
pub mod settings;
pub mod spec;
#[cfg(test)]
mod tests;

pub use exchange::Exchange;
pub use keying::Keying;
pub use making::{by_name, create, load, nbytes_for, open, takes_secret};
pub use note::Note;
pub use settings::{Flavour, Settings};
pub use spec::Spec;

/// A named filter's structure. What its kind cannot do is a [`Code::Unsupported`](crate::fault::Code::Unsupported)
/// fault that names the class.
pub trait Kind: Any + Send + Sync {
    /// Its row of the registry.
    fn variant(&self) -> &'static Variant;
    /// How keys become hashes, and the domains of those that were added.
    fn hasher(&self) -> KeyHasher;
    /// How texts become the words that the other methods call hashes.
    fn keying(&self) -> Keying {
        Keying::Own(self.hasher().of(Domain::Text))
    }
    /// Keys it was sized for.
    fn capacity(&self) -> u64;
    /// Rate asked for at capacity.
    fn target_fpr(&self) -> f64;
    /// Keys that were new when they were added, less those removed.
    fn num_added(&self) -> u64;
    /// True once it holds more keys than it was sized for, so that its rate is above the one that was asked for.
    fn is_over(&self) -> bool {
        self.num_added() > self.capacity() && self.fpr() > self.target_fpr()
    }
    /// Model rate at the present load.
    fn fpr(&self) -> f64;
    /// Share of set cells, counted: O(nbytes).
    fn fill(&self) -> f64;
    /// Bytes of cells.
    fn nbytes(&self) -> u64;
    /// Estimate of distinct keys and its deviation, where cells tell.
    fn estimated(&self) -> Option<(f64, f64)>;
    /// What `info()` shows.
    fn info(&self) -> Vec<(&'static str, Value)>;
    /// As a file.
    fn container(&self) -> Container<'_>;
    /// A copy in memory of its own.
    fn duplicate(&self) -> Result<Box<dyn Kind>>;
    /// Hands `word` the section and the word of it for each word that adding one of the keys may write, while the filter
    /// does not grow. False of a kind in which adding may write anywhere: only an empty batch then tells.
    fn writes(&self, _hashes: &[u64], _word: &mut dyn FnMut(usize, usize)) -> bool {
        false
    }
    /// The filter of these cells, with the numbers of this one, whose cells they are.
    fn of_parts(&self, _parts: Parts) -> Result<Box<dyn Kind>> {
        Err(self.cannot("be copied in slices"))
    }
    /// One answer (0 or 1) a hash.
    fn contains(&self, hashes: &[u64], found: &mut [u8]);
    /// Growing beyond so many bytes of cells is refused.
    fn bound(&mut self, max_bytes: u64);
    /// `growth` is asked before it grows, from here on.
    fn share(&mut self, _growth: Arc<dyn Growth>) {}
    /// Itself, to be compared with another of its class.
    fn as_any(&self) -> &dyn Any;

    /// As another program keeps it, where one does.
    fn exchange(&self) -> Option<&dyn Exchange> {
        None
    }
    /// [`Kind::exchange`], to be changed.
    fn exchange_mut(&mut self) -> Option<&mut dyn Exchange> {
        None
    }
    /// Adds in order; `new` gets 1 for each key that was certainly new.
    fn add(&mut self, _hashes: &[u64], _new: Option<&mut [u8]>) -> Result<()> {
        Err(self.cannot("add keys"))
    }
    /// Records the domains of keys that were added.
    fn record(&mut self, _domains: KeyDomains) {}
    /// Forgets every key.
    fn clear(&mut self) -> Result<()> {
        Err(self.cannot("be cleared"))
    }
    /// Removes in order; `removed` gets 1 for each key that was not certainly absent.
    fn remove(&mut self, _hashes: &[u64], _removed: Option<&mut [u8]>) -> Result<()> {
        Err(self.cannot("remove keys"))
    }
    /// Occurrences of each key.
    fn count(&self, _hashes: &[u64], _counts: &mut [u64]) -> Result<()> {
        Err(self.cannot("count keys"))
    }
    /// The cells of a key.
    fn positions(&self, _hash: u64) -> Result<Vec<u64>> {
        Err(self.cannot("tell the positions of a key"))
    }
    /// Takes in another of its class; on an error nothing has changed.
    fn merge(&mut self, _other: &dyn Kind) -> Result<()> {
        Err(self.cannot("be merged"))
    }
    /// Lets time pass until `now`, in seconds: how many generations expired.
    fn advance(&mut self, _now: f64) -> Result<u64> {
        Err(self.cannot("let time pass"))
    }
    /// Adds keys with a label or value each.
    fn add_pairs(&mut self, _hashes: &[u64], _values: &[u64]) -> Result<()> {
        Err(self.cannot("add keys with a value"))
    }
    /// The label or value of each key; 0 for a key without one.
    fn values(&self, _hashes: &[u64], _values: &mut [u64]) -> Result<()> {
        Err(self.cannot("tell the value of a key"))
    }
    /// True for a key that is certainly absent, of a kind whose absent keys have no value.
    fn lacks_value(&self, _hash: u64) -> bool {
        false
    }
    /// Refuses a kind from which no key is removed.
    fn check_removes(&self) -> Result<()> {
        let does = ["remove", "delete"].iter().any(|what| self.variant().capabilities.contains(what));
        if does { Ok(()) } else { Err(self.cannot("remove keys")) }
    }
    /// The refusal of what it cannot do.
    fn cannot(&self, operation: &str) -> Fault {
        Fault::unsupported(self.variant().class, operation)
    }
}

/// The row of the registry that is called `name`.
pub fn row_named(name: &str) -> Result<&'static Variant> {
    VARIANTS.iter().find(|variant| variant.name == name).ok_or_else(|| {
        let known: Vec<&str> = VARIANTS.iter().map(|variant| variant.name).collect();
        Fault::invalid(format!("no kind is called {name:?}; there are {}", known.join(", ")))
    })
}

/// The kind that tools take unasked in a role, "plain" or "growing".
pub fn by_role(role: &str) -> &'static Variant {
    VARIANTS.iter().find(|variant| variant.role == role).unwrap_or(&VARIANTS[0])
}

/// What [`Kind::values`] found for a key; `None` for a key that has no value.
pub fn known_value(filter: &dyn Kind, hash: u64, value: u64) -> Option<u64> {
    (value != 0 || !filter.lacks_value(hash)).then_some(value)
}

/// Adds `keys` keys with `work` and records their domains; of a fault, if keys before the refused one were added.
pub fn recorded(
    filter: &mut dyn Kind,
    domains: KeyDomains,
    keys: usize,
    work: impl FnOnce(&mut dyn Kind) -> Result<()>,
) -> Result<()> {
    let before = filter.num_added();
    let done = work(filter);
    if keys > 0 && (done.is_ok() || filter.num_added() != before) {
        filter.record(domains);
    }
    done
}
