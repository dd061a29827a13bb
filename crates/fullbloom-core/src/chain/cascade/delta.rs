//! The delta between two versions of a cascade: much smaller than the new version if few keys have changed.
//!
//! ```text
//! magic, version 1 and 0 (16 bits each), hash of the version it applies to and of the one it gives (64 bits each)
//! length of the head of the new file, the head
//! each section of that file in turn; of the packed bits, each run
//! CRC-32 of the bytes before
//! ```
//!
//! Each run of bits is written as its difference from the one at its place in the other version
//! ([`super::difference`]), if that is as long. The place of a run of bits is its number. A head holds the checksums of
//! all sections, so that XXH3 of it identifies a file.

use super::FilterCascade;
use super::difference::{self, Bytes, append, copy_bits, delta_error};
use super::level::{Level, MOST_LEVELS, numbers};
use crate::cells::LINE_BYTES;
use crate::container::header::Span;
use crate::container::{Container, ContainerIndex, Header, Section, kind, tag};
use crate::error::{Error, Result};
use crate::hash::xxh3::xxh3;
use crate::structure::{Declared, Filter};

const MAGIC: [u8; 8] = *b"\x89BLDLT\r\n";
const VERSION: u16 = 1;
const CRC: usize = 4;
/// A filter has three at most.
const MOST_SECTIONS: usize = 2 + 3 * MOST_LEVELS;

/// A section that another version has.
fn section_of<'a>(base: &Container<'a>, kind: u32, index: u32) -> Option<&'a [u8]> {
    base.sections.iter().find(|section| (section.kind, section.index) == (kind, index)).map(|section| section.bytes)
}

/// Rows of levels among the bits of all, as a table of them holds.
fn rows(table: &[u8]) -> impl Iterator<Item = Option<Level>> {
    let rows = table.as_chunks::<8>().0.iter().map(|row| u64::from_le_bytes(*row));
    rows.take_while(|&row| row != 0).map(Level::from_row)
}

impl FilterCascade {
    /// Bits of run `number`, if there are that many.
    fn run_bits(&self, number: usize, num_bits: u64) -> Option<Vec<u8>> {
        let (start, level) = self.run(number)?;
        (level.num_bits == num_bits).then(|| copy_bits(self.bits.bytes(), start, num_bits))
    }

    /// The delta with which [`FilterCascade::apply_delta`] turns this version into `new`.
    pub fn delta_to(&self, new: &Self) -> Result<Vec<u8>> {
        self.differences(new).check()?;
        let (base, file) = (self.container(), new.container());
        let (base_head, head) = (base.head()?, file.head()?);
        let mut out = Vec::from(MAGIC);
        out.extend(VERSION.to_le_bytes().into_iter().chain([0, 0]));
        [&base_head, &head].iter().for_each(|head| out.extend(xxh3(head, 0).to_le_bytes()));
        difference::write_number(head.len() as u64, &mut out);
        difference::write(Some(&base_head), &head, 8 * head.len() as u64, &mut out);
        for &Section { kind, index, bytes, .. } in &file.sections {
            if (kind, index) == (kind::BITS, 0) {
                for (number, level) in numbers(new.later, new.parts.len()).zip(new.rows()) {
                    let num_bits = level.num_bits;
                    let bits = new.run_bits(number, num_bits).unwrap_or_default();
                    difference::write(self.run_bits(number, num_bits).as_deref(), &bits, num_bits, &mut out);
                }
            } else {
                difference::write(section_of(&base, kind, index), bytes, 8 * bytes.len() as u64, &mut out);
            }
        }
        out.extend(crc32fast::hash(&out).to_le_bytes());
        Ok(out)
    }

