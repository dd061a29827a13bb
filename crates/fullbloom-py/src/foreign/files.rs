//! Filters of other programs from files, by their own bytes or in a container of ours.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use fullbloom_core::container::header::MAGIC;
use fullbloom_core::error::{Error, Result};
use fullbloom_core::foreign::bits::BitFilter;
use fullbloom_core::foreign::fingerprints::{FingerprintFilter, FingerprintFormat, rows};
use fullbloom_core::foreign::formats::{self, Format, Head};
use fullbloom_core::foreign::redisbloom::dump::{self, Dumped};
use fullbloom_core::foreign::redisbloom::row::Row;
use fullbloom_core::foreign::rules::Range;
use fullbloom_core::structure::opening::with_path;

/// What the caller says about bytes.
pub(super) struct Wanted<'a> {
    /// Format, detected if it is none.
    pub(super) format: Option<&'static Format>,
    /// Name of the type of keys.
    pub(super) key_type: Option<&'a str>,
    /// Bits and hashes of a filter whose bytes do not state them.
    pub(super) shape: Option<Range>,
    /// Most bytes of bits.
    pub(super) max_bytes: u64,
}

impl Wanted<'_> {
    /// The format of `len` bytes that begin with `head`.
    fn format_of(&self, head: &[u8], len: u64) -> Result<&'static Format> {
        let unknown = || {
            let stating = formats::ALL.iter().filter(|format| format.frame.is_detected && !format.rule.is_bare());
            let names: Vec<_> = stating.map(|format| format.name).collect();
            Error::format(format!(
                "the lengths that these {len} bytes state fit in none of the formats {}; they are damaged, or of another \
                 program (format= says why they are not of that format)",
                names.join(", ")
            ))
        };
        self.format.or_else(|| formats::detect(head, len)).ok_or_else(unknown)
    }

    /// The filter in `bytes`.
    pub(super) fn read(&self, bytes: &[u8]) -> Result<BitFilter> {
        let len = bytes.len() as u64;
        let format = self.format_of(&bytes[..bytes.len().min(Head::MOST)], len)?;
        let key_type = format.key_type(self.key_type)?;
        BitFilter::read(format, key_type, &mut &*bytes, len, self.shape, self.max_bytes)
    }

    /// The filter in the file at `path`, which is read once.
    pub(super) fn open(&self, path: &Path) -> Result<BitFilter> {
        let (head, mut file, len) = first_bytes(path)?;
        let mut read = || {
            let format = self.format_of(&head, len)?;
            let key_type = format.key_type(self.key_type)?;
            BitFilter::read(format, key_type, &mut (&head[..]).chain(&mut file), len, self.shape, self.max_bytes)
        };
        with_path(read(), path)
    }
}

/// The first bytes of a regular file, the file behind them, and its length.
fn first_bytes(path: &Path) -> Result<(Vec<u8>, File, u64)> {
    let failed = |error| Error::io(error, path);
    // Opening a pipe would wait for its writer.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return with_path(Err(Error::format("not a regular file, so not a filter")), path);
    }
    let mut file = File::open(path).map_err(failed)?;
    let len = file.metadata().map_err(failed)?.len();
    let mut head = Vec::new();
    (&mut file).take(Head::MOST as u64).read_to_end(&mut head).map_err(failed)?;
    Ok((head, file, len))
}

/// The filter of `RedisBloom` in the file at `path`, which is read once.
pub(super) fn open_dump<T: Dumped>(path: &Path, max_bytes: u64) -> Result<T> {
    let (head, mut file, len) = first_bytes(path)?;
    with_path(dump::read(&mut (&head[..]).chain(&mut file), len, max_bytes), path)
}

/// The row of the dump in the file at `path`, if it is one.
pub(crate) fn detect_dump(path: &Path) -> Option<&'static Row> {
    let len = fs::metadata(path).ok()?.len();
    dump::detect(len, |count| first_of(path, count))
}

/// The first `count` bytes of the file at `path`, or all.
fn first_of(path: &Path, count: usize) -> Option<Vec<u8>> {
    let mut first = Vec::new();
    File::open(path).ok()?.take(count as u64).read_to_end(&mut first).ok()?;
    Some(first)
}

/// The format of the file at `path`, if it does not begin as ours do and one fits.
pub(crate) fn detect(path: &Path) -> Result<Option<&'static Format>> {
    let (head, _, len) = first_bytes(path)?;
    Ok(if head.starts_with(&MAGIC) { None } else { formats::detect(&head, len) })
}

/// The name of the format of `len` bytes that begin with `head`, of which `first` gives more; None if they fit none.
/// Lengths alone tell filters of fingerprints from others, so those come last.
pub(super) fn name_of(head: &[u8], len: u64, first: impl FnMut(usize) -> Option<Vec<u8>>) -> Option<&'static str> {
    let found = formats::detect(head, len).map(|format| format.name);
    let dumped = || dump::detect(len, first).map(|row| row.name);
    found.or_else(dumped).or_else(|| rows::detect(head, len).map(|format| format.name))
}

/// The name of the format of the file at `path`, if it does not begin as ours do and one fits.
pub(super) fn detect_name(path: &Path) -> Result<Option<&'static str>> {
    let (head, _, len) = first_bytes(path)?;
    Ok(if head.starts_with(&MAGIC) { None } else { name_of(&head, len, |count| first_of(path, count)) })
}

/// The format of the file at `path`, if it is one of fingerprints.
pub(crate) fn detect_static(path: &Path) -> Option<&'static FingerprintFormat> {
    let (head, _, len) = first_bytes(path).ok()?;
    rows::detect(&head, len)
}

/// The format of `len` bytes that begin with `head`, if it is not given.
fn static_format(
    format: Option<&'static FingerprintFormat>,
    head: &[u8],
    len: u64,
) -> Result<&'static FingerprintFormat> {
    let names = || rows::ALL.iter().map(|format| format.name).collect::<Vec<_>>().join(", ");
    format.or_else(|| rows::detect(head, len)).ok_or_else(|| {
        let why = format!("the lengths that these {len} bytes state fit in none of the formats {}", names());
        Error::format(format!("{why} (format= says why they are not of that format)"))
    })
}

/// The filter of fingerprints in `bytes`.
pub(super) fn read_static(
    bytes: &[u8],
    format: Option<&'static FingerprintFormat>,
    key_type: Option<&str>,
    max_bytes: u64,
) -> Result<FingerprintFilter> {
    let len = bytes.len() as u64;
    let format = static_format(format, &bytes[..bytes.len().min(Head::MOST)], len)?;
    FingerprintFilter::read(format, format.keys().named(key_type)?, &mut &*bytes, len, max_bytes)
}

/// The filter of fingerprints in the file at `path`, which is read once.
pub(super) fn open_static(
    path: &Path,
    format: Option<&'static FingerprintFormat>,
    key_type: Option<&str>,
    max_bytes: u64,
) -> Result<FingerprintFilter> {
    let (head, mut file, len) = first_bytes(path)?;
    let mut read = || {
        let format = static_format(format, &head, len)?;
        let key_type = format.keys().named(key_type)?;
        FingerprintFilter::read(format, key_type, &mut (&head[..]).chain(&mut file), len, max_bytes)
    };
    with_path(read(), path)
}
