//! Filters as another program keeps them: kinds that no row of the registry is of, since their keys are not hashes of
//! 64 bits.
//!
//! * `rows`: their rows, and what options say; `general`: `%g`, as C prints numbers;
//! * `bloom`, `cuckoo`: [`Kind`] for each.

use std::path::Path;
use std::sync::Arc;

use fullbloom_core::container::file::OpenFile;
use fullbloom_core::foreign::redisbloom::{bloom::Chain, cuckoo::Cuckoo, file};
use fullbloom_core::registry::Variant;

use super::{Flavour, Kind, Settings, Spec};
use crate::fault::{Code, Fault, Result};

mod bloom;
mod cuckoo;
mod general;
mod rows;

use rows::ROWS;

/// The row of this name.
pub(super) fn by_name(name: &str) -> Option<&'static Variant> {
    ROWS.iter().find(|row| row.name == name)
}

/// The kind that a program takes for its own, of a flavour.
pub fn for_flavour(flavour: Flavour) -> &'static str {
    ROWS[usize::from(flavour == Flavour::Cuckoo)].name
}

/// A new filter, if it is of one of these kinds.
pub(super) fn create(spec: &Spec) -> Option<Result<Box<dyn Kind>>> {
    let row = by_name(&spec.kind)?;
    Some(match row.id {
        file::BLOOM => bloom::create(spec).map(|filter| Box::new(filter) as Box<dyn Kind>),
        _ => cuckoo::create(spec).map(|filter| Box::new(filter) as Box<dyn Kind>),
    })
}

/// Bytes of cells that it would take, if it is of one of these kinds.
pub(super) fn nbytes_for(spec: &Spec) -> Option<Result<u64>> {
    let row = by_name(&spec.kind)?;
    Some(if row.id == file::BLOOM { bloom::nbytes(spec) } else { cuckoo::nbytes(spec) })
}

/// The filter in the bytes of a file of `variant`, if that is one of these kinds.
pub(super) fn load(variant: u16, bytes: &[u8], max_bytes: u64) -> Option<Result<Box<dyn Kind>>> {
    match variant {
        file::BLOOM => Some(Chain::from_file(bytes, max_bytes).map(|f| Box::new(f) as _).map_err(Fault::from)),
        file::CUCKOO => Some(Cuckoo::from_file(bytes, max_bytes).map(|f| Box::new(f) as _).map_err(Fault::from)),
        _ => None,
    }
}

/// The filter in a file, if it is of one of these kinds.
pub(super) fn open(path: &Path, max_bytes: u64) -> Option<Result<Box<dyn Kind>>> {
    let file = OpenFile::new(path).ok()?;
    let variant = file.parsed.header.variant;
    ROWS.iter().find(|row| row.id == variant)?;
    match file.map(path) {
        Ok(bytes) => load(variant, &bytes, max_bytes),
        Err(error) => Some(Err(error.into())),
    }
}

/// The filter that the header of a dump tells of, its cells to come, and how it is treated.
pub fn of_header(flavour: Flavour, header: &[u8], max_bytes: u64) -> Result<(Settings, Box<dyn Kind>)> {
    let spec = Spec { kind: for_flavour(flavour).into(), ..Spec::default() };
    let settings = Settings { flavour, ..Settings::of(spec) };
    match flavour {
        Flavour::Bloom => {
            let filter = Chain::from_header(header, max_bytes)?;
            let notes = filter.expansion().map(|expansion| ("expansion".to_string(), expansion.into()));
            let strict = filter.expansion().is_none();
            Ok((Settings { strict, notes: Arc::new(notes.into_iter().collect()), ..settings }, Box::new(filter)))
        }
        Flavour::Cuckoo => {
            let filter = Cuckoo::from_header(header, max_bytes)?;
            let shape = filter.shape();
            let numbers =
                [("bucket", shape.bucket_size), ("iterations", shape.iterations), ("expansion", shape.expansion)];
            let notes = numbers.iter().map(|(name, number)| (name.to_string(), u64::from(*number))).collect();
            Ok((Settings { notes: Arc::new(notes), ..settings }, Box::new(filter)))
        }
        Flavour::Any | Flavour::Note => Err(Fault::new(Code::Format, "no header tells of such a filter")),
    }
}
