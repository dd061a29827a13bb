//! Who may do what: tokens by their digests, for both ports.

use std::sync::atomic::Ordering;

use pyo3::prelude::*;

use super::Service;
use super::doors::Known;
use crate::resp::gate::matches;
use crate::resp::{Gate, Grant};

const READ: u8 = 1;
const WRITE: u8 = 2;
const ADMIN: u8 = 4;

/// True where a name has the form of one of the patterns, or there are none.
pub(super) fn covers(patterns: &[String], name: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern.as_bytes(), name.as_bytes()))
}

#[pymethods]
impl Service {
    /// Says which tokens there are: SHA-256, number, bits of scopes (read 1, write 2, admin 4), patterns of names.
    fn set_tokens(&self, tokens: Vec<([u8; 32], u64, u8, Vec<String>)>) {
        let one = |(digest, id, scopes, patterns): ([u8; 32], u64, u8, Vec<String>)| {
            let has = |bit: u8| scopes & bit != 0;
            (id, digest, Grant { read: has(READ), write: has(WRITE), admin: has(ADMIN), patterns })
        };
        let tokens: Vec<Known> = tokens.into_iter().map(one).collect();
        if !tokens.is_empty() && !self.doors.is_guarded() {
            // Once there was a token, its end does not open the service to everybody.
            self.doors.guard();
        }
        let mut known = self.doors.known.write();
        if *known != tokens {
            *known = tokens;
            self.doors.epoch.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Number, bits of scopes and patterns of a token; none where it is not known.
    fn open_token(&self, token: &[u8]) -> Option<(u64, u8, Vec<String>)> {
        let (id, grant) = self.doors.find(token)?;
        let bit = |has: bool, bit: u8| if has { bit } else { 0 };
        Some((id, bit(grant.read, READ) | bit(grant.write, WRITE) | bit(grant.admin, ADMIN), grant.patterns))
    }

    /// True where a name has the form of one of the patterns, or there are none.
    #[staticmethod]
    #[pyo3(name = "covers")]
    fn covers_name(patterns: Vec<String>, name: &str) -> bool {
        covers(&patterns, name)
    }

    /// True where everybody needs a token: there are or were some, or other machines reach a port.
    fn needs_token(&self) -> bool {
        self.doors.needs_token()
    }

    /// Everybody needs a token from here on, also while there is none.
    fn guard(&self) {
        self.doors.guard();
    }
}
