//! The filters of `RedisBloom`. They have no row in the registry, because their keys are not hashes of 64 bits.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use fullbloom_core::container::file::OpenFile;
use fullbloom_core::foreign::redisbloom::{bloom::Chain, cuckoo::Cuckoo, file};

use super::settings::{Flavour, Settings};
use super::spec::Spec;
use super::traits::Kind;
use crate::fault::{Code, Fault, Result};

/// The methods of [`Kind`] that both filters implement in the same way.
macro_rules! foreign_kind {
    () => {
        forward!(Self: fpr -> f64, fill -> f64, nbytes -> u64, container -> Container<'_>);
        fn hasher(&self) -> KeyHasher {
            KeyHasher::seeded(0)
        }
        fn target_fpr(&self) -> f64 {
            self.target()
        }
        fn num_added(&self) -> u64 {
            self.items()
        }
        fn duplicate(&self) -> Result<Box<dyn Kind>> {
            Ok(Box::new(self.try_clone()?))
        }
        fn bound(&mut self, max_bytes: u64) {
            Self::bound(self, max_bytes);
        }
        fn share(&mut self, growth: Arc<dyn Growth>) {
            Self::share(self, growth);
        }
        fn as_any(&self) -> &dyn Any {
            self
        }
        fn dump_format(&self) -> Option<&dyn DumpFormat> {
            Some(self)
        }
        fn dump_format_mut(&mut self) -> Option<&mut dyn DumpFormat> {
            Some(self)
        }
    };
}

/// The methods of [`DumpFormat`] that both filters implement in the same way.
macro_rules! foreign_dump {
    () => {
        forward!(Self: header -> Vec<u8>);
        fn chunk(&self, number: i64) -> Option<(i64, Cow<'_, [u8]>)> {
            self.piece(number)
        }
        fn load(&mut self, number: i64, bytes: &[u8]) -> Result<()> {
            Ok(Self::load(self, number, bytes)?)
        }
    };
}

mod bloom;
mod cuckoo;
pub(super) mod dump_format;
mod options;
pub(super) mod rows;

pub use dump_format::DumpFormat;

use rows::{ROWS, by_name};

/// The kind of RedisBloom for a family of commands.
pub fn kind_of_flavour(flavour: Flavour) -> &'static str {
    ROWS[usize::from(flavour == Flavour::Cuckoo)].name
}

/// Creates a filter, if the kind is one of these.
pub(super) fn create(spec: &Spec) -> Option<Result<Box<dyn Kind>>> {
    let row = by_name(&spec.kind)?;
    Some(match row.id {
        file::BLOOM => bloom::create(spec).map(|filter| Box::new(filter) as Box<dyn Kind>),
        _ => cuckoo::create(spec).map(|filter| Box::new(filter) as Box<dyn Kind>),
    })
}

/// The bytes of cells that it would take, if the kind is one of these.
pub(super) fn nbytes_for(spec: &Spec) -> Option<Result<u64>> {
    let row = by_name(&spec.kind)?;
    Some(if row.id == file::BLOOM { bloom::nbytes(spec) } else { cuckoo::nbytes(spec) })
}

/// Loads a filter from the bytes of a file, if `variant` is one of these kinds.
pub(super) fn load(variant: u16, bytes: &[u8], max_bytes: u64) -> Option<Result<Box<dyn Kind>>> {
    match variant {
        file::BLOOM => Some(Chain::from_file(bytes, max_bytes).map(|f| Box::new(f) as _).map_err(Fault::from)),
        file::CUCKOO => Some(Cuckoo::from_file(bytes, max_bytes).map(|f| Box::new(f) as _).map_err(Fault::from)),
        _ => None,
    }
}

/// The bytes of these words; the last word may be incomplete.
fn bytes_of(bytes: &[u8], words: Range<usize>) -> &[u8] {
    let end = bytes.len().min(words.end.saturating_mul(8));
    bytes.get(words.start.saturating_mul(8)..end).unwrap_or_default()
}

/// Loads the filter in a file, if it is one of these kinds.
pub(super) fn open(path: &Path, max_bytes: u64) -> Option<Result<Box<dyn Kind>>> {
    let file = OpenFile::new(path).ok()?;
    let variant = file.parsed.header.variant;
    ROWS.iter().find(|row| row.id == variant)?;
    match file.map(path) {
        Ok(bytes) => load(variant, &bytes, max_bytes),
        Err(error) => Some(Err(error.into())),
    }
}

/// Creates the filter that the header of a dump describes, and its settings. Its cells follow in chunks.
pub fn from_header(flavour: Flavour, header: &[u8], max_bytes: u64) -> Result<(Settings, Box<dyn Kind>)> {
    let spec = Spec { kind: kind_of_flavour(flavour).into(), ..Spec::default() };
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
        Flavour::Any | Flavour::Note => Err(Fault::new(Code::Format, "a header of this family describes no filter")),
    }
}
