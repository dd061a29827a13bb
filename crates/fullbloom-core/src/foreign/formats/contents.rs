//! [`Contents`]: what the bytes of a format hold, and with it the class that reads them.

use super::layout::BitLayout;
use crate::container::{FOREIGN, FOREIGN_STATIC, REDISBLOOM, REDISBLOOM_CUCKOO, class_of};
use crate::foreign::fingerprints::FingerprintLayout;
use crate::foreign::redisbloom::bloom::Chain;
use crate::foreign::redisbloom::cuckoo::Cuckoo;

/// See the head of this file.
pub enum Contents {
    /// Bits that the positions of a key set.
    Bits(BitLayout),
    /// Cells whose xor is the fingerprint of a key.
    Fingerprints(FingerprintLayout),
    /// A coded set of hashes.
    GolombSet,
    /// A header, and the layers of a Bloom filter that grows.
    Layers,
    /// A header, and the tables of a cuckoo filter that grows.
    Tables,
}

impl Contents {
    /// The class of filters that are built of all their keys at once.
    pub const STATIC: &'static str = class_of(FOREIGN_STATIC);

    /// The number of their files among ours.
    pub const fn variant(&self) -> u16 {
        match self {
            Contents::Bits(_) => FOREIGN,
            Contents::Fingerprints(_) | Contents::GolombSet => FOREIGN_STATIC,
            Contents::Layers => REDISBLOOM,
            Contents::Tables => REDISBLOOM_CUCKOO,
        }
    }

    /// The class of their filters.
    pub const fn class(&self) -> &'static str {
        class_of(self.variant())
    }

    /// True if `len` bytes that begin with `head` may hold them: the lengths that they state are those of the bytes.
    pub(super) fn fit(&self, head: &[u8], len: u64) -> bool {
        match self {
            Contents::Bits(layout) => layout.fits(head, len),
            Contents::Fingerprints(layout) => layout.parse(head, len).is_ok(),
            Contents::GolombSet => false,
            Contents::Layers => Chain::parse_total_len(head) == Some(len),
            Contents::Tables => Cuckoo::parse_total_len(head) == Some(len),
        }
    }
}
