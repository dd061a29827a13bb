//! Filters as another program keeps them: kinds that no row of the registry is of, since their keys are not hashes of
//! 64 bits.
//!
//! * `bloom`, `cuckoo`: [`Kind`] for each; `general`: `%g`, as C prints numbers.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use bloomery_core::container::file::Opened;
use bloomery_core::foreign::redisbloom::{bloom::Chain, cuckoo::Cuckoo, file};
use bloomery_core::registry::{FalseNegatives, Variant};

use super::{Flavour, Kind, Settings, Spec};
use crate::fault::{Code, Fault, Result};

mod bloom;
mod cuckoo;
mod general;

const ROW: Variant = Variant {
    id: file::BLOOM,
    name: "redisbloom",
    class: "RedisBloomFilter",
    adds: "key",
    family: "foreign",
    capabilities: &["add", "grow"],
    stage: false,
    layouts: &[],
    ns: [0.0, 0.0],
    false_negatives: FalseNegatives::Never,
    merging: "",
    formula: "",
    paper: "",
    role: "",
    once: false,
    fixed: &[],
};

/// Their rows.
static ROWS: [Variant; 2] = [
    ROW,
    Variant {
        id: file::CUCKOO,
        name: "redisbloom-cuckoo",
        class: "RedisBloomCuckooFilter",
        capabilities: &["add", "remove", "count", "grow"],
        false_negatives: FalseNegatives::OnMisuse,
        once: true,
        ..ROW
    },
];

/// What goes to the other program, and comes from it.
pub trait Exchange {
    /// The header of its dump.
    fn header(&self) -> Vec<u8>;
    /// The piece that is asked for by a number, from 1 on, and the number that it is loaded under.
    fn piece(&self, number: i64) -> Option<(i64, Cow<'_, [u8]>)>;
    /// Takes in a piece; on an error nothing has changed.
    fn load(&mut self, number: i64, bytes: &[u8]) -> Result<()>;
    /// What the other program tells who looks for faults.
    fn lines(&self) -> Vec<String>;
    /// Makes room where keys were removed.
    fn compact(&mut self) -> Result<()> {
        Ok(())
    }
}

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
    Some(check_keyed(spec).and_then(|()| match row.id {
        file::BLOOM => bloom::create(spec).map(|filter| Box::new(filter) as Box<dyn Kind>),
        _ => cuckoo::create(spec).map(|filter| Box::new(filter) as Box<dyn Kind>),
    }))
}

/// Bytes of cells that it would take, if it is of one of these kinds.
pub(super) fn nbytes_for(spec: &Spec) -> Option<Result<u64>> {
    let row = by_name(&spec.kind)?;
    Some(if row.id == file::BLOOM { bloom::nbytes(spec) } else { cuckoo::nbytes(spec) })
}

fn check_keyed(spec: &Spec) -> Result<()> {
    if !spec.keyed {
        return Ok(());
    }
    Err(Fault::invalid(format!("a {} cannot be keyed: its hash is that of the other program; say keyed no", spec.kind)))
}

/// The number of an option, or its default.
fn number(spec: &Spec, name: &str, default: Option<u64>, most: u64) -> Result<u64> {
    let Some(text) = spec.option(name) else {
        return default.ok_or_else(|| Fault::invalid(format!("{name} is missing; give {name}=...")));
    };
    let number = text.parse().ok().filter(|&number| number <= most);
    number.ok_or_else(|| Fault::invalid(format!("{name} must be a whole number of at most {most}, got {text:?}")))
}

/// Refuses other options than these.
fn check_options(spec: &Spec, known: &[&str]) -> Result<()> {
    match spec.options.iter().find(|(name, _)| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some((name, _)) => {
            let text = format!("a {} has no parameter {name:?}; it has {}", spec.kind, known.join(", "));
            Err(Fault::invalid(text))
        }
    }
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
    let file = Opened::new(path).ok()?;
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
        Flavour::Any => Err(Fault::new(Code::Format, "no header tells of such a filter")),
    }
}
