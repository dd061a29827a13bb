//! Filters from bytes and files, filters to files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bloomery_core::bloom::BloomFilter;
use bloomery_core::cells::Memory;
use bloomery_core::container::file::{Opened, Writer};
use bloomery_core::container::header::Span;
use bloomery_core::container::{Parsed, Verify};
use bloomery_core::error::{Error, Result, shown};
use bloomery_core::key::KeyHasher;
use bloomery_core::registry;
use bloomery_core::structure::Loadable;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::errors::{parameter, parameter_type};
use crate::params;

const WRITTEN_ONLY: &str =
    "mode=\"r+\" is for a BloomFilter, whose file does not grow; open with mode=\"r\", copy(), add and save()";

/// `mode=` of open.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Mode {
    Read,
    Write,
}

/// Accepts `mode="r"` only, for structures that are not written in place.
pub(crate) fn read_only_mode(py: Python<'_>, value: &str) -> PyResult<()> {
    if mode(py, value)? == Mode::Write {
        return Err(parameter(py, WRITTEN_ONLY));
    }
    Ok(())
}

/// Reads `mode=`.
pub(crate) fn mode(py: Python<'_>, name: &str) -> PyResult<Mode> {
    match name {
        "r" => Ok(Mode::Read),
        "r+" => Ok(Mode::Write),
        _ => Err(parameter(py, format!("mode must be \"r\" or \"r+\", got {name:?}"))),
    }
}

/// What a caller asks of the file that is read.
pub(crate) struct Wanted {
    pub(crate) verify: Verify,
    pub(crate) secret: Option<[u8; 16]>,
    /// Most bytes of cells, now and after growth.
    pub(crate) max_bytes: u64,
}

impl Wanted {
    /// From `verify=`, `secret=` and `max_bytes=`.
    pub(crate) fn read(
        py: Python<'_>,
        verify: &str,
        secret: Option<&Bound<'_, PyAny>>,
        max_bytes: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let verify = match verify {
            "header" => Verify::Header,
            "full" => Verify::Full,
            _ => return Err(parameter(py, format!("verify must be \"header\" or \"full\", got {verify:?}"))),
        };
        let max_bytes = max_bytes.map_or(Ok(u64::MAX), |bytes| params::whole("max_bytes", bytes, 1))?;
        Ok(Wanted { verify, secret: params::secret(secret)?, max_bytes })
    }

    /// The structure of `variant` in a sound file, its sections given by `memory`.
    fn load<F: Loadable>(&self, parsed: &Parsed, variant: u16, memory: impl Fn(Span) -> Result<Memory>) -> Result<F> {
        self.load_hashing(parsed, variant, || parsed.header.hasher(self.secret.as_ref()), memory)
    }

