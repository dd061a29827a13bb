//! [`StaticFilter`]: a filter of another program that is built of all its keys at once; nothing can be added.
//!
//! * [`file`]: the filter in a container of ours.

mod file;

use super::bits::Hashing;
use super::fingerprints::FingerprintFilter;
use super::formats::{Contents, Format};
use super::golomb::{GolombSet, KEY_BYTES};
use super::key_type::KeyType;
use super::rules::Digest;
use super::source::Source;
use crate::error::{Error, Result};

/// See the head of this file.
pub enum StaticFilter {
    /// Cells whose xor is the fingerprint of a key.
    Fingerprints(FingerprintFilter),
    /// A coded set of hashes.
    Golomb(GolombSet),
}

/// `$work` with the filter of `$self` as `$filter`.
macro_rules! with_filter {
    ($self:expr, $filter:ident => $work:expr) => {
        match $self {
            StaticFilter::Fingerprints($filter) => $work,
            StaticFilter::Golomb($filter) => $work,
        }
    };
}

/// The key of the hash of elements, from the hash of their block.
fn block_key(format: &Format, block_hash: Option<[u8; 32]>) -> Result<[u8; KEY_BYTES]> {
    let missing = || {
        let why = "elements are hashed with the hash of their block, which the bytes do not contain; give block_hash=";
        Error::parameter(format!("in format {:?} {why}", format.name))
    };
    let hash = block_hash.ok_or_else(missing)?;
    hash.first_chunk().copied().ok_or_else(missing)
}

impl StaticFilter {
    /// How the keys of a new filter become words. `block_hash` is required for filters of a block.
    pub fn hashing_for(format: &'static Format, key_type: KeyType, block_hash: Option<[u8; 32]>) -> Result<Hashing> {
        match &format.contents {
            Contents::GolombSet => Ok(Hashing::of_block(&block_key(format, block_hash)?)),
            _ => format.check_class(Contents::STATIC).map(|()| Hashing::of_words(key_type)),
        }
    }

    /// The filter of keys, given as their words; repeated ones count once. The order of keys does not matter.
    pub fn build(
        format: &'static Format,
        key_type: KeyType,
        block_hash: Option<[u8; 32]>,
        words: Vec<u64>,
    ) -> Result<Self> {
        match &format.contents {
            Contents::GolombSet => {
                GolombSet::build(format, key_type, block_key(format, block_hash)?, words).map(StaticFilter::Golomb)
            }
            _ => FingerprintFilter::build(format, key_type, words).map(StaticFilter::Fingerprints),
        }
    }

    /// The filter in `source`, which is read in one pass. It may have at most `max_bytes` of cells.
    pub fn read(
        format: &'static Format,
        key_type: KeyType,
        source: Source<'_>,
        block_hash: Option<[u8; 32]>,
        max_bytes: u64,
    ) -> Result<Self> {
        match &format.contents {
            Contents::GolombSet => {
                let key = block_key(format, block_hash)?;
                GolombSet::read(format, key_type, key, source, max_bytes).map(StaticFilter::Golomb)
            }
            _ => FingerprintFilter::read(format, key_type, source, max_bytes).map(StaticFilter::Fingerprints),
        }
    }

    /// Writes the filter as its program does.
    pub fn write(&self, out: &mut dyn std::io::Write) -> std::io::Result<()> {
        with_filter!(self, filter => filter.write(out))
    }

    /// Bytes that [`StaticFilter::write`] writes.
    pub fn len_written(&self) -> u64 {
        with_filter!(self, filter => filter.len_written())
    }

    /// Its format.
    pub fn format(&self) -> &'static Format {
        with_filter!(self, filter => filter.format())
    }

    /// The type of its keys.
    pub fn key_type(&self) -> KeyType {
        with_filter!(self, filter => filter.key_type())
    }

    /// Bytes of cells.
    pub fn nbytes(&self) -> u64 {
        with_filter!(self, filter => filter.nbytes())
    }

    /// Rate of false positives.
    pub fn fpr(&self) -> f64 {
        with_filter!(self, filter => filter.fpr())
    }

    /// How a key becomes a word.
    pub fn hashing(&self) -> Hashing {
        with_filter!(self, filter => filter.hashing())
    }

    /// True for a key that it may have been built of.
    #[inline]
    pub fn contains(&self, digest: Digest) -> bool {
        with_filter!(self, filter => filter.contains(digest))
    }

    /// Looks up many keys; both slices are equally long.
    pub fn contains_many(&self, digests: &[Digest], found: &mut [u8]) {
        with_filter!(self, filter => filter.contains_many(digests, found));
    }

    /// The filter of fingerprints, if it is one.
    pub fn fingerprints(&self) -> Option<&FingerprintFilter> {
        match self {
            StaticFilter::Fingerprints(filter) => Some(filter),
            StaticFilter::Golomb(_) => None,
        }
    }

    /// Number of keys, if the format records it.
    pub fn num_keys(&self) -> Option<u64> {
        match self {
            StaticFilter::Fingerprints(filter) => filter.num_keys(),
            StaticFilter::Golomb(set) => Some(set.num_keys()),
        }
    }

    /// Estimated number of keys, and its standard deviation.
    pub fn approx_count(&self) -> (f64, f64) {
        match self {
            StaticFilter::Fingerprints(filter) => filter.approx_count(),
            StaticFilter::Golomb(set) => (set.num_keys() as f64, 0.0),
        }
    }

    /// True if both have the same format, types of keys and bytes.
    pub fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (StaticFilter::Fingerprints(one), StaticFilter::Fingerprints(other)) => one.equals(other),
            (StaticFilter::Golomb(one), StaticFilter::Golomb(other)) => one.equals(other),
            _ => false,
        }
    }

    /// The same filter under another format: only its own.
    pub fn convert_to(&self, format: &'static Format) -> Result<Self> {
        if format.number == self.format().number {
            self.try_clone()
        } else {
            Err(self.format().refuse_conversion(format))
        }
    }

    /// An independent copy.
    pub fn try_clone(&self) -> Result<Self> {
        Ok(match self {
            StaticFilter::Fingerprints(filter) => StaticFilter::Fingerprints(filter.try_clone()?),
            StaticFilter::Golomb(set) => StaticFilter::Golomb(set.try_clone()?),
        })
    }
}
