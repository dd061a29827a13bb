//! [`KeyDomains`]: the domains of the keys in a structure. A key of another domain is absent, even if it prints the
//! same; a lookup of text in a filter of integers therefore warns once.

use super::Domain;

/// A set of domains: a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyDomains(u64);

/// The domains by their names, as `info()` and warnings list them.
const NAMED: [(Domain, &str); 10] = [
    (Domain::Text, "text"),
    (Domain::Integer, "integer"),
    (Domain::Float, "float"),
    (Domain::Tuple, "tuple"),
    (Domain::Date, "date"),
    (Domain::Time, "time"),
    (Domain::LocalTimestamp, "local timestamp"),
    (Domain::Timestamp, "timestamp"),
    (Domain::Duration, "duration"),
    (Domain::Decimal, "decimal"),
];

impl KeyDomains {
    /// Texts, and bytes.
    pub const TEXT: Self = Self::of(Domain::Text);
    /// No domain.
    pub const NONE: Self = KeyDomains(0);
    /// Ready hashes, whose keys may be of any domain.
    pub const HASHED: Self = KeyDomains(1 << 32);
    /// Texts that are hashes in hexadecimal digits: a mark beside [`KeyDomains::TEXT`], and not a domain. Releases that
    /// do not know it take bit 31 for a domain and read the file.
    pub const DIGESTS: Self = KeyDomains(1 << 31);
    /// Every domain.
    const ALL: Self = KeyDomains(u64::MAX);

    /// One domain.
    #[inline(always)]
    pub const fn of(domain: Domain) -> Self {
        KeyDomains(1 << domain as u8)
    }

    /// The domains in either set.
    #[inline(always)]
    pub const fn with(self, other: Self) -> Self {
        KeyDomains(self.0 | other.0)
    }

    /// The domains that are not in `other`.
    #[inline(always)]
    pub const fn without(self, other: Self) -> Self {
        KeyDomains(self.0 & !other.0)
    }

    /// True when there is no domain.
    #[inline(always)]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// True when no domain of `other` is missing.
    #[inline(always)]
    pub const fn holds(self, other: Self) -> bool {
        other.without(self).is_empty()
    }

    /// The number in files.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The set with this number in a file; `None` for bits that this release does not know.
    pub fn from_number(number: u64) -> Option<Self> {
        (number >> 33 == 0).then_some(KeyDomains(number))
    }

    /// The domain with this name; `None` for an unknown name.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "hashed" => Some(Self::HASHED),
            "digest" => Some(Self::DIGESTS),
            _ => NAMED.iter().find(|(_, known)| *known == name).map(|(domain, _)| Self::of(*domain)),
        }
    }
}

impl std::fmt::Display for KeyDomains {
    /// Names in the order of the domains; "none" for an empty set.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut names: Vec<&str> =
            NAMED.iter().filter(|(domain, _)| self.holds(Self::of(*domain))).map(|(_, name)| *name).collect();
        if self.holds(Self::HASHED) {
            names.push("hashed");
        }
        if self.holds(Self::DIGESTS) {
            names.push("digest");
        }
        let known =
            NAMED.iter().fold(Self::HASHED.with(Self::DIGESTS), |known, (domain, _)| known.with(Self::of(*domain)));
        if !self.without(known).is_empty() {
            names.push("other");
        }
        f.write_str(if names.is_empty() { "none".to_owned() } else { names.join(", ") }.as_str())
    }
}

/// The domains of the keys that were added to a structure, and those that lookups may have.
#[derive(Clone, Copy, Debug)]
pub struct AddedDomains {
    /// Domains of the added keys; all of them if the file does not record any.
    added: KeyDomains,
    /// Domains that may be looked up without a warning.
    expected: KeyDomains,
    /// False for a structure of a file of an earlier release, which does not record them.
    recorded: bool,
    warned: bool,
}

impl Default for AddedDomains {
    fn default() -> Self {
        Self::NONE
    }
}

impl AddedDomains {
    /// Of an empty structure.
    pub const NONE: Self =
        AddedDomains { added: KeyDomains::NONE, expected: KeyDomains::ALL, recorded: true, warned: false };
    /// Of a file that does not record them.
    pub const UNKNOWN: Self =
        AddedDomains { added: KeyDomains::ALL, expected: KeyDomains::ALL, recorded: false, warned: false };

