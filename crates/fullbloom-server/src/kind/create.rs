//! Creates and loads a filter of any kind, which its spec or its file names.

use std::path::Path;

use fullbloom_core::container::{ContainerIndex, Verify};
use fullbloom_core::key::KeyHasher;

use super::rows::{by_name, takes_secret};
use super::spec::Spec;
use super::traits::Kind;
use super::{bank, declared, foreign};
use crate::fault::{Fault, Result};

/// Creates a filter and checks its options.
pub fn create(spec: &Spec, hasher: KeyHasher) -> Result<Box<dyn Kind>> {
    if spec.keyed && by_name(&spec.kind).is_ok() && !takes_secret(&spec.kind) {
        return Err(Fault::invalid(format!(
            "a {} cannot be keyed: it holds the numbers themselves, or hashes as another program does; say keyed no",
            spec.kind
        )));
    }
    let other = foreign::create(spec).or_else(|| bank::create(spec, hasher));
    other.unwrap_or_else(|| declared::create(spec, hasher))
}

/// The bytes of cells that it would take; 0 if that is unknown in advance.
pub fn nbytes_for(spec: &Spec) -> Result<u64> {
    let other = foreign::nbytes_for(spec).or_else(|| bank::nbytes_for(spec));
    other.unwrap_or_else(|| declared::nbytes_for(spec))
}

/// Loads a filter from the bytes of a file, and checks every byte.
pub fn load(bytes: &[u8], secret: Option<[u8; 16]>, max_bytes: u64) -> Result<Box<dyn Kind>> {
    let variant = ContainerIndex::new(bytes, Verify::Header)?.header.variant;
    let other = foreign::load(variant, bytes, max_bytes).or_else(|| bank::load(variant, bytes, secret, max_bytes));
    other.unwrap_or_else(|| declared::load(bytes, secret, max_bytes))
}

/// Loads the filter in the file at `path` into memory, and checks every byte.
pub fn open(path: &Path, secret: Option<[u8; 16]>, max_bytes: u64) -> Result<Box<dyn Kind>> {
    let other = foreign::open(path, max_bytes).or_else(|| bank::open(path, secret, max_bytes));
    other.unwrap_or_else(|| declared::open(path, secret, max_bytes))
}

#[cfg(test)]
mod tests {
    use fullbloom_core::key::KeyHasher;
    use fullbloom_core::registry::VARIANTS;

    use super::*;

    #[test]
    fn predicted_bytes_equal_those_of_the_filter() -> Result<()> {
        let mut count = 0;
        for row in VARIANTS.iter().filter(|row| row.is_open(&["key"]) || row.is_open(&["key", "value"])) {
            for (capacity, fpr) in [(10_u64, 0.01), (100, 0.01), (5_000, 0.001)] {
                let sized = if row.role == "growing" { "initial_capacity" } else { "capacity" };
                let spec = Spec { kind: row.name.into(), ..Spec::default() }.with(sized, capacity).with("fpr", fpr);
                let (Ok(nbytes), Ok(instance)) = (nbytes_for(&spec), create(&spec, KeyHasher::seeded(0))) else {
                    continue;
                };
                if instance.nbytes() != nbytes {
                    return Err(Fault::invalid(format!(
                        "{}: {nbytes} bytes computed, {} allocated",
                        spec.line(),
                        instance.nbytes()
                    )));
                }
                count += 1;
            }
        }
        assert!(count > 30, "{count}");
        Ok(())
    }
}
