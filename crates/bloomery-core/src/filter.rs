//! What a structure can do, as traits. A structure implements exactly the ones it can honour; the
//! Python class gets exactly those methods.

use std::path::Path;

use crate::container::{self, Container, Header};
use crate::error::Result;
use crate::key::KeyHasher;
pub use crate::source::HashSource;

/// A value shown by `info()`.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// A whole number.
    Number(u64),
    /// A real number.
    Real(f64),
    /// Text.
    Text(String),
    /// Yes or no.
    Flag(bool),
}

/// Answers membership for 64-bit hashes.
pub trait Filter: Send + Sync + Sized {
    /// How keys become hashes.
    fn hasher(&self) -> &KeyHasher;
    /// False: the key was never added. True: it probably was.
    fn contains_hash(&self, hash: u64) -> bool;
    /// One answer (0 or 1) a hash; the slices are equally long.
    fn contains_hashes(&self, hashes: &[u64], found: &mut [u8]);
    /// Model rate of false positives at the present load.
    fn fpr(&self) -> f64;
    /// Share of set cells, counted.
    fn fill(&self) -> f64;
    /// Bytes of cells held.
    fn nbytes(&self) -> u64;
    /// What a person wants to know, in order of interest.
    fn facts(&self) -> Vec<(&'static str, Fact)>;
    /// The structure as a file; fails only on bytes that cannot be borrowed.
    fn container(&self) -> Container<'_>;
    /// Writes the structure to `path`, atomically.
    fn save(&self, path: &Path) -> Result<()> {
        container::save(&self.container(), path)
    }
    /// An independent copy in memory of its own.
    fn try_clone(&self) -> Result<Self>;
}

/// Takes new keys.
pub trait Addable: Filter {
    /// Adds; true when the key was certainly new.
    fn add_hash(&mut self, hash: u64) -> Result<bool>;
    /// Adds in order. `new`, if given, is as long as `hashes` and gets 1 for each new key.
    fn add_hashes(&mut self, hashes: &[u64], new: Option<&mut [u8]>) -> Result<()>;
    /// Adds in order on several threads; same bits, same answers as one thread gives.
    fn add_source(&mut self, source: &dyn HashSource, threads: usize, new: Option<&mut [u8]>) -> Result<()>;
    /// True once, when the filter has just gone past its capacity.
    fn newly_overfull(&mut self) -> bool;
    /// Forgets every key.
    fn clear(&mut self) -> Result<()>;
}

/// Can be read from a file.
pub trait Loadable: Filter {
    /// Rebuilds the structure from a sound header and a way to get at sections.
    fn load(
        header: &Header,
        memory: &mut dyn FnMut(u32, u32, u64) -> Result<crate::cells::Memory>,
        secret: Option<&[u8; 16]>,
    ) -> Result<Self>;
}
