//! Structures from files and bytes: the caller's conditions, and the restoring.

use std::path::Path;
use std::sync::Arc;

use crate::cells::Memory;
use crate::container::file::OpenFile;
use crate::container::header::Span;
use crate::container::unreadable;
use crate::container::{ContainerIndex, Verify};
use crate::error::{Error, Result, display_name};
use crate::key::KeyHasher;
use crate::registry;
use crate::structure::Loadable;

/// The caller's conditions on a file.
pub struct OpenOptions {
    /// Which bytes are checked.
    pub verify: Verify,
    /// The secret of a keyed filter.
    pub secret: Option<[u8; 16]>,
    /// Most bytes of cells, now and after growth.
    pub max_bytes: u64,
}

impl OpenOptions {
    /// The structure of `variant` in a sound file, its sections given by `memory`.
    pub fn load<F: Loadable>(
        &self,
        parsed: &ContainerIndex,
        variant: u16,
        memory: impl Fn(Span) -> Result<Memory>,
    ) -> Result<F> {
        self.load_hashing(parsed, variant, || parsed.header.hasher(self.secret.as_ref()), memory)
    }

    /// [`OpenOptions::load`] of a filter whose hash the caller knows.
    fn load_hashing<F: Loadable>(
        &self,
        parsed: &ContainerIndex,
        variant: u16,
        hasher: impl FnOnce() -> Result<KeyHasher>,
        memory: impl Fn(Span) -> Result<Memory>,
    ) -> Result<F> {
        check_variant(parsed.header.variant, variant)?;
        self.check_bytes(parsed)?;
        if parsed.header.unclean && variant != registry::BLOOM {
            return Err(Error::format(
                "the file is marked as open for writing, which a file of this structure never is",
            ));
        }
        let mut used = 0;
        let mut section = |kind, index, words| {
            used += 1;
            let span = parsed.section(kind, index)?;
            check_len(span.len, words)?;
            memory(span)
        };
        let mut filter = F::load(&parsed.header, hasher()?, &mut section)?;
        check_used(parsed, used)?;
        if self.verify == Verify::Full {
            filter.check_cells()?;
        }
        filter.bound(self.max_bytes);
        Ok(filter)
    }

    /// Refuses a filter larger than `max_bytes`, before anything is allocated.
    fn check_bytes(&self, parsed: &ContainerIndex) -> Result<()> {
        let bytes: usize = parsed.sections.iter().map(|span| span.len).sum();
        if bytes as u64 <= self.max_bytes {
            return Ok(());
        }
        Err(Error::Memory(format!(
            "the file holds a filter of {bytes} bytes, max_bytes is {}; raise it if you trust the file",
            self.max_bytes
        )))
    }

    /// An owned filter from the bytes of a whole file, all of which are checked.
    pub fn from_bytes<F: Loadable>(&self, bytes: &[u8], variant: u16) -> Result<F> {
        let parsed = ContainerIndex::new(bytes, Verify::Full)?;
        self.load(&parsed, variant, |span| copy_section(bytes, span))
    }

    /// A filter over a read-only mapping of `file`, which was opened as `path`.
    pub fn open<F: Loadable>(&self, file: &OpenFile, path: &Path, variant: u16) -> Result<F> {
        let (parsed, map) = (&file.parsed, Arc::new(file.map(path)?));
        let load = || {
            if self.verify == Verify::Full {
                check_payload(parsed, &map)?;
            }
            self.load(parsed, variant, |span| {
                let checksum = (!parsed.header.unclean).then_some(span.crc);
                Memory::from_map(&map, span.offset, span.len / 8, checksum)
            })
        };
        with_path(load(), path)
    }
}

/// [`OpenOptions::from_bytes`] of the file of a filter whose hash is `hasher`.
pub fn from_bytes_hashing<F: Loadable>(bytes: &[u8], variant: u16, hasher: &KeyHasher) -> Result<F> {
    let parsed = ContainerIndex::new(bytes, Verify::Full)?;
    let wanted = OpenOptions { verify: Verify::Full, secret: None, max_bytes: u64::MAX };
    let hashing = || Ok(hasher.holding(parsed.header.added_domains()?));
    wanted.load_hashing(&parsed, variant, hashing, |span| copy_section(bytes, span))
}

/// A section in memory of its own: nothing is allocated that the bytes at hand do not fill.
fn copy_section(bytes: &[u8], span: Span) -> Result<Memory> {
    let mut memory = Memory::zeroed(span.len as u64 / 8)?;
    memory.copy_from_bytes(&bytes[span.offset..span.offset + span.len])?;
    Ok(memory)
}

/// Refuses a file of another structure, naming both.
fn check_variant(found: u16, wanted: u16) -> Result<()> {
    if found == wanted {
        return Ok(());
    }
    let name = |id| registry::by_id(id).map(|row| row.class);
    let (Some(found), Some(wanted)) = (name(found), name(wanted)) else { return Err(unreadable(found)) };
    Err(Error::format(format!("the file holds a {found}, not a {wanted}; use fullbloom.open()")))
}

/// Every section belongs to something, or keys would vanish silently.
fn check_used(parsed: &ContainerIndex, used: usize) -> Result<()> {
    if used == parsed.sections.len() {
        return Ok(());
    }
    Err(Error::format(format!("the file has {} sections, its parameters name {used}", parsed.sections.len())))
}

/// A section is as long as its filter's words, rounded up to whole lines.
fn check_len(len: usize, words: u64) -> Result<()> {
    let wanted = words.div_ceil(8).saturating_mul(64);
    if len as u64 == wanted {
        return Ok(());
    }
    Err(Error::format(format!("a section of the file has {len} bytes, its parameters require {wanted}")))
}

/// Every byte of the payload.
pub fn check_payload(parsed: &ContainerIndex, map: &[u8]) -> Result<()> {
    // The file may have been truncated since its length was read.
    if parsed.sections.iter().any(|s| s.offset + s.len > map.len()) {
        return Err(Error::format("the file was cut short while it was opened"));
    }
    parsed.check_payload(map)
}

/// Puts the path in front of a format error.
pub fn with_path<T>(result: Result<T>, path: &Path) -> Result<T> {
    result.map_err(|error| match error {
        Error::Format(message) if !message.starts_with(&display_name(path)) => {
            Error::Format(format!("{}: {message}", display_name(path)))
        }
        other => other,
    })
}
