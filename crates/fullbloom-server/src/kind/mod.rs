//! [`Kind`]: any structure of the registry behind one trait, so that the store and its commands name none.
//!
//! * `declared`: the trait for each row of the registry, with what its capabilities allow;
//! * [`foreign`]: the trait for filters as other programs keep them; [`exchange`]: how these go there and come back;
//! * `making`: a filter of either sort, new or from a file; [`note`]: a small text, which is none;
//! * [`keying`]: how a text becomes the words by which a filter is asked;
//! * [`spec`]: what a filter was made of, as words; [`settings`]: and how it is treated.

use fullbloom_core::container::{Container, Parsed, Verify};
use fullbloom_core::growth::Growth;
use fullbloom_core::key::{Domain, DomainHasher, KeyDomains, KeyHasher};
use fullbloom_core::registry::{VARIANTS, Variant};
use fullbloom_core::structure::Value;
use fullbloom_core::structure::parts::Parts;
use std::any::Any;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::fault::{Fault, Result};

mod declared;
pub mod foreign;
pub mod note;
pub mod settings;
pub mod spec;

pub use foreign::DumpFormat;
pub use note::Note;
pub use settings::{Flavour, Settings};
pub use spec::Spec;

/// Appends the words of a key.
pub type Words = fn(&[u8], &mut Vec<u64>);

/// See the head of this file.
#[derive(Clone, Copy)]
pub enum Keying {
    /// One word, the hash of the key rule.
    Own(DomainHasher),
    /// So many words, as another program has them.
    Foreign(usize, Words),
}

impl Keying {
    /// Appends the words of a key.
    #[inline(always)]
    pub fn push(&self, key: &[u8], words: &mut Vec<u64>) {
        match self {
            Keying::Own(hasher) => words.push(hasher.bytes(key)),
            Keying::Foreign(_, append) => append(key, words),
        }
    }

    /// Words of a key.
    #[inline(always)]
    pub fn width(&self) -> usize {
        match self {
            Keying::Own(_) => 1,
            Keying::Foreign(width, _) => *width,
        }
    }

    /// Where the words of a key lie among those of several.
    #[inline(always)]
    pub fn words(&self, key: usize) -> Range<usize> {
        key * self.width()..(key + 1) * self.width()
    }

