//! Text for the command line: records of a stream, and the exact second check of records that a filter dropped.

mod candidates;
mod records;
pub mod select;

use std::hash::{BuildHasherDefault, Hasher};

pub use candidates::CandidateDuplicates;
pub use records::{LINES, Tally, add, add_marked, check, collect, hash_records};

/// Passes a 64-bit hash through: the keys are hashes already.
#[derive(Default)]
pub(in crate::text) struct PassThrough(u64);

/// The hasher of tables whose keys are hashes.
pub(in crate::text) type Through = BuildHasherDefault<PassThrough>;

impl Hasher for PassThrough {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.0 = self.0.rotate_left(8) ^ u64::from(b));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