    /// [`Wanted::load`] of one that hashes as is told.
    fn load_hashing<F: Loadable>(
        &self,
        parsed: &Parsed,
        variant: u16,
        hasher: impl FnOnce() -> Result<KeyHasher>,
        memory: impl Fn(Span) -> Result<Memory>,
    ) -> Result<F> {
        check_variant(parsed.header.variant, variant)?;
        self.check_bytes(parsed)?;
        if parsed.header.unclean && variant != registry::BLOOM {
            return Err(Error::format("the file is marked as open for writing, which no such file can be"));
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

    /// Refuses a filter that is larger than asked for, before anything is allocated.
    fn check_bytes(&self, parsed: &Parsed) -> Result<()> {
        let bytes: usize = parsed.sections.iter().map(|span| span.len).sum();
        if bytes as u64 <= self.max_bytes {
            return Ok(());
        }
        Err(Error::Memory(format!(
            "the file holds a filter of {bytes} bytes, max_bytes is {}; raise it if you trust the file",
            self.max_bytes
        )))
    }
}

/// Refuses a file of another structure, naming both.
fn check_variant(found: u16, wanted: u16) -> Result<()> {
    if found == wanted {
        return Ok(());
    }
    let name = |id| registry::by_id(id).map_or_else(|| format!("unknown structure {id}"), |v| v.class.to_string());
    Err(Error::format(format!("the file holds a {}, not a {}; use bloomery.open()", name(found), name(wanted))))
}

/// An owned filter from the bytes of a whole file, every one of them checked.
pub(crate) fn from_bytes<F: Loadable>(bytes: &[u8], variant: u16, wanted: &Wanted) -> Result<F> {
    let parsed = Parsed::new(bytes, Verify::Full)?;
    wanted.load(&parsed, variant, |span| owned(bytes, span))
}

/// [`from_bytes`] of a file made of a filter that hashes as `hasher` does.
pub(crate) fn from_bytes_hashing<F: Loadable>(bytes: &[u8], variant: u16, hasher: &KeyHasher) -> Result<F> {
    let parsed = Parsed::new(bytes, Verify::Full)?;
    let wanted = Wanted { verify: Verify::Full, secret: None, max_bytes: u64::MAX };
    wanted.load_hashing(&parsed, variant, || Ok(*hasher), |span| owned(bytes, span))
}

/// A section in memory of its own: nothing is allocated that the bytes at hand do not fill.
fn owned(bytes: &[u8], span: Span) -> Result<Memory> {
    let mut memory = Memory::zeroed(span.len as u64 / 8)?;
    memory.copy_from_bytes(&bytes[span.offset..span.offset + span.len])?;
    Ok(memory)
}

/// Every section belongs to something, or keys would vanish silently.
fn check_used(parsed: &Parsed, used: usize) -> Result<()> {
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
    Err(Error::format(format!("a section of the file has {len} bytes, its parameters ask for {wanted}")))
}

/// The file at `path`, its header checked.
pub(crate) fn opened(path: &Path) -> Result<Opened> {
    named(Opened::new(path), path)
}

/// A filter over a read-only mapping of `file`, which was opened as `path`.
pub(crate) fn open_read<F: Loadable>(file: &Opened, path: &Path, variant: u16, wanted: &Wanted) -> Result<F> {
    let (parsed, map) = (&file.parsed, Arc::new(file.map(path)?));
    let load = || {
        if wanted.verify == Verify::Full {
            check_payload(parsed, &map)?;
        }
        wanted.load(parsed, variant, |span| {
            let checksum = (!parsed.header.unclean).then_some(span.crc);
            Memory::from_map(&map, span.offset, span.len / 8, checksum)
        })
    };
    named(load(), path)
}

/// A Bloom filter over a writable mapping of `path`, which stays locked while it lives. Unless a writer died over
/// the file, so that nothing vouches for it, every byte is checked: closing it will.
pub(crate) fn open_write(path: &Path, wanted: &Wanted) -> Result<BloomFilter> {
    let writer = Writer::open(path)?;
    let load = || {
        let parsed = writer.parse()?;
        if registry::by_id(parsed.header.variant).is_some_and(|row| row.id != registry::BLOOM) {
            return Err(Error::parameter(WRITTEN_ONLY));
        }
        if wanted.verify == Verify::Full || !parsed.header.unclean {
            check_payload(&parsed, &writer.map()?)?;
        }
        wanted.load(&parsed, registry::BLOOM, |span| Memory::from_map_mut(writer.map_mut()?, span.offset, span.len / 8))
    };
    let mut filter: BloomFilter = named(load(), path)?;
    filter.attach(writer)?;
    Ok(filter)
}

/// Every byte of the payload.
fn check_payload(parsed: &Parsed, map: &[u8]) -> Result<()> {
    // The file may have been cut in place since its length was taken.
    if parsed.sections.iter().any(|s| s.offset + s.len > map.len()) {
        return Err(Error::format("the file was cut short while it was opened"));
    }
    parsed.check_payload(map)
}

/// Puts the path in front of a format error.
fn named<T>(result: Result<T>, path: &Path) -> Result<T> {
    result.map_err(|error| match error {
        Error::Format(message) if !message.starts_with(&shown(path)) => {
            Error::Format(format!("{}: {message}", shown(path)))
        }
        other => other,
    })
}

/// Refuses a mapped filter whose cells are not sound: taken into another one, nobody could tell any more.
pub(crate) fn check_sound<F: Loadable>(filter: &F) -> Result<()> {
    let container = filter.container();
    if container.sections.iter().all(|section| section.checksum.is_none()) {
        return Ok(());
    }
    container.sections.iter().try_for_each(|section| section.checked().map(drop))?;
    filter.check_cells()
}

/// Refuses a mapped filter whose cells contradict each other, at which nobody may have looked yet.
pub(crate) fn check_mapped<F: Loadable>(filter: &F) -> Result<()> {
    let mapped = filter.container().sections.iter().any(|section| section.checksum.is_some());
    if mapped { filter.check_cells() } else { Ok(()) }
}

/// An independent copy; of a mapped filter only if it is sound.
pub(crate) fn copied<F: Loadable>(filter: &F) -> Result<F> {
    check_mapped(filter)?;
    filter.try_clone()
}

/// Saves; a mapped filter only if it is sound, or nobody could open what was saved.
pub(crate) fn saved<F: Loadable>(filter: &F, path: &Path) -> Result<()> {
    check_mapped(filter)?;
    filter.save(path)
}

/// A path from `str`, `bytes` or `os.PathLike`.
pub(crate) fn path(value: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    let py = value.py();
    let decoded = py.import("os")?.call_method1("fsdecode", (value,)).map_err(|error| {
        if error.is_instance_of::<PyTypeError>(py) {
            let why = format!("path must be str, bytes or os.PathLike ({})", error.value(py));
            return parameter_type(py, why);
        }
        error
    })?;
    decoded.extract()
}
