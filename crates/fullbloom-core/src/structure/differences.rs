//! [`Differences`]: why two structures cannot be combined, field by field.

use std::fmt::Display;

use crate::error::{Error, Result};
use crate::key::KeyHasher;

/// The fields in which two structures differ and may not.
#[derive(Default)]
pub struct Differences(Vec<String>);

impl Differences {
    /// Starts with the hash: function, seed and secret must be the same.
    pub fn of(a: &KeyHasher, b: &KeyHasher) -> Self {
        let differences = Differences::default().field("seed", a.seed(), b.seed());
        let mut differences = differences.field("hash", a.base().name(), b.base().name());
        if a.secret_fingerprint() != b.secret_fingerprint() {
            differences.0.push("secret".into());
        }
        differences
    }

    /// Compares one field.
    pub fn field<T: PartialEq + Display>(mut self, name: &str, a: T, b: T) -> Self {
        if a != b {
            self.0.push(format!("{name} ({a} and {b})"));
        }
        self
    }

    /// An error that names what differs, if anything does.
    pub fn check(self) -> Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(Error::Incompatible(format!(
            "the filters differ in {}; build both with the same parameters, seed and secret",
            self.0.join(", ")
        )))
    }
}
