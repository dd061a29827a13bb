//! Segments: files of the log, each named by the number of its first record.
//!
//! ```text
//! header  "BLMYLOG1" | u64 number of the first record | u32 CRC-32 of the 16 bytes | 4 zero bytes
//! block   u32 length of records | u32 CRC-32 of what follows it in the block | u64 number of its first record |
//!         u64 number of the last record known to be synced when it was written | u32 how many | records
//! ```
//! A crash may cut or lose what was not synced, at the end of the last segment. What does not read there is left out; a
//! block that a later one knows to have been synced, or one of an older segment, is damage, and the fault says where.

use std::fs;
use std::path::{Path, PathBuf};

use crate::fault::{Fault, Result};
use crate::log::record::Read;

const MAGIC: &[u8; 8] = b"BLMYLOG1";
/// Bytes of the header.
pub const HEADER: usize = 24;
/// Bytes of a block before its records.
pub const BLOCK: usize = 28;

/// The file of the segment that begins with record `first`.
pub fn path(folder: &Path, first: u64) -> PathBuf {
    folder.join(format!("{first:016x}.log"))
}

/// All segments of a folder, in order.
pub fn list(folder: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let wrong = Fault::io(folder);
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(&wrong)? {
        let path = entry.map_err(&wrong)?.path();
        let first = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".log").map(str::to_owned));
        if let Some(first) = first.filter(|f| f.len() == 16).and_then(|f| u64::from_str_radix(&f, 16).ok()) {
            found.push((first, path));
        }
    }
    found.sort();
    Ok(found)
}

/// The header of a segment.
pub fn header(first: u64) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(MAGIC);
    header[8..16].copy_from_slice(&first.to_le_bytes());
    let crc = crc32fast::hash(&header[..16]);
    header[16..20].copy_from_slice(&crc.to_le_bytes());
    header
}

/// Fills in the head of a block: `block` begins with [`BLOCK`] bytes, then its records.
pub fn seal(block: &mut [u8], first: u64, synced: u64, records: u32) {
    let length = (block.len() - BLOCK) as u32;
    block[..4].copy_from_slice(&length.to_le_bytes());
    block[8..16].copy_from_slice(&first.to_le_bytes());
    block[16..24].copy_from_slice(&synced.to_le_bytes());
    block[24..28].copy_from_slice(&records.to_le_bytes());
    let crc = crc32fast::hash(&block[8..]);
    block[4..8].copy_from_slice(&crc.to_le_bytes());
}

/// A block that was found sound.
struct Block<'a> {
    first: u64,
    synced: u64,
    records: u32,
    bytes: &'a [u8],
}

/// The sound block at the head of `bytes`.
fn block(bytes: &[u8]) -> Option<Block<'_>> {
    let head = bytes.first_chunk::<BLOCK>()?;
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    let end = BLOCK.checked_add(word(0) as usize).filter(|&end| end <= bytes.len())?;
    // Cheap tests first: a damaged segment is searched byte by byte.
    let plausible = word(24) > 0 && long(16) < long(8);
    (plausible && crc32fast::hash(&bytes[8..end]) == word(4)).then(|| Block {
        first: long(8),
        synced: long(16),
        records: word(24),
        bytes: &bytes[BLOCK..end],
    })
}

/// What is left of a segment after its last sound block.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing.
    Whole,
    /// A block that a crash has cut, from this offset on.
    Cut(u64),
    /// A block that does not read, with sound ones after it, or in a segment that is not the last.
    Damaged(u64),
}

/// Hands each record of a segment to `each`, with its number; tells how it ends.
pub fn read(path: &Path, first: u64, last: bool, mut each: impl FnMut(u64, Read) -> Result<()>) -> Result<End> {
    let bytes = fs::read(path).map_err(Fault::io(path))?;
    if bytes.len() < HEADER && last {
        return Ok(End::Cut(0));
    }
    if bytes.get(..HEADER) != Some(&header(first)[..]) {
        return Ok(End::Damaged(0));
    }
    let (mut at, mut next) = (HEADER, first);
    while at < bytes.len() {
        let Some(Block { first, records, bytes: mut rest, .. }) = block(&bytes[at..]).filter(|b| b.first == next)
        else {
            let known = |later: usize| block(&bytes[later..]).is_some_and(|block| block.synced >= next);
            let damaged = !last || (at + 1..bytes.len().saturating_sub(BLOCK)).any(known);
            return Ok(if damaged { End::Damaged(at as u64) } else { End::Cut(at as u64) });
        };
        at += BLOCK + rest.len();
        next = first + u64::from(records);
        for number in first..next {
            let Some((record, length)) = Read::next(rest)? else { return Ok(End::Damaged(at as u64)) };
            each(number, record)?;
            rest = &rest[length..];
        }
    }
    Ok(End::Whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::record::Record;

    fn written(blocks: &[&[u64]]) -> Vec<u8> {
        let (mut bytes, mut number) = (header(1).to_vec(), 1);
        for hashes in blocks {
            let mut block = vec![0; BLOCK];
            Record::Add { id: 1, hashes }.write(&mut block);
            seal(&mut block, number, number - 1, 1);
            number += 1;
            bytes.extend(block);
        }
        bytes
    }

    fn read_back(bytes: &[u8], last: bool) -> Result<(End, Vec<u64>)> {
        let folder = tempfile::tempdir().map_err(Fault::io(Path::new("a temporary folder")))?;
        let path = path(folder.path(), 1);
        fs::write(&path, bytes).map_err(Fault::io(&path))?;
        let mut seen = Vec::new();
        let end = read(&path, 1, last, |number, _| {
            seen.push(number);
            Ok(())
        })?;
        Ok((end, seen))
    }

    #[test]
    fn a_cut_at_any_byte_loses_the_last_block_alone() -> Result<()> {
        let (two, one) = (written(&[&[1, 2], &[3]]), written(&[&[1, 2]]).len());
        assert_eq!(read_back(&two, true)?, (End::Whole, vec![1, 2]));
        for cut in one + 1..two.len() {
            assert_eq!(read_back(&two[..cut], true)?, (End::Cut(one as u64), vec![1]), "{cut}");
        }
        Ok(())
    }

    #[test]
    fn a_changed_byte_before_a_sound_block_is_damage() -> Result<()> {
        let two = written(&[&[1, 2], &[3]]);
        let one = written(&[&[1, 2]]).len();
        for at in HEADER..one {
            let mut bytes = two.clone();
            bytes[at] ^= 1;
            assert_eq!(read_back(&bytes, true)?.0, End::Damaged(HEADER as u64), "{at}");
        }
        Ok(())
    }
}
