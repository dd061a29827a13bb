//! The rows of the kinds, by name and by role.

use fullbloom_core::registry::{VARIANTS, Variant};

use super::bank;
use super::foreign::rows as foreign;
use crate::fault::{Fault, Result};

/// The registry row called `name`.
pub fn registry_row(name: &str) -> Result<&'static Variant> {
    VARIANTS.iter().find(|variant| variant.name == name).ok_or_else(|| {
        let known: Vec<&str> = VARIANTS.iter().chain([&bank::ROW]).map(|variant| variant.name).collect();
        Fault::invalid(format!("no kind is called {name:?}; the kinds are {}", known.join(", ")))
    })
}

/// The kind that tools use by default in a role, "plain" or "growing".
pub fn by_role(role: &str) -> &'static Variant {
    VARIANTS.iter().find(|variant| variant.role == role).unwrap_or(&VARIANTS[0])
}

/// The row of the kind called `name`.
pub fn by_name(name: &str) -> Result<&'static Variant> {
    let others = foreign::by_name(name).or_else(|| Some(&bank::ROW).filter(|row| row.name == name));
    others.map_or_else(|| registry_row(name), Ok)
}

/// True if the key hash of a kind can be keyed. Other kinds store the numbers themselves, or hash as another program
/// does.
pub fn takes_secret(kind: &str) -> bool {
    by_name(kind).is_ok_and(|row| !row.is_open(&["number"]) && foreign::by_name(row.name).is_none())
}
