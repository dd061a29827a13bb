//! Keys: canonical bytes, their domain, and their 64-bit hash.
//!
//! A filter sees nothing of a key but its hash, so every input path (scalar, batch, file, command line) uses this
//! module. The rule is version 1, described for other languages in `docs/keys.md` and pinned by
//! `tests/golden/keys.json`; it is never edited, only added to.

mod base;
pub mod decimal;
mod domain;
mod domains;
pub mod number;
pub mod source;

use crate::hash::siphash::{SipKey, sip_key, sip13};
use crate::hash::xxh3::{fold_seed, xxh3, xxh3_u64, xxh3_u64_inverse};

/// The text that the fingerprint of a secret hashes. Frozen, with the project's first name in it: files and data
/// folders recognise their secret by it.
pub const FINGERPRINT_LABEL: &[u8] = b"bloomery secret fingerprint";

/// Version of the rule in this file; written into every container.
pub const KEY_RULE_VERSION: u16 = 1;

pub use base::BaseHash;
use domain::Rule as DomainRule;
pub use domain::{Domain, DomainHasher};
pub use domains::{AddedDomains, KeyDomains, Surprise};

/// The 8 canonical bytes of a float, as an integer: -0.0 becomes 0.0, every NaN the quiet one.
#[inline]
pub fn float_bits(value: f64) -> u64 {
    if value == 0.0 {
        0
    } else if value.is_nan() {
        0x7ff8_0000_0000_0000
    } else {
        value.to_bits()
    }
}

/// Bytes before a part of a tuple: its tag, then its length (8 bytes little-endian).
pub const PART_HEADER: usize = 9;

/// Fills in the header, [`PART_HEADER`] bytes from `start` on, of the part of a tuple that ends with `out`.
pub fn end_part(out: &mut [u8], start: usize, domain: Domain) {
    let length = (out.len() - start - PART_HEADER) as u64;
    out[start] = domain as u8;
    out[start + 1..start + PART_HEADER].copy_from_slice(&length.to_le_bytes());
}

/// The function, with the keys of the first domains if it is keyed.
#[derive(Clone, Copy)]
enum Rule {
    Public,
    Keyed([SipKey; EAGER]),
    Based(BaseHash),
}

/// Turns canonical bytes into the 64-bit hash a filter stores: XXH3-64 with a seed, another [`BaseHash`], or
/// SipHash-1-3 under a secret. Cheap to copy; holds derived keys, never prints them.
#[derive(Clone, Copy)]
pub struct KeyHasher {
    seed: u64,
    rule: Rule,
    secret_fingerprint: u64,
    seeds: [u64; EAGER],
    folded: [u64; EAGER],
    /// The secret itself, from which the keys of other domains are derived; zero without one.
    master: SipKey,
    drawn: bool,
    added: AddedDomains,
}

/// The first domains, whose seeds and keys are precomputed; those of the others are derived on demand.
const EAGER: usize = 4;

impl KeyHasher {
    /// The public hash: XXH3-64 seeded with `seed ^ domain * 0x9e3779b97f4a7c15`.
    pub fn seeded(seed: u64) -> Self {
        let seeds = std::array::from_fn(|d| domain::seed(seed, d as u8));
        let folded = seeds.map(fold_seed);
        let (rule, added) = (Rule::Public, AddedDomains::NONE);
        KeyHasher { seed, rule, secret_fingerprint: 0, seeds, folded, master: (0, 0), drawn: false, added }
    }

    /// The keyed hash. Each domain has its own key, drawn from the secret by the PRF itself, so
    /// that equal bytes in two domains stay unrelated without lengthening the message.
    pub fn keyed(seed: u64, secret: &[u8; 16]) -> Self {
        let master = sip_key(secret);
        let half = |domain: usize, half: u8| domain::half_key(seed, domain as u8, half, master);
        let keys = std::array::from_fn(|domain| (half(domain, 0), half(domain, 1)));
        KeyHasher {
            rule: Rule::Keyed(keys),
            secret_fingerprint: sip13(FINGERPRINT_LABEL, master),
            master,
            ..KeyHasher::seeded(seed)
        }
    }

