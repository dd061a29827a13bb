//! Tokens, for both ports.

use pyo3::prelude::*;

use super::Service;
use crate::auth::{Grant, covers};

const READ: u8 = 1;
const WRITE: u8 = 2;
const ADMIN: u8 = 4;

#[pymethods]
impl Service {
    /// Replaces the tokens: SHA-256, number, bits of scopes (read 1, write 2, admin 4), patterns of names.
    fn set_tokens(&self, tokens: Vec<([u8; 32], u64, u8, Vec<String>)>) {
        let tokens = tokens.into_iter().map(|(digest, id, scopes, patterns)| {
            let has = |bit: u8| scopes & bit != 0;
            (id, digest, Grant { read: has(READ), write: has(WRITE), admin: has(ADMIN), patterns })
        });
        self.authenticator.set_tokens(tokens.collect());
    }

    /// Number, bits of scopes and patterns of a token; None for an unknown token.
    fn find_token(&self, token: &[u8]) -> Option<(u64, u8, Vec<String>)> {
        let (id, grant) = self.authenticator.find(token)?;
        let bit = |has: bool, bit: u8| if has { bit } else { 0 };
        Some((id, bit(grant.read, READ) | bit(grant.write, WRITE) | bit(grant.admin, ADMIN), grant.patterns))
    }

    /// True if a name matches one of the patterns, or there are no patterns.
    #[staticmethod]
    #[pyo3(name = "covers")]
    fn covers_name(patterns: Vec<String>, name: &str) -> bool {
        covers(&patterns, name.as_bytes())
    }

    /// True if every client needs a token: one exists or existed, or other machines can reach a port.
    fn needs_token(&self) -> bool {
        self.authenticator.needs_token()
    }

    /// Rejects clients without a token from now on, even while no token exists.
    fn require_tokens(&self) {
        self.authenticator.require_token();
    }
}
