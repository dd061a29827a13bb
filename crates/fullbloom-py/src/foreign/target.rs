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

impl Target for FingerprintFilter {
    fn contains_keys(&self, digests: &[Digest], found: &mut [u8]) {
        self.contains_many(digests, found);
    }
    fn add_keys(&mut self, _: &[Digest], _: Option<&mut [u8]>) -> Result<()> {
        Err(Error::read_only())
    }
}

/// The words of the keys of a filter that is built of all of them.
#[derive(Default)]
pub(super) struct Words(pub(super) Vec<u64>);

impl Target for Words {
    fn contains_keys(&self, _: &[Digest], found: &mut [u8]) {
        found.fill(0);
    }
    fn add_keys(&mut self, digests: &[Digest], _: Option<&mut [u8]>) -> Result<()> {
        reserve(&mut self.0, digests.len())?;
        self.0.extend(digests.iter().map(|digest| digest[0]));
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