    /// A public hash by another function.
    pub fn with_base(seed: u64, base: BaseHash) -> Self {
        let rule = if base == BaseHash::Xxh3 { Rule::Public } else { Rule::Based(base) };
        KeyHasher { rule, ..KeyHasher::seeded(seed) }
    }

    /// The function of the public hash; with a secret, the default.
    pub fn base(&self) -> BaseHash {
        if let Rule::Based(base) = self.rule { base } else { BaseHash::Xxh3 }
    }

    /// [`KeyHasher::keyed`] with a random secret that the caller has not retrieved yet.
    pub fn with_drawn_secret(seed: u64, secret: &[u8; 16]) -> Self {
        KeyHasher { drawn: true, ..KeyHasher::keyed(seed, secret) }
    }

    /// The secret, if it was drawn at random.
    pub fn drawn_secret(&self) -> Option<[u8; 16]> {
        let (low, high) = self.master;
        self.drawn.then(|| (u128::from(high) << 64 | u128::from(low)).to_le_bytes())
    }

    /// The same hash, of a structure that no key was added to.
    pub fn fresh(&self) -> Self {
        self.holding(AddedDomains::NONE)
    }

    /// The same hash, of a structure to which keys of these domains were added.
    pub fn holding(&self, added: AddedDomains) -> Self {
        KeyHasher { added, ..*self }
    }

    /// The domains of the keys that were added to the structure of this hasher.
    #[inline(always)]
    pub fn domains(&self) -> &AddedDomains {
        &self.added
    }

    /// [`KeyHasher::domains`], to be changed.
    #[inline(always)]
    pub fn domains_mut(&mut self) -> &mut AddedDomains {
        &mut self.added
    }

    /// The hash of keys of one domain.
    pub fn of(&self, domain: Domain) -> DomainHasher {
        let rule = match self.rule {
            Rule::Public => DomainRule::Public,
            Rule::Based(base) => DomainRule::Based(base),
            Rule::Keyed(keys) => DomainRule::Keyed(keys.get(domain as usize).copied().unwrap_or_else(|| {
                let half = |half: u8| domain::half_key(self.seed, domain as u8, half, self.master);
                (half(0), half(1))
            })),
        };
        DomainHasher::new(domain::seed(self.seed, domain as u8), rule)
    }

    /// The seed given at construction.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// True when a secret is in use.
    pub fn is_keyed(&self) -> bool {
        matches!(self.rule, Rule::Keyed(_))
    }

    /// A 64-bit PRF value that recognises the secret without revealing it; 0 without a secret.
    pub fn secret_fingerprint(&self) -> u64 {
        self.secret_fingerprint
    }

    /// Hash of canonical `bytes` in `domain`.
    #[inline]
    pub fn bytes(&self, domain: Domain, bytes: &[u8]) -> u64 {
        if (domain as usize) < EAGER { self.at_hand(domain, bytes) } else { self.other(domain, bytes) }
    }

    /// [`KeyHasher::bytes`] in one of the first domains, whose seeds are precomputed.
    #[inline]
    fn at_hand(&self, domain: Domain, bytes: &[u8]) -> u64 {
        match &self.rule {
            Rule::Public => xxh3(bytes, self.seeds[domain as usize]),
            Rule::Keyed(keys) => sip13(bytes, keys[domain as usize]),
            Rule::Based(base) => base.bytes(self.seeds[domain as usize], bytes),
        }
    }

    /// [`KeyHasher::bytes`] in another domain.
    #[cold]
    fn other(&self, domain: Domain, bytes: &[u8]) -> u64 {
        self.of(domain).bytes(bytes)
    }

