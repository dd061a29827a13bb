//! [`Authenticator`]: which token may do what, over RESP and over HTTP; [`pattern`]: patterns of filter names.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::RwLock;
use sha2::{Digest, Sha256};

pub mod pattern;

use pattern::matches;

/// What a client may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// Look up keys and read statistics.
    pub read: bool,
    /// Change keys; create and drop filters.
    pub write: bool,
    /// Administer the service as a whole.
    pub admin: bool,
    /// Names of the filters it covers, with `*` for any text; an empty list covers all.
    pub patterns: Vec<String>,
}

/// The permission that a command requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// None: the command may be sent before AUTH.
    Nothing,
    /// [`Grant::read`].
    Read,
    /// [`Grant::write`].
    Write,
    /// [`Grant::admin`].
    Admin,
}

impl Grant {
    /// Full access.
    pub fn all() -> Self {
        Grant { read: true, write: true, admin: true, patterns: Vec::new() }
    }

    /// True if the grant includes `scope`.
    pub fn allows(&self, scope: Scope) -> bool {
        match scope {
            Scope::Nothing => true,
            Scope::Read => self.read,
            Scope::Write => self.write,
            Scope::Admin => self.admin,
        }
    }

    /// True if the grant covers the filter `name`.
    #[inline]
    pub fn covers(&self, name: &[u8]) -> bool {
        covers(&self.patterns, name)
    }
}

/// True if `name` matches one of the patterns, or there are no patterns.
#[inline]
pub fn covers(patterns: &[String], name: &[u8]) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern.as_bytes(), name))
}

/// A token: its number, its SHA-256 and its grant.
pub type Token = (u64, [u8; 32], Grant);

/// Authenticates tokens, which may change while clients are connected. Comparison is constant-time.
#[derive(Default)]
pub struct Authenticator {
    tokens: RwLock<Vec<Token>>,
    epoch: AtomicU64,
    /// True once other machines can reach a port, or a token existed.
    required: AtomicBool,
}

impl Authenticator {
    /// The digest of a token.
    pub fn digest(token: &[u8]) -> [u8; 32] {
        Sha256::digest(token).into()
    }

    /// Replaces the tokens.
    pub fn set_tokens(&self, tokens: Vec<Token>) {
        if !tokens.is_empty() && !self.required.load(Ordering::Acquire) {
            // Removing the last token later must not open the service to everybody.
            self.require_token();
        }
        let mut known = self.tokens.write();
        if *known != tokens {
            *known = tokens;
            self.epoch.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Rejects clients without a token from now on, even while no token exists.
    pub fn require_token(&self) {
        // The epoch changes last: a client that sees the new epoch is rejected.
        self.required.store(true, Ordering::Release);
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }

    /// True if every client needs a token: one exists or existed, or other machines can reach a port.
    pub fn needs_token(&self) -> bool {
        self.required.load(Ordering::Acquire) || !self.tokens.read().is_empty()
    }

    /// The number and grant of a token. Compares every byte of every digest, so timing reveals nothing.
    pub fn find(&self, token: &[u8]) -> Option<(u64, Grant)> {
        let digest = Self::digest(token);
        let is_equal = |known: &[u8; 32]| known.iter().zip(digest).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0;
        let tokens = self.tokens.read();
        tokens
            .iter()
            .fold(None, |found, (id, known, grant)| if is_equal(known) { Some((*id, grant)) } else { found })
            .map(|(id, grant)| (id, grant.clone()))
    }

    /// The grant of a token; `None` rejects it. Accepts an empty token only while no token is required: no token
    /// exists, and only local clients connect.
    pub fn authenticate(&self, token: &[u8]) -> Option<Grant> {
        if token.is_empty() {
            return (!self.needs_token()).then(Grant::all);
        }
        self.find(token).map(|(_, grant)| grant)
    }

    /// Changes with the tokens: clients that logged in before are authenticated again.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_have_their_grants_and_an_empty_token_is_rejected_once_one_exists() {
        let reader = Grant { read: true, patterns: vec!["logs:*".into()], ..Grant::default() };
        let authenticator = Authenticator::default();
        assert_eq!(authenticator.authenticate(b""), Some(Grant::all()));
        let tokens = [(b"one", Grant::all()), (b"two", reader.clone())];
        let tokens = tokens.map(|(token, grant)| (7, Authenticator::digest(token), grant));
        authenticator.set_tokens(tokens.to_vec());
        assert_eq!(authenticator.authenticate(b"one"), Some(Grant::all()));
        assert_eq!(authenticator.authenticate(b"two"), Some(reader.clone()));
        assert_eq!(authenticator.authenticate(b"three"), None);
        authenticator.set_tokens(Vec::new());
        assert_eq!(authenticator.authenticate(b""), None);
        assert!(reader.allows(Scope::Read) && !reader.allows(Scope::Write) && !reader.allows(Scope::Admin));
        assert!(reader.covers(b"logs:1") && !reader.covers(b"log"));
    }
}
