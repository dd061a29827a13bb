//! The filter in a container of ours: its program's header among the parameters, its cells as a section.

use std::path::Path;

use super::StaticFilter;
use crate::cells::Memory;
use crate::container::file::OpenFile;
use crate::container::header::Span;
use crate::container::{
    Container, ContainerIndex, FOREIGN_STATIC, Header, Section, Verify, damage_error, kind, save, tag,
};
use crate::error::{Error, Result};
use crate::foreign::fingerprints::FingerprintFilter;
use crate::foreign::formats::{self, Contents};
use crate::foreign::golomb::GolombSet;
use crate::foreign::key_type::KeyType;
use crate::key::{AddedDomains, KeyHasher};

/// Parameters before the words of the program's header.
const TAGS: [u16; 3] = [tag::FOREIGN_LENGTH, tag::FOREIGN_FORMAT, tag::FOREIGN_KEYS];

impl StaticFilter {
    /// As a file.
    pub fn container(&self) -> Container<'_> {
        let mut header = Header::new(FOREIGN_STATIC, 0, &KeyHasher::seeded(0).holding(AddedDomains::UNKNOWN));
        let (head, memory) = match self {
            StaticFilter::Fingerprints(filter) => (filter.head(), filter.memory()),
            StaticFilter::Golomb(set) => (set.head(), set.memory()),
        };
        let numbers = [head.len() as u64, self.format().number.into(), self.key_type() as u64];
        TAGS.into_iter().zip(numbers).for_each(|(tag, number)| header.set(tag, 0, number));
        for (index, part) in head.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            header.set(tag::FOREIGN_HEADER, index as u16, u64::from_le_bytes(word));
        }
        Container { header, sections: vec![Section::of(kind::CELLS, memory)] }
    }

    /// Saves it; a mapped filter only if it is not damaged.
    pub fn save(&self, path: &Path) -> Result<()> {
        save(&self.container(), path)
    }

    /// The filter in the bytes of a whole file, all of which are checked. It may have at most `max_bytes` of cells.
    pub fn from_file(bytes: &[u8], max_bytes: u64) -> Result<Self> {
        let parsed = ContainerIndex::new(bytes, Verify::Full)?;
        let filter =
            Self::restore(&parsed, max_bytes, |span| Memory::copy_of(&bytes[span.offset..span.offset + span.len]))?;
        filter.check_rest()?;
        Ok(filter)
    }

    /// The filter over a read-only mapping of `file`, which was opened as `path`.
    pub fn open(file: &OpenFile, path: &Path, verify: Verify, max_bytes: u64) -> Result<Self> {
        let map = file.map_sections(path, verify)?;
        let filter = Self::restore(&file.parsed, max_bytes, |span| {
            Memory::from_map(&map, span.offset, span.len / 8, Some(span.crc))
        })?;
        if verify == Verify::Full {
            filter.check_rest()?;
        }
        Ok(filter)
    }

    fn restore(parsed: &ContainerIndex, max_bytes: u64, memory: impl FnOnce(Span) -> Result<Memory>) -> Result<Self> {
        let header = &parsed.header;
        let clean = (header.seed, header.secret_fingerprint, header.unclean) == (0, 0, false);
        if header.variant != FOREIGN_STATIC || header.scheme != 0 || !clean {
            return Err(damage_error("header"));
        }
        let format = formats::find_by_number(header.get(tag::FOREIGN_FORMAT, 0)?)
            .filter(|format| format.contents.variant() == FOREIGN_STATIC)
            .ok_or_else(|| damage_error("format"))?;
        let key_type =
            KeyType::from_number(header.get(tag::FOREIGN_KEYS, 0)?).ok_or_else(|| damage_error("type of keys"))?;
        format.check_key_type(key_type).map_err(Error::as_format)?;
        let head_len = usize::try_from(header.get(tag::FOREIGN_LENGTH, 0)?).map_err(|_| damage_error("header"))?;
        let words = head_len.div_ceil(8);
        if header.params.len() != TAGS.len() + words {
            return Err(damage_error("header"));
        }
        let mut head = Vec::new();
        for index in 0..words {
            head.extend(header.get(tag::FOREIGN_HEADER, index as u16)?.to_le_bytes());
        }
        if head[head_len..].iter().any(|&byte| byte != 0) {
            return Err(damage_error("header"));
        }
        let [span] = parsed.sections[..] else { return Err(damage_error("number of sections")) };
        let checked = |bytes: u64| {
            // No memory is empty: that of no cells is a line.
            let whole = bytes.max(1).checked_next_multiple_of(64);
            if (span.kind, span.index) != (kind::CELLS, 0) || Some(span.len as u64) != whole {
                return Err(damage_error("length of cells"));
            }
            format.check_size(bytes, max_bytes)?;
            memory(span)
        };
        let head = &head[..head_len];
        match format.contents {
            Contents::GolombSet => GolombSet::restore(format, key_type, head, checked).map(StaticFilter::Golomb),
            _ => FingerprintFilter::restore(format, key_type, head, checked).map(StaticFilter::Fingerprints),
        }
    }

    /// Refuses bytes behind the last cell.
    fn check_rest(&self) -> Result<()> {
        let memory = match self {
            StaticFilter::Fingerprints(filter) => filter.memory(),
            StaticFilter::Golomb(set) => set.memory(),
        };
        let rest = &memory.bytes()[self.nbytes() as usize..];
        if rest.iter().all(|&byte| byte == 0) { Ok(()) } else { Err(damage_error("last line")) }
    }
}