    /// [`KeyHasher::bytes`] of canonical bytes that `feed` hands on in pieces: for keys too long to be written down.
    pub fn pieces(&self, domain: Domain, feed: impl FnOnce(&mut dyn FnMut(&[u8]))) -> u64 {
        self.of(domain).pieces(feed)
    }

    /// Hash of a key of 8 bytes in `domain`, one of the first; equals [`KeyHasher::bytes`] of them.
    #[inline]
    fn word(&self, domain: Domain, value: u64) -> u64 {
        match &self.rule {
            Rule::Public => xxh3_u64(value, self.folded[domain as usize]),
            Rule::Keyed(keys) => sip13(&value.to_le_bytes(), keys[domain as usize]),
            Rule::Based(base) => base.bytes(self.seeds[domain as usize], &value.to_le_bytes()),
        }
    }

    /// Hash of a signed 64-bit integer.
    #[inline]
    pub fn hash_signed(&self, value: i64) -> u64 {
        self.word(Domain::Integer, value as u64)
    }

    /// True of the hash that names neither a secret nor another function.
    #[inline(always)]
    fn is_default(&self) -> bool {
        matches!(self.rule, Rule::Public)
    }

    /// [`KeyHasher::hash_signed`] by the default function; `None` with a secret or another function.
    #[inline(always)]
    pub fn signed_in_public(&self, value: i64) -> Option<u64> {
        self.is_default().then(|| xxh3_u64(value as u64, self.folded[Domain::Integer as usize]))
    }

    /// The signed 64-bit integer whose public hash is `hash`; `None` with a secret or another function, whose hashes
    /// have no inverse. Every hash has one, even that of a key that is not an integer.
    #[inline]
    pub fn invert_signed(&self, hash: u64) -> Option<i64> {
        self.is_default().then(|| xxh3_u64_inverse(hash, self.folded[Domain::Integer as usize]) as i64)
    }

    /// The integer below `bound` whose public hash is `hash`, if there is one.
    #[inline(always)]
    pub fn number_below(&self, bound: u64, hash: u64) -> Option<u64> {
        let number = self.invert_signed(hash)? as u64; // one below 0 lies beyond every bound
        (number < bound).then_some(number)
    }

    /// Hash of an unsigned 64-bit integer; 2^63 and above need a ninth byte for the sign.
    #[inline]
    pub fn hash_unsigned(&self, value: u64) -> u64 {
        if value >> 63 == 0 {
            self.word(Domain::Integer, value)
        } else {
            self.at_hand(Domain::Integer, &u128::from(value).to_le_bytes()[..9])
        }
    }

    /// Hash of a float.
    #[inline]
    pub fn float(&self, value: f64) -> u64 {
        self.word(Domain::Float, float_bits(value))
    }

    /// Hash of text.
    #[inline]
    pub fn text(&self, bytes: &[u8]) -> u64 {
        self.at_hand(Domain::Text, bytes)
    }
}

impl std::fmt::Debug for KeyHasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeyHasher(seed={}, keyed={})", self.seed, self.is_keyed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_secret() {
        let shown = format!("{:?}", KeyHasher::keyed(0, b"supersecret-key!"));
        assert_eq!(shown, "KeyHasher(seed=0, keyed=true)");
    }

    #[test]
    fn pieces_hash_as_the_whole() {
        let bytes: Vec<u8> = (0..5000u32).map(|i| (i * 7) as u8).collect();
        let others = BaseHash::ALL.map(|base| KeyHasher::with_base(42, base));
        for hasher in [KeyHasher::seeded(42), KeyHasher::keyed(42, b"sixteen secrets!")].into_iter().chain(others) {
            for (len, step) in [(0, 1), (1, 1), (16, 5), (240, 64), (241, 1), (1025, 1024), (5000, 77)] {
                let feed = |push: &mut dyn FnMut(&[u8])| bytes[..len].chunks(step).for_each(push);
                assert_eq!(hasher.pieces(Domain::Text, feed), hasher.bytes(Domain::Text, &bytes[..len]));
            }
        }
    }
}
