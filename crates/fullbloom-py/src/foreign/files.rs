//! Filters of other programs from files, by their own bytes or in a container of ours.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use fullbloom_core::container::header::MAGIC;
use fullbloom_core::error::{Error, Result};
use fullbloom_core::foreign::bits::BitFilter;
use fullbloom_core::foreign::formats::{self, Format, Head};
use fullbloom_core::foreign::redisbloom::dump::{self, Dumped};
use fullbloom_core::foreign::redisbloom::row::Row;
use fullbloom_core::foreign::rules::Range;
use fullbloom_core::structure::opening::named;

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
        named(read(), path)
    }
}

/// The first bytes of a regular file, the file behind them, and its length.
fn first_bytes(path: &Path) -> Result<(Vec<u8>, File, u64)> {
    let failed = |error| Error::io(error, path);
    // Opening a pipe would wait for its writer.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return named(Err(Error::format("not a regular file, so not a filter")), path);
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
    named(dump::read(&mut (&head[..]).chain(&mut file), len, max_bytes), path)
}

/// The row of the dump in the file at `path`, if it is one.
pub(crate) fn detect_dump(path: &Path) -> Option<&'static Row> {
    let len = fs::metadata(path).ok()?.len();
    dump::detect(len, |count| {
        let mut first = Vec::new();
        File::open(path).ok()?.take(count as u64).read_to_end(&mut first).ok()?;
        Some(first)
    })
}

/// The format of the file at `path`, if it does not begin as ours do and one fits.
pub(crate) fn detect(path: &Path) -> Result<Option<&'static Format>> {
    let (head, _, len) = first_bytes(path)?;
    Ok(if head.starts_with(&MAGIC) { None } else { formats::detect(&head, len) })
}

/// The name of the format of the file at `path`, as [`detect`] finds it, or that of a dump.
pub(crate) fn detect_name(path: &Path) -> Result<Option<&'static str>> {
    let (head, _, len) = first_bytes(path)?;
    if head.starts_with(&MAGIC) {
        return Ok(None);
    }
    let found = formats::detect(&head, len).map(|format| format.name);
    Ok(found.or_else(|| detect_dump(path).map(|row| row.name)))
}
