//! Filters from bytes and files, filters to files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bloomery_core::bloom::BloomFilter;
use bloomery_core::cells::Memory;
use bloomery_core::container::file::{self, Writer};
use bloomery_core::container::{Parsed, Verify};
use bloomery_core::error::{Error, Result};
use bloomery_core::registry;
use bloomery_core::structure::Loadable;
use pyo3::prelude::*;

use crate::errors::parameter;

/// `mode=` of open.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Mode {
    Read,
    Write,
}

/// Accepts `mode="r"` only, for structures that are not written in place.
pub(crate) fn read_only_mode(py: Python<'_>, value: &str) -> PyResult<()> {
    if mode(py, value)? == Mode::Write {
        return Err(parameter(
            py,
            "mode=\"r+\" is for a BloomFilter, whose file does not grow; open with mode=\"r\", copy(), add and save()",
        ));
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

/// Reads `verify=`.
pub(crate) fn verify(py: Python<'_>, name: &str) -> PyResult<Verify> {
    match name {
        "header" => Ok(Verify::Header),
        "full" => Ok(Verify::Full),
        _ => Err(parameter(py, format!("verify must be \"header\" or \"full\", got {name:?}"))),
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
pub(crate) fn from_bytes<F: Loadable>(bytes: &[u8], variant: u16, secret: Option<&[u8; 16]>) -> Result<F> {
    let parsed = Parsed::new(bytes, Verify::Full)?;
    check_variant(parsed.header.variant, variant)?;
    let mut used = 0;
    let mut memory = |kind, index, words| {
        used += 1;
        owned(&parsed, bytes, kind, index, words)
    };
    let filter = F::load(&parsed.header, parsed.header.hasher(secret)?, &mut memory)?;
    check_used(&parsed, used)?;
    Ok(filter)
}

/// Memory with a copy of a section; nothing is allocated that the bytes at hand do not fill.
fn owned(parsed: &Parsed, bytes: &[u8], kind: u32, index: u32, words: u64) -> Result<Memory> {
    let span = parsed.section(kind, index)?;
    check_len(span.len, words)?;
    let mut memory = Memory::zeroed(words)?;
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

/// A filter over a read-only mapping of `path`.
pub(crate) fn open_read<F: Loadable>(
    path: &Path,
    variant: u16,
    verify: Verify,
    secret: Option<&[u8; 16]>,
) -> Result<F> {
    let (file, parsed) = named(file::parse(path), path)?;
    let map = Arc::new(file::map(&file, path)?);
    check_payload(&parsed, &map, verify, path)?;
    check_variant(parsed.header.variant, variant)?;
    let mut used = 0;
    let mut memory = |kind, index, words| {
        used += 1;
        let span = parsed.section(kind, index)?;
        check_len(span.len, words)?;
        Memory::from_map(&map, span.offset, span.len / 8)
    };
    let filter =
        named(parsed.header.hasher(secret).and_then(|hasher| F::load(&parsed.header, hasher, &mut memory)), path)?;
    named(check_used(&parsed, used), path)?;
    Ok(filter)
}

/// A Bloom filter over a writable mapping of `path`, which stays locked while it lives.
pub(crate) fn open_write(path: &Path, verify: Verify, secret: Option<&[u8; 16]>) -> Result<BloomFilter> {
    let writer = Writer::open(path)?;
    let (file, parsed) = named(file::parse(path), path)?;
    check_payload(&parsed, &file::map(&file, path)?, verify, path)?;
    if parsed.header.variant != registry::BLOOM {
        return Err(Error::parameter("mode=\"r+\" is for a BloomFilter; open with mode=\"r\", copy(), add and save()"));
    }
    let mut memory = |kind, index, words| {
        let span = parsed.section(kind, index)?;
        check_len(span.len, words)?;
        Memory::from_map_mut(writer.map()?, span.offset, span.len / 8)
    };
    let mut filter = named(
        parsed.header.hasher(secret).and_then(|hasher| BloomFilter::load(&parsed.header, hasher, &mut memory)),
        path,
    )?;
    filter.attach(writer)?;
    Ok(filter)
}

/// Every byte of the payload, when that was asked for.
fn check_payload(parsed: &Parsed, map: &[u8], verify: Verify, path: &Path) -> Result<()> {
    match verify {
        Verify::Header => Ok(()),
        // The file may have been replaced in place since its length was taken.
        Verify::Full if parsed.sections.iter().any(|s| s.offset + s.len > map.len()) => {
            named(Err(Error::format("the file was cut short while it was opened")), path)
        }
        Verify::Full => named(parsed.check_payload(map), path),
    }
}

/// Puts the path in front of a format error.
fn named<T>(result: Result<T>, path: &Path) -> Result<T> {
    result.map_err(|error| match error {
        Error::Format(message) if !message.starts_with(&*path.to_string_lossy()) => {
            Error::Format(format!("{}: {message}", path.display()))
        }
        other => other,
    })
}

/// The variant number in the header of `path`, checked.
pub(crate) fn variant_of(path: &Path) -> Result<u16> {
    Ok(named(file::parse(path), path)?.1.header.variant)
}

/// A path from `str`, `bytes` or `os.PathLike`.
pub(crate) fn path(value: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    value.py().import("os")?.call_method1("fsdecode", (value,))?.extract()
}
