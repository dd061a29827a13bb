//! [`Algorithm`]: a cryptographic digest.

use md5::Md5;
use sha1::Sha1;
use sha2::Sha256;
use sha2::digest::Digest as Hash;

/// A digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// 16 bytes.
    Md5,
    /// 20 bytes.
    Sha1,
    /// 32 bytes.
    Sha256,
}

impl Algorithm {
    /// Bytes of the digest.
    pub(super) const fn len(self) -> usize {
        match self {
            Algorithm::Md5 => 16,
            Algorithm::Sha1 => 20,
            Algorithm::Sha256 => 32,
        }
    }

    /// Slices that it has.
    pub const fn slices(self) -> u32 {
        self.len() as u32 / 4
    }

    /// The digest of `prefix` and `bytes`; zeros behind it.
    pub(super) fn of(self, prefix: &[u8], bytes: &[u8]) -> [u8; 32] {
        fn run<H: Hash>(prefix: &[u8], bytes: &[u8], out: &mut [u8]) {
            let mut hash = H::new();
            hash.update(prefix);
            hash.update(bytes);
            out.copy_from_slice(&hash.finalize());
        }
        let mut out = [0; 32];
        let written = &mut out[..self.len()];
        match self {
            Algorithm::Md5 => run::<Md5>(prefix, bytes, written),
            Algorithm::Sha1 => run::<Sha1>(prefix, bytes, written),
            Algorithm::Sha256 => run::<Sha256>(prefix, bytes, written),
        }
        out
    }
}

/// A big-endian number.
pub(super) fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
