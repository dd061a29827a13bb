//! Lookups and additions of keys whose digests take several parts: a key is present if all parts are.

use super::BitFilter;
use crate::error::Result;
use crate::foreign::rules::Digest;

impl BitFilter {
    /// True for a key that may have been added, by all of its parts.
    pub fn contains_key(&self, parts: &[Digest]) -> bool {
        parts.iter().all(|part| self.contains(*part))
    }

    /// Adds a key by all of its parts: true if it was new.
    pub fn add_key(&mut self, parts: &[Digest]) -> Result<bool> {
        parts.iter().try_fold(false, |new, part| Ok(self.add(*part)? || new))
    }

    /// Looks up many keys, each by as many parts as its hashing says.
    pub fn contains_keys(&self, digests: &[Digest], found: &mut [u8]) {
        match self.hashing().parts() {
            1 => self.contains_many(digests, found),
            parts => {
                for (key, found) in digests.chunks_exact(parts).zip(found) {
                    *found = self.contains_key(key).into();
                }
            }
        }
    }

    /// Adds many keys, each by as many parts as its hashing says; marks those that were new if the caller wants to know.
    pub fn add_keys(&mut self, digests: &[Digest], mut new: Option<&mut [u8]>) -> Result<()> {
        let parts = self.hashing().parts();
        if parts == 1 {
            return self.add_many(digests, new);
        }
        for (i, key) in digests.chunks_exact(parts).enumerate() {
            let added = self.add_key(key)?;
            if let Some(new) = &mut new {
                new[i] = added.into();
            }
        }
        Ok(())
    }
}
