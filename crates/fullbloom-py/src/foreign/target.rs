//! [`Target`]: a filter that is asked by the digests of keys.

use fullbloom_core::cells::allocation::reserve;
use fullbloom_core::error::{Error, Result};
use fullbloom_core::foreign::bits::BitFilter;
use fullbloom_core::foreign::fingerprints::FingerprintFilter;
use fullbloom_core::foreign::redisbloom::bloom::Chain;
use fullbloom_core::foreign::redisbloom::cuckoo::Cuckoo;
use fullbloom_core::foreign::redisbloom::dump::Asked;
use fullbloom_core::foreign::rules::Digest;

/// A filter, and what batches do with it; a key has as many digests as the filter's hashing says.
pub(super) trait Target: Send + Sync {
    /// Looks up many keys.
    fn contains_keys(&self, digests: &[Digest], found: &mut [u8]);
    /// Looks up integers, 8 little-endian bytes each; false, and no results, if only their digests can be looked up.
    fn contains_words(&self, _words: &[[u8; 8]], _found: &mut [u8]) -> bool {
        false
    }
    /// Adds many keys; marks those that were new if the caller wants to know.
    fn add_keys(&mut self, digests: &[Digest], new: Option<&mut [u8]>) -> Result<()>;
}

impl Target for BitFilter {
    fn contains_keys(&self, digests: &[Digest], found: &mut [u8]) {
        BitFilter::contains_keys(self, digests, found);
    }
    fn contains_words(&self, words: &[[u8; 8]], found: &mut [u8]) -> bool {
        BitFilter::contains_words(self, words, found)
    }
    fn add_keys(&mut self, digests: &[Digest], new: Option<&mut [u8]>) -> Result<()> {
        BitFilter::add_keys(self, digests, new)
    }
}

/// The words of keys, collected for a filter that is built of all of them; or the filter.
pub(super) enum Static {
    /// Before.
    Keys(Vec<u64>),
    /// After.
    Filter(FingerprintFilter),
}

impl Target for Static {
    fn contains_keys(&self, digests: &[Digest], found: &mut [u8]) {
        match self {
            Static::Filter(filter) => filter.contains_many(digests, found),
            Static::Keys(_) => found.fill(0),
        }
    }
    fn add_keys(&mut self, digests: &[Digest], _: Option<&mut [u8]>) -> Result<()> {
        let Static::Keys(keys) = self else { return Err(Error::read_only()) };
        reserve(keys, digests.len())?;
        keys.extend(digests.iter().map(|digest| digest[0]));
        Ok(())
    }
}

/// The methods of a filter that is asked one key at a time.
macro_rules! one_by_one {
    ($($class:ty),*) => {$(
        impl Target for $class {
            fn contains_keys(&self, digests: &[Digest], found: &mut [u8]) {
                digests.iter().zip(found).for_each(|(digest, found)| *found = self.has(*digest).into());
            }
            fn add_keys(&mut self, digests: &[Digest], mut new: Option<&mut [u8]>) -> Result<()> {
                for (i, digest) in digests.iter().enumerate() {
                    let added = self.put(*digest)?;
                    if let Some(new) = &mut new {
                        new[i] = added.into();
                    }
                }
                Ok(())
            }
        }
    )*};
}

one_by_one!(Chain, Cuckoo);
