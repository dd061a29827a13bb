//! Domains of keys, and the hash within one of them.

use super::base::BaseHash;
use super::number::NumberBytes;
use crate::hash::siphash::{SipKey, sip13, sip13_pieces};
use crate::hash::xxh3::{fold_seed, xxh3, xxh3_pieces, xxh3_u64, xxh3_words};

/// The type of a key. Equal bytes in two domains are two keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Domain {
    /// `bytes`, and `str` as UTF-8; a UUID as its 16 bytes.
    Text = 0,
    /// Integers and booleans, two's complement little-endian.
    Integer = 1,
    /// IEEE-754 binary64 little-endian, one zero, one NaN.
    Float = 2,
    /// The tagged encoding of the parts.
    Tuple = 3,
    /// Days since 1970-01-01, as an integer.
    Date = 4,
    /// Nanoseconds since midnight, as an integer.
    Time = 5,
    /// A date and time of day without a time zone: nanoseconds since 1970-01-01T00:00, as an integer.
    LocalTimestamp = 6,
    /// An instant: nanoseconds since 1970-01-01T00:00 UTC, as an integer.
    Timestamp = 7,
    /// Nanoseconds, as an integer.
    Duration = 8,
    /// Digits and exponent of a decimal number.
    Decimal = 9,
}

/// The seed of XXH3-64 in a domain.
#[inline]
pub(super) fn seed(seed: u64, domain: u8) -> u64 {
    seed ^ u64::from(domain).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Half of the key of SipHash-1-3 in a domain, drawn from the secret by the PRF itself.
#[inline]
pub(super) fn half_key(seed: u64, domain: u8, half: u8, secret: SipKey) -> u64 {
    let mut message = [0u8; 10];
    message[..8].copy_from_slice(&seed.to_le_bytes());
    message[8] = domain;
    message[9] = half;
    sip13(&message, secret)
}

/// The function, in one domain.
#[derive(Clone, Copy)]
pub(super) enum Rule {
    Public,
    Keyed(SipKey),
    Based(BaseHash),
}

/// The hash of keys of one domain; see [`KeyHasher`](super::KeyHasher).
#[derive(Clone, Copy)]
pub struct DomainHasher {
    seed: u64,
    folded: u64,
    rule: Rule,
}

impl DomainHasher {
    pub(super) fn new(seed: u64, rule: Rule) -> Self {
        DomainHasher { seed, folded: fold_seed(seed), rule }
    }

    /// Hash of canonical `bytes`.
    #[inline]
    pub fn bytes(&self, bytes: &[u8]) -> u64 {
        match self.rule {
            Rule::Public => xxh3(bytes, self.seed),
            Rule::Keyed(key) => sip13(bytes, key),
            Rule::Based(base) => base.bytes(self.seed, bytes),
        }
    }

    /// [`DomainHasher::bytes`] of canonical bytes that `feed` hands on in pieces.
    pub fn pieces(&self, feed: impl FnOnce(&mut dyn FnMut(&[u8]))) -> u64 {
        match self.rule {
            Rule::Public => xxh3_pieces(self.seed, feed),
            Rule::Keyed(key) => sip13_pieces(key, feed),
            Rule::Based(base) => base.pieces(self.seed, feed),
        }
    }

    /// Hashes of many keys of 8 bytes each, stored one after the other in `words`.
    pub fn words(&self, words: &[u8], out: &mut [u64]) {
        if let Rule::Public = self.rule {
            return xxh3_words(words, self.folded, out);
        }
        for (word, out) in words.as_chunks::<8>().0.iter().zip(out) {
            *out = self.bytes(word);
        }
    }

    /// Hash of a whole number.
    #[inline]
    pub fn number(&self, value: i128) -> u64 {
        match (i64::try_from(value), self.rule) {
            (Ok(value), Rule::Public) => xxh3_u64(value as u64, self.folded),
            (Ok(value), Rule::Keyed(key)) => sip13(&value.to_le_bytes(), key),
            (Ok(value), Rule::Based(base)) => base.bytes(self.seed, &value.to_le_bytes()),
            (Err(_), _) => self.bytes(NumberBytes::of(value).as_slice()),
        }
    }
}

impl std::fmt::Debug for DomainHasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DomainHasher(keyed={})", matches!(self.rule, Rule::Keyed(_)))
    }
}
