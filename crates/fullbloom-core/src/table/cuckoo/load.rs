//! A cuckoo filter from its file.

use super::moves::Stash;
use super::shape::CuckooShape;
use super::{CuckooFilter, Stored};
use crate::container::{Header, kind};
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::scheme::positions::has_bits_past;
use crate::structure::{Loadable, Sections};

impl Loadable for CuckooFilter {
    fn load(header: &Header, hasher: KeyHasher, memory: Sections<'_>) -> Result<Self> {
        let (stored, load) = Stored::with_load(header, 0)?;
        let Stored { num_buckets: buckets, bucket_size, fingerprint_bits, semi_sort, .. } = stored;
        let shape =
            CuckooShape { buckets, bucket_size, fingerprint_bits, semi_sort }.check().map_err(Error::as_format)?;
        let stash = Stash { fp: stored.stash_fingerprint, bucket: stored.stash_bucket };
        if stash.fp >> fingerprint_bits != 0 || stash.bucket >= buckets || (stash.fp == 0 && stash.bucket != 0) {
            return Err(Error::format("the file's stash lies outside of its table; it is damaged"));
        }
        if load.added > shape.slots() + u64::from(stash.fp != 0) {
            return Err(Error::format(format!(
                "the file says that {} slots hold {} fingerprints; it is damaged",
                shape.slots(),
                load.added
            )));
        }
        let memory = memory(kind::FINGERPRINTS, 0, shape.words())?;
        if has_bits_past(memory.words(), shape.bits()) {
            return Err(Error::format("the file has bits set beyond its buckets; it is damaged"));
        }
        Ok(CuckooFilter { stash, ..Self::with_memory(shape, load, hasher, memory)? })
    }

    fn check_cells(&self) -> Result<()> {
        if self.items() == self.load.added {
            return Ok(());
        }
        Err(Error::format(format!(
            "the file says that its table holds {} fingerprints, which holds {}; it is damaged",
            self.load.added,
            self.items()
        )))
    }
}
