//! The filter in a container of ours: its program's header among the parameters, its cells as a section.

use std::path::Path;
use std::sync::Arc;

use super::{FingerprintFilter, rows};
use crate::cells::Memory;
use crate::container::file::OpenFile;
use crate::container::header::Span;
use crate::container::{Container, ContainerIndex, FOREIGN_STATIC, Header, Section, Verify, kind, save, tag};
use crate::error::{Error, Result};
use crate::foreign::key_type::KeyType;
use crate::key::{AddedDomains, KeyHasher};

fn damaged(what: &str) -> Error {
    Error::format(format!("no filter has the file's {what}; the file is damaged, or of a newer release"))
}

/// Parameters before the words of the program's header.
const TAGS: [u16; 3] = [tag::FOREIGN_LENGTH, tag::FOREIGN_FORMAT, tag::FOREIGN_KEYS];

impl FingerprintFilter {
    /// As a file.
    pub fn container(&self) -> Container<'_> {
        let mut header = Header::new(FOREIGN_STATIC, 0, &KeyHasher::seeded(0).holding(AddedDomains::UNKNOWN));
        let head = self.head();
        let numbers = [head.len() as u64, self.format.number.into(), self.key_type as u64];
        TAGS.into_iter().zip(numbers).for_each(|(tag, number)| header.set(tag, 0, number));
        for (index, part) in head.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            header.set(tag::FOREIGN_HEADER, index as u16, u64::from_le_bytes(word));
        }
        Container { header, sections: vec![Section::of(kind::CELLS, &self.memory)] }
    }

    /// Saves it; a mapped filter only if it is not damaged.
    pub fn save(&self, path: &Path) -> Result<()> {
        save(&self.container(), path)
    }

    /// The filter in the bytes of a whole file, all of which are checked. It may have at most `max_bytes` of cells.
    pub fn from_file(bytes: &[u8], max_bytes: u64) -> Result<Self> {
        let parsed = ContainerIndex::new(bytes, Verify::Full)?;
        let filter = Self::restore(&parsed, max_bytes, |span| {
            let mut memory = Memory::zeroed(span.len as u64 / 8)?;
            memory.copy_from_bytes(&bytes[span.offset..span.offset + span.len])?;
            Ok(memory)
        })?;
        filter.check_rest()?;
        Ok(filter)
    }

    /// The filter over a read-only mapping of `file`, which was opened as `path`.
    pub fn open(file: &OpenFile, path: &Path, verify: Verify, max_bytes: u64) -> Result<Self> {
        let (parsed, map) = (&file.parsed, Arc::new(file.map(path)?));
        if parsed.sections.iter().any(|span| span.offset + span.len > map.len()) {
            return Err(Error::format("the file was cut short while it was opened"));
        }
        if verify == Verify::Full {
            parsed.check_payload(&map)?;
        }
        let filter =
            Self::restore(parsed, max_bytes, |span| Memory::from_map(&map, span.offset, span.len / 8, Some(span.crc)))?;
        if verify == Verify::Full {
            filter.check_rest()?;
        }
        Ok(filter)
    }

    fn restore(parsed: &ContainerIndex, max_bytes: u64, memory: impl FnOnce(Span) -> Result<Memory>) -> Result<Self> {
        let header = &parsed.header;
        let clean = (header.seed, header.secret_fingerprint, header.unclean) == (0, 0, false);
        if header.variant != FOREIGN_STATIC || header.scheme != 0 || !clean {
            return Err(damaged("header"));
        }
        let format = rows::numbered(header.get(tag::FOREIGN_FORMAT, 0)?).ok_or_else(|| damaged("format"))?;
        let key_type = KeyType::numbered(header.get(tag::FOREIGN_KEYS, 0)?).ok_or_else(|| damaged("type of keys"))?;
        format.keys().check(key_type).map_err(Error::as_format)?;
        let head_len = format.family.head_len();
        let words = head_len.div_ceil(8);
        if header.get(tag::FOREIGN_LENGTH, 0)? != head_len as u64 || header.params.len() != TAGS.len() + words {
            return Err(damaged("header"));
        }
        let mut head = Vec::new();
        for index in 0..words {
            head.extend(header.get(tag::FOREIGN_HEADER, index as u16)?.to_le_bytes());
        }
        if head[head_len..].iter().any(|&byte| byte != 0) {
            return Err(damaged("header"));
        }
        let (seed, shape) = format.family.parse(&head[..head_len]).map_err(|why| format.refuse(why))?;
        let [span] = parsed.sections[..] else { return Err(damaged("number of sections")) };
        let bytes = shape.num_cells() * u64::from(format.width / 8);
        if (span.kind, span.index) != (kind::CELLS, 0) || span.len as u64 != bytes.next_multiple_of(64) {
            return Err(damaged("length of cells"));
        }
        if bytes > max_bytes {
            return Err(Error::Memory(format!(
                "the filter has {bytes} bytes, max_bytes is {max_bytes}; raise it if you trust the file"
            )));
        }
        Ok(FingerprintFilter { format, key_type, seed, shape, memory: memory(span)? })
    }

    /// Refuses bytes behind the last cell.
    fn check_rest(&self) -> Result<()> {
        let rest = &self.memory.bytes()[self.nbytes() as usize..];
        if rest.iter().all(|&byte| byte == 0) { Ok(()) } else { Err(damaged("last line")) }
    }
}
