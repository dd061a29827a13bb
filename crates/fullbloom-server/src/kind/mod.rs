//! [`Kind`]: any structure of the registry behind one trait, so that the store and its commands name no structure.
//!
//! * `declared`: the trait for each row of the registry, with the operations of its capabilities;
//! * [`foreign`]: the trait for the filters of RedisBloom, and their dump format;
//! * [`note`]: a small text, which is not a filter;
//! * [`spec`]: the parameters of a filter; [`settings`]: how the service treats it.

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

/// Methods that only call the method of the same name of `$Owner`.
macro_rules! forward {
    ($Owner:ident: $($name:ident -> $Result:ty),*) => {
        $(fn $name(&self) -> $Result {
            $Owner::$name(self)
        })*
    };
}

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

/// How a text becomes the words that identify a key in a filter and in the log.
#[derive(Clone, Copy)]
pub enum Keying {
    /// One word, the hash of the key rule.
    Own(DomainHasher),
    /// Several words, as another program computes them.
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

    /// The number of words per key.
    #[inline(always)]
    pub fn width(&self) -> usize {
        match self {
            Keying::Own(_) => 1,
            Keying::Foreign(width, _) => *width,
        }
    }

    /// The position of a key's words among those of several keys.
    #[inline(always)]
    pub fn words(&self, key: usize) -> Range<usize> {
        key * self.width()..(key + 1) * self.width()
    }

    /// True for the key rule: then clients may send hashes.
    pub fn is_own(&self) -> bool {
        matches!(self, Keying::Own(_))
    }
}

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
    /// An estimate of the distinct keys and its deviation, if the cells permit one.
    fn estimated(&self) -> Option<(f64, f64)> {
        None
    }
    /// The fields of `info()`.
    fn info(&self) -> Vec<(&'static str, Value)>;
    /// Its file.
    fn container(&self) -> Container<'_>;
    /// A copy in its own memory.
    fn duplicate(&self) -> Result<Box<dyn Kind>>;
    /// Calls `word` with the section and position of each word that adding the keys may write, as long as the filter
    /// does not grow. Returns false for a kind in which adding may write anywhere; an empty batch is enough to find
    /// out.
    fn visit_written_words(&self, _hashes: &[u64], _word: &mut dyn FnMut(usize, usize)) -> bool {
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

/// The registry row called `name`.
pub fn registry_row(name: &str) -> Result<&'static Variant> {
    VARIANTS.iter().find(|variant| variant.name == name).ok_or_else(|| {
        let known: Vec<&str> = VARIANTS.iter().map(|variant| variant.name).collect();
        Fault::invalid(format!("no kind is called {name:?}; the kinds are {}", known.join(", ")))
    })
}

/// The kind that tools use by default in a role, "plain" or "growing".
pub fn by_role(role: &str) -> &'static Variant {
    VARIANTS.iter().find(|variant| variant.role == role).unwrap_or(&VARIANTS[0])
}

/// The result of [`Kind::values`] for a key; `None` for a key that has no value.
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

/// Adds `keys` keys with `work` and records their domains. After a fault, records them if any key was added before the
/// refused one.
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

/// The row of the kind called `name`.
pub fn by_name(name: &str) -> Result<&'static Variant> {
    foreign::by_name(name).map_or_else(|| registry_row(name), Ok)
}

/// True if the key hash of a kind can be keyed. Other kinds store the numbers themselves, or hash as another program
/// does.
pub fn takes_secret(kind: &str) -> bool {
    by_name(kind).is_ok_and(|row| !row.is_open(&["number"]) && foreign::by_name(row.name).is_none())
}

/// Creates a filter and checks its options.
pub fn create(spec: &Spec, hasher: KeyHasher) -> Result<Box<dyn Kind>> {
    if spec.keyed && by_name(&spec.kind).is_ok() && !takes_secret(&spec.kind) {
        return Err(Fault::invalid(format!(
            "a {} cannot be keyed: it holds the numbers themselves, or hashes as another program does; say keyed no",
            spec.kind
        )));
    }
    foreign::create(spec).unwrap_or_else(|| declared::create(spec, hasher))
}

/// The bytes of cells that it would take; 0 if that is unknown in advance.
pub fn nbytes_for(spec: &Spec) -> Result<u64> {
    foreign::nbytes_for(spec).unwrap_or_else(|| declared::nbytes_for(spec))
}

/// Loads a filter from the bytes of a file, and checks every byte.
pub fn load(bytes: &[u8], secret: Option<[u8; 16]>, max_bytes: u64) -> Result<Box<dyn Kind>> {
    let variant = Parsed::new(bytes, Verify::Header)?.header.variant;
    foreign::load(variant, bytes, max_bytes).unwrap_or_else(|| declared::load(bytes, secret, max_bytes))
}

/// Loads the filter in the file at `path` into memory, and checks every byte.
pub fn open(path: &Path, secret: Option<[u8; 16]>, max_bytes: u64) -> Result<Box<dyn Kind>> {
    foreign::open(path, max_bytes).unwrap_or_else(|| declared::open(path, secret, max_bytes))
}

#[cfg(test)]
mod tests {
    use fullbloom_core::key::KeyHasher;
    use fullbloom_core::registry::VARIANTS;

    use super::*;

    #[test]
    fn predicted_bytes_equal_those_of_the_filter() -> Result<()> {
        let mut told = 0;
        for row in VARIANTS.iter().filter(|row| row.is_open(&["key"]) || row.is_open(&["key", "value"])) {
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
