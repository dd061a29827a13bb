//! Filters of any kind, of the registry or as another program keeps them: new, and from files.

use std::path::Path;

use fullbloom_core::container::{Parsed, Verify};
use fullbloom_core::key::KeyHasher;
use fullbloom_core::registry::Variant;

use super::{Kind, Spec, declared, foreign, row_named};
use crate::fault::{Fault, Result};

/// The row of the kind that is called `name`.
pub fn by_name(name: &str) -> Result<&'static Variant> {
    foreign::by_name(name).map_or_else(|| row_named(name), Ok)
}

/// True of a kind whose key hash may be keyed: others hold the numbers themselves, or hash as another program does.
pub fn takes_secret(kind: &str) -> bool {
    by_name(kind).is_ok_and(|row| !row.is_open(&["number"]) && foreign::by_name(row.name).is_none())
}

/// A new filter; its options are checked.
pub fn create(spec: &Spec, hasher: KeyHasher) -> Result<Box<dyn Kind>> {
    if spec.keyed && by_name(&spec.kind).is_ok() && !takes_secret(&spec.kind) {
        return Err(Fault::invalid(format!(
            "a {} cannot be keyed: it holds the numbers themselves, or hashes as another program does; say keyed no",
            spec.kind
        )));
    }
    foreign::create(spec).unwrap_or_else(|| declared::create(spec, hasher))
}

/// Bytes of cells that it would take; 0 where that is not known beforehand.
pub fn nbytes_for(spec: &Spec) -> Result<u64> {
    foreign::nbytes_for(spec).unwrap_or_else(|| declared::nbytes_for(spec))
}

/// A filter from the bytes of a whole file, every one of them checked.
pub fn load(bytes: &[u8], secret: Option<[u8; 16]>, max_bytes: u64) -> Result<Box<dyn Kind>> {
    let variant = Parsed::new(bytes, Verify::Header)?.header.variant;
    foreign::load(variant, bytes, max_bytes).unwrap_or_else(|| declared::load(bytes, secret, max_bytes))
}

/// The filter in the file at `path`, in memory; every byte was checked.
pub fn open(path: &Path, secret: Option<[u8; 16]>, max_bytes: u64) -> Result<Box<dyn Kind>> {
    foreign::open(path, max_bytes).unwrap_or_else(|| declared::open(path, secret, max_bytes))
}