    /// True of the key rule: hashes that somebody else has computed may be handed in.
    pub fn is_own(&self) -> bool {
        matches!(self, Keying::Own(_))
    }
}

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
    fn is_over_capacity(&self) -> bool {
        self.num_added() > self.capacity() && self.fpr() > self.target_fpr()
    }
    /// Model rate at the present load.
    fn fpr(&self) -> f64;
    /// Share of set cells, counted: O(nbytes).
    fn fill(&self) -> f64;
    /// Bytes of cells.
    fn nbytes(&self) -> u64;
    /// Estimate of distinct keys and its deviation, where cells tell.
    fn estimated(&self) -> Option<(f64, f64)> {
        None
    }
    /// What `info()` shows.
    fn info(&self) -> Vec<(&'static str, Value)>;
    /// As a file.
    fn container(&self) -> Container<'_>;
    /// A copy in memory of its own.
    fn duplicate(&self) -> Result<Box<dyn Kind>>;
    /// Hands `word` the section and the word of it for each word that adding one of the keys may write, while the filter
    /// does not grow. False of a kind in which adding may write anywhere: only an empty batch then tells.
    fn visit_written_words(&self, _hashes: &[u64], _word: &mut dyn FnMut(usize, usize)) -> bool {
        false
    }
    /// The filter of these cells, with the numbers of this one, whose cells they are.
    fn with_parts(&self, _parts: Parts) -> Result<Box<dyn Kind>> {
        Err(self.unsupported("be copied in slices"))
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
    fn dump_format(&self) -> Option<&dyn DumpFormat> {
        None
    }
    /// [`Kind::dump_format`], for changes.
    fn dump_format_mut(&mut self) -> Option<&mut dyn DumpFormat> {
        None
    }
    /// Adds in order; `new` gets 1 for each key that was certainly new.
    fn add(&mut self, _hashes: &[u64], _new: Option<&mut [u8]>) -> Result<()> {
        Err(self.unsupported("add keys"))
    }
    /// Records the domains of keys that were added.
    fn record(&mut self, _domains: KeyDomains) {}
    /// Forgets every key.
    fn clear(&mut self) -> Result<()> {
        Err(self.unsupported("be cleared"))
    }
    /// Removes in order; `removed` gets 1 for each key that was not certainly absent.
    fn remove(&mut self, _hashes: &[u64], _removed: Option<&mut [u8]>) -> Result<()> {
        Err(self.unsupported("remove keys"))
    }
    /// Occurrences of each key.
    fn count(&self, _hashes: &[u64], _counts: &mut [u64]) -> Result<()> {
        Err(self.unsupported("count keys"))
    }
    /// The cells of a key.
    fn positions(&self, _hash: u64) -> Result<Vec<u64>> {
        Err(self.unsupported("tell the positions of a key"))
    }
    /// Takes in another of its class; on an error nothing has changed.
    fn merge(&mut self, _other: &dyn Kind) -> Result<()> {
        Err(self.unsupported("be merged"))
    }
    /// Lets time pass until `now`, in seconds: how many generations expired.
    fn advance(&mut self, _now: f64) -> Result<u64> {
        Err(self.unsupported("let time pass"))
    }
    /// Adds keys with a label or value each.
    fn add_pairs(&mut self, _hashes: &[u64], _values: &[u64]) -> Result<()> {
        Err(self.unsupported("add keys with a value"))
    }
    /// The label or value of each key; 0 for a key without one.
    fn values(&self, _hashes: &[u64], _values: &mut [u64]) -> Result<()> {
        Err(self.unsupported("tell the value of a key"))
    }
    /// True for a key that is certainly absent, of a kind whose absent keys have no value.
    fn lacks_value(&self, _hash: u64) -> bool {
        false
    }
    /// Refuses a kind from which no key is removed.
    fn check_removes(&self) -> Result<()> {
        let does = ["remove", "delete"].iter().any(|what| self.variant().capabilities.contains(what));
        if does { Ok(()) } else { Err(self.unsupported("remove keys")) }
    }
    /// The refusal of what it cannot do.
    fn unsupported(&self, operation: &str) -> Fault {
        Fault::unsupported(self.variant().class, operation)
    }
}

/// The row of the registry that is called `name`.
pub fn registry_row(name: &str) -> Result<&'static Variant> {
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
pub fn value_if_present(filter: &dyn Kind, hash: u64, value: u64) -> Option<u64> {
    (value != 0 || !filter.lacks_value(hash)).then_some(value)
}

/// The whole number that `info()` shows as `name`.
pub fn info_number(filter: &dyn Kind, name: &str) -> Option<u64> {
    filter.info().into_iter().find_map(|(known, value)| match value {
        Value::Number(number) if known == name => Some(number),
        _ => None,
    })
}

/// Adds `keys` keys with `work` and records their domains; of a fault, if keys before the refused one were added.
pub fn add_recorded(
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

/// The row of the kind that is called `name`.
pub fn by_name(name: &str) -> Result<&'static Variant> {
    foreign::by_name(name).map_or_else(|| registry_row(name), Ok)
}

/// True of a kind whose key hash may be keyed: others hold the numbers themselves, or hash as another program does.
pub fn takes_secret(kind: &str) -> bool {
    by_name(kind).is_ok_and(|row| row.adds != "number" && foreign::by_name(row.name).is_none())
}

/// A new filter; its options are checked.
pub fn create(spec: &Spec, hasher: KeyHasher) -> Result<Box<dyn Kind>> {
    if spec.keyed && by_name(&spec.kind).is_ok() && !takes_secret(&spec.kind) {
        return Err(Fault::invalid(format!(
            "a {} cannot be keyed: it holds the numbers themselves, or hashes as another program does; say keyed no",
            spec.kind
        )));
    }
    foreign::create(spec).unwrap_or_else(|| declared::create(spec, hasher))
}

/// Bytes of cells that it would take; 0 where that is not known beforehand.
pub fn nbytes_for(spec: &Spec) -> Result<u64> {
    foreign::nbytes_for(spec).unwrap_or_else(|| declared::nbytes_for(spec))
}

/// A filter from the bytes of a whole file, every one of them checked.
pub fn load(bytes: &[u8], secret: Option<[u8; 16]>, max_bytes: u64) -> Result<Box<dyn Kind>> {
    let variant = Parsed::new(bytes, Verify::Header)?.header.variant;
    foreign::load(variant, bytes, max_bytes).unwrap_or_else(|| declared::load(bytes, secret, max_bytes))
}

/// The filter in the file at `path`, in memory; every byte was checked.
pub fn open(path: &Path, secret: Option<[u8; 16]>, max_bytes: u64) -> Result<Box<dyn Kind>> {
    foreign::open(path, max_bytes).unwrap_or_else(|| declared::open(path, secret, max_bytes))
}

#[cfg(test)]
mod tests {
    use fullbloom_core::key::KeyHasher;
    use fullbloom_core::registry::VARIANTS;

    use super::*;

    #[test]
    fn bytes_told_are_those_of_what_is_made() -> Result<()> {
        let mut told = 0;
        for row in VARIANTS.iter().filter(|row| matches!(row.adds, "key" | "pair")) {
            for (capacity, fpr) in [(10_u64, 0.01), (100, 0.01), (5_000, 0.001)] {
                let sized = if row.role == "growing" { "initial_capacity" } else { "capacity" };
                let spec = Spec { kind: row.name.into(), ..Spec::default() }.with(sized, capacity).with("fpr", fpr);
                let (Ok(nbytes), Ok(made)) = (nbytes_for(&spec), create(&spec, KeyHasher::seeded(0))) else { continue };
                if made.nbytes() != nbytes {
                    return Err(Fault::invalid(format!("{}: {nbytes} told, {} made", spec.line(), made.nbytes())));
                }
                told += 1;
            }
        }
        assert!(told > 30, "{told}");
        Ok(())
    }
}