    /// The bytes of the file of the new version.
    pub fn apply_delta(&self, delta: &[u8]) -> Result<Vec<u8>> {
        let (bytes, crc) =
            delta.split_at_checked(delta.len().wrapping_sub(CRC)).ok_or_else(|| delta_error("is cut short"))?;
        let mut from = Bytes(bytes);
        if from.take(MAGIC.len())? != MAGIC {
            return Err(Error::format("this is not a delta of a cascade (it does not start with \\x89BLDLT)"));
        }
        let version = from.take(4)?;
        if version[..2] != VERSION.to_le_bytes() {
            let found = u16::from_le_bytes([version[0], version[1]]);
            return Err(Error::Format(format!(
                "the delta has format version {found}, this release reads {VERSION}; use a newer release"
            )));
        }
        if crc != crc32fast::hash(bytes).to_le_bytes() || version[2..] != [0, 0] {
            return Err(delta_error("does not match its checksum"));
        }
        let base = self.container();
        let base_head = base.head()?;
        if from.take(8)? != xxh3(&base_head, 0).to_le_bytes() {
            return Err(Error::Incompatible(
                "the delta is for another version of the cascade than this one; fetch the one for it, or the whole file"
                    .into(),
            ));
        }
        let result = from.take(8)?;
        let len = from.number()?;
        let head = difference::read(Some(&base_head), len.saturating_mul(8), &mut from)?;
        // Fuzzing cannot compute this number for a head that it changes.
        if !cfg!(fuzzing) && xxh3(&head, 0).to_le_bytes() != result {
            return Err(delta_error("produces another file than its checksum states"));
        }
        let parsed = ContainerIndex::from_head(&head, ContainerIndex::file_len(&head))?;
        let rule = |header: &Header| {
            (header.variant, header.seed, header.secret_fingerprint, header.get(tag::HASH, 0).ok(), header.unclean)
        };
        if rule(&parsed.header) != rule(&base.header) {
            return Err(delta_error("produces a file of another structure or another hash"));
        }
        let file = self.assemble(head, &parsed, &base, &mut from)?;
        if !from.0.is_empty() {
            return Err(delta_error("has unused bytes"));
        }
        Ok(file)
    }

    /// The file that begins with `head`.
    fn assemble(
        &self,
        head: Vec<u8>,
        new: &ContainerIndex,
        base: &Container<'_>,
        from: &mut Bytes<'_>,
    ) -> Result<Vec<u8>> {
        let spans: &[Span] = &new.sections;
        if spans.len() > MOST_SECTIONS {
            return Err(delta_error("has more sections than levels have"));
        }
        let (mut file, mut table) = (head, None);
        let parts = spans.iter().map(|span| span.index).max().unwrap_or(0) as usize;
        let later = new.header.get(tag::LATER, 0).unwrap_or(0).min(parts as u64) as usize;
        for (i, span) in spans.iter().enumerate() {
            // A repeated section would be copied twice, and so on.
            if spans[..i].iter().any(|other| (other.kind, other.index) == (span.kind, span.index)) {
                return Err(delta_error("has a section twice"));
            }
            let bytes = match (span.kind, span.index) {
                (kind::BITS, 0) => self.runs_read(table.take(), numbers(later, parts), span.len, from)?,
                (kind, index) => difference::read(section_of(base, kind, index), 8 * span.len as u64, from)?,
            };
            file.extend_from_slice(&bytes);
            if (span.kind, span.index) == (kind::LEVELS, 0) {
                table = Some(bytes);
            }
            file.resize(file.len().next_multiple_of(LINE_BYTES), 0);
        }
        Ok(file)
    }

    /// The bits of all runs of the table, of these numbers.
    fn runs_read(
        &self,
        table: Option<Vec<u8>>,
        numbers: impl Iterator<Item = usize>,
        len: usize,
        from: &mut Bytes<'_>,
    ) -> Result<Vec<u8>> {
        let table = table.ok_or_else(|| delta_error("has levels without a table"))?;
        let (mut bytes, mut end) = (Vec::new(), 0u64);
        for (number, level) in numbers.zip(rows(&table)).take(2 * MOST_LEVELS) {
            let num_bits = level.ok_or_else(|| delta_error("names a level that does not exist"))?.num_bits;
            let piece = difference::read(self.run_bits(number, num_bits).as_deref(), num_bits, from)?;
            append(&mut bytes, end, &piece, num_bits);
            end += num_bits;
        }
        if len as u64 != end.div_ceil(512).max(1) * 64 {
            return Err(delta_error("has more or fewer bits than its levels"));
        }
        bytes.resize(len, 0);
        Ok(bytes)
    }
}
