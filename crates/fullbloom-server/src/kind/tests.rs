//! What is told of a filter before it is made holds once it is.

use fullbloom_core::key::KeyHasher;
use fullbloom_core::registry::VARIANTS;

use super::{Spec, create, nbytes_for};
use crate::fault::{Fault, Result};

#[test]
fn bytes_told_are_those_of_what_is_made() -> Result<()> {
    let mut told = 0;
    for row in VARIANTS.iter().filter(|row| row.is_open(&["key"]) || row.is_open(&["key", "value"])) {
        for (capacity, fpr) in [(10_u64, 0.01), (100, 0.01), (5_000, 0.001)] {
            let sized = if row.role == "growing" { "initial_capacity" } else { "capacity" };
            let spec = Spec { kind: row.name.into(), ..Spec::default() }.with(sized, capacity).with("fpr", fpr);
            let (Ok(nbytes), Ok(made)) = (nbytes_for(&spec), create(&spec, KeyHasher::seeded(0))) else { continue };
            if made.nbytes() != nbytes {
                return Err(Fault::invalid(format!("{}: {nbytes} told, {} made", spec.line(), made.nbytes())));
            }
            told += 1;
        }
    }
    assert!(told > 30, "{told}");
    Ok(())
}