    /// From the number in a file; `None` for a number of a newer release.
    pub(crate) fn from_file(number: u64) -> Option<Self> {
        let mut added = Self::NONE;
        added.insert(KeyDomains::from_number(number)?);
        Some(added)
    }

    /// The number for a file, if it records one.
    pub(crate) fn number(&self) -> Option<u64> {
        self.recorded.then_some(self.added.number())
    }

    /// Adds the domains of added keys.
    #[inline(always)]
    pub fn insert(&mut self, domains: KeyDomains) {
        if !self.added.holds(domains) {
            self.added = self.added.with(domains);
            self.settle();
        }
    }

    /// Adds the domains of another structure that was merged into this one.
    pub fn join(&mut self, other: &Self) {
        self.insert(if other.recorded { other.added } else { KeyDomains::HASHED });
    }

    /// Resets to an empty structure. One whose file records no domains goes on without them: the length of its header
    /// stays.
    pub fn clear(&mut self) {
        *self = if self.recorded { Self::NONE } else { Self::UNKNOWN };
    }

    /// True when keys of these domains were added before.
    #[inline(always)]
    pub fn holds(&self, domains: KeyDomains) -> bool {
        self.added.holds(domains)
    }

    /// True if a lookup of keys of these domains needs no warning: such keys were added, or none at all, or that is
    /// unknown, or the warning was given.
    #[inline(always)]
    pub fn expects(&self, domains: KeyDomains) -> bool {
        self.expected.holds(domains)
    }

    /// The domains among `asked` of which no key was added, once; after that, every lookup is expected.
    pub fn surprise(&mut self, asked: KeyDomains) -> Option<Surprise> {
        let missing = asked.without(self.expected);
        if missing.is_empty() {
            return None;
        }
        self.warned = true;
        self.settle();
        Some(Surprise { missing, added: self.added })
    }

    fn settle(&mut self) {
        let open = self.warned || self.added.is_empty() || self.added.holds(KeyDomains::HASHED);
        self.expected = if open { KeyDomains::ALL } else { self.added.with(KeyDomains::HASHED) };
    }
}

impl std::fmt::Display for AddedDomains {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.recorded { self.added.fmt(f) } else { f.write_str("unknown") }
    }
}

/// A lookup of keys that cannot be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surprise {
    /// Domains that were looked up and never added.
    pub missing: KeyDomains,
    /// Domains that were added.
    pub added: KeyDomains,
}

impl std::fmt::Display for Surprise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "keys of type {} were looked up in a filter that holds keys of type {}", self.missing, self.added)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_surprise_comes_once_and_only_where_the_domains_are_known() {
        let (text, int) = (KeyDomains::of(Domain::Text), KeyDomains::of(Domain::Integer));
        let mut added = AddedDomains::NONE;
        assert!(added.expects(text) && added.surprise(text).is_none());
        added.insert(int);
        assert!(added.expects(int) && !added.expects(text) && added.expects(KeyDomains::HASHED));
        let surprise = added.surprise(text.with(int)).map(|surprise| surprise.to_string());
        let said = "keys of type text were looked up in a filter that holds keys of type integer";
        assert_eq!(surprise.as_deref(), Some(said));
        assert!(added.expects(text) && added.surprise(text).is_none());
        added.clear();
        assert_eq!((added.number(), added.to_string().as_str()), (Some(0), "none"));
        for unknown in [AddedDomains::UNKNOWN, {
            added.insert(int.with(KeyDomains::HASHED));
            added
        }] {
            assert!(unknown.expects(text));
        }
        let mut unknown = AddedDomains::UNKNOWN;
        unknown.insert(int);
        unknown.clear();
        assert_eq!((unknown.number(), unknown.to_string().as_str()), (None, "unknown"));
        added.clear();
        added.join(&unknown);
        assert_eq!((added.number(), added.to_string().as_str()), (Some(1 << 32), "hashed"));
        assert_eq!(KeyDomains::from_name("integer"), Some(int));
        assert!(KeyDomains::from_name("hashed") == Some(KeyDomains::HASHED) && KeyDomains::from_name("none").is_none());
        let digests = AddedDomains::from_file(KeyDomains::DIGESTS.with(text).number());
        assert!(digests.is_some_and(|it| it.expects(text) && it.to_string() == "text, digest"));
        assert!(
            AddedDomains::from_file(1 << 33).is_none() && AddedDomains::from_file(3).is_some_and(|two| two.holds(text))
        );
    }
}
