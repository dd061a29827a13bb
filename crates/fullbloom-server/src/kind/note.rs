//! [`Note`]: a small text under a name, beside the filters. It implements [`Kind`], so that files, checkpoints and
//! backups store it like a filter. Lookups of filters do not find it.

use std::any::Any;
use std::fs;
use std::path::Path;

use fullbloom_core::container::{Container, ContainerIndex, Header, Section, Verify, kind};
use fullbloom_core::key::{AddedDomains, KeyHasher};
use fullbloom_core::registry::Variant;
use fullbloom_core::structure::{CellStats, Value};

use super::foreign::rows as foreign;
use super::settings::{Flavour, Settings};
use super::spec::Spec;
use super::traits::Kind;
use crate::fault::{Code, Fault, Result};

/// Its number in files, beyond those of the registry.
const ID: u16 = fullbloom_core::container::NOTE;
/// The longest note, in bytes.
pub const MOST: usize = 64 << 10;

static ROW: Variant =
    Variant { id: ID, name: "note", class: "Note", adds: "", entry: &[], capabilities: &[], ..foreign::ROW };

/// A text. Changing it creates another note.
pub struct Note(Vec<u8>);

impl Note {
    /// A note of a text.
    pub fn new(text: &[u8]) -> Result<Self> {
        if text.len() > MOST {
            let text = format!("a note has at most {MOST} bytes, got {}; keep what is longer elsewhere", text.len());
            return Err(Fault::new(Code::Limit, text));
        }
        Ok(Note(text.to_vec()))
    }

    /// The settings of a note in logs and manifests.
    pub fn settings() -> Settings {
        Settings { flavour: Flavour::Note, ..Settings::of(Spec { kind: ROW.name.into(), ..Spec::default() }) }
    }

    /// The text, if `kind` is a note.
    pub fn text_of(kind: &dyn Kind) -> Option<&[u8]> {
        kind.as_any().downcast_ref::<Note>().map(|note| note.0.as_slice())
    }

    /// Loads a note from the bytes of a file, and checks every byte.
    pub fn load(bytes: &[u8]) -> Result<Box<dyn Kind>> {
        let damaged = || Fault::new(Code::Format, "the file does not contain the note that its header describes");
        let parsed = ContainerIndex::new(bytes, Verify::Full)?;
        let [span] = parsed.sections.as_slice() else { return Err(damaged()) };
        if (parsed.header.variant, span.kind, span.index) != (ID, kind::NOTE, 0) {
            return Err(damaged());
        }
        Ok(Box::new(Note::new(bytes.get(span.offset..span.offset + span.len).ok_or_else(damaged)?)?))
    }

    /// Loads the note in the file at `path`.
    pub fn open(path: &Path) -> Result<Box<dyn Kind>> {
        Self::load(&fs::read(path).map_err(Fault::io(path))?)
    }
}

impl Kind for Note {
    fn variant(&self) -> &'static Variant {
        &ROW
    }
    fn hasher(&self) -> KeyHasher {
        KeyHasher::seeded(0).holding(AddedDomains::UNKNOWN)
    }
    fn capacity(&self) -> u64 {
        0
    }
    fn target_fpr(&self) -> f64 {
        0.0
    }
    fn num_added(&self) -> u64 {
        0
    }
    fn fpr(&self) -> f64 {
        0.0
    }
    fn fill(&self) -> f64 {
        0.0
    }
    fn nbytes(&self) -> u64 {
        self.0.len() as u64
    }
    fn info_with(&self, _: CellStats) -> Vec<(&'static str, Value)> {
        vec![("nbytes", Value::Number(self.nbytes()))]
    }
    fn container(&self) -> Container<'_> {
        let section = Section { kind: kind::NOTE, index: 0, bytes: &self.0, checksum: None };
        Container { header: Header::new(ID, 0, &self.hasher()), sections: vec![section] }
    }
    fn duplicate(&self) -> Result<Box<dyn Kind>> {
        Ok(Box::new(Note(self.0.clone())))
    }
    fn contains(&self, _: &[u64], found: &mut [u8]) {
        found.fill(0);
    }
    fn bound(&mut self, _: u64) {}
    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(note: &Note) -> Vec<u8> {
        let (container, mut bytes) = (note.container(), Vec::new());
        let head = container.head().unwrap_or_default();
        container.write_with(&head, &mut bytes).unwrap_or_default();
        bytes
    }

    #[test]
    fn notes_round_trip_and_damaged_ones_are_refused() -> Result<()> {
        for text in [b"".as_slice(), b"a \r\n\0\xff", &[7; MOST]] {
            let bytes = file(&Note::new(text)?);
            assert_eq!(Note::text_of(Note::load(&bytes)?.as_ref()), Some(text));
            assert!(Note::load(&bytes[..bytes.len() - 1]).is_err());
        }
        let mut bytes = file(&Note::new(b"{\"a\": 1}")?);
        // Later releases read these files, so their bytes must not change.
        assert_eq!((bytes.len(), crc32fast::hash(&bytes)), (192, 2_770_862_845));
        for at in 0..bytes.len() {
            bytes[at] ^= 1;
            assert!(at >= 136 || Note::load(&bytes).is_err(), "{at}");
            bytes[at] ^= 1;
        }
        assert!(Note::new(&[0; MOST + 1]).is_err_and(|fault| fault.text.contains("65536")));
        Ok(())
    }
}
