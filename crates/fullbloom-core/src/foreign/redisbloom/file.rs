//! Filters of `RedisBloom` in a container: the contents of a dump, under the container's checksums.

use super::bloom::Chain;
use super::cells::Cells;
use super::cuckoo::Cuckoo;
use super::dumpable::Dumpable;
use crate::container::{Container, ContainerIndex, Header, Section, Verify, kind, tag};
pub use crate::container::{REDISBLOOM as BLOOM, REDISBLOOM_CUCKOO as CUCKOO};
use crate::error::{Error, Result};
use crate::key::{AddedDomains, KeyHasher};

fn container<'a>(variant: u16, head: &[u8], cells: impl Iterator<Item = &'a Cells>) -> Container<'a> {
    let mut header = Header::new(variant, 0, &KeyHasher::seeded(0).holding(AddedDomains::UNKNOWN));
    header.set(tag::FOREIGN_LENGTH, 0, head.len() as u64);
    for (index, part) in head.chunks(8).enumerate() {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        header.set(tag::FOREIGN_HEADER, index as u16, u64::from_le_bytes(word));
    }
    let section = |(index, cells): (usize, &'a Cells)| Section {
        kind: kind::FOREIGN,
        index: index as u32,
        bytes: cells.arrived(),
        checksum: None,
    };
    Container { header, sections: cells.enumerate().map(section).collect() }
}

impl Chain {
    /// As a file.
    pub fn container(&self) -> Container<'_> {
        container(BLOOM, &self.header(), self.cells())
    }

    /// The filter in the bytes of a whole file, all of which are checked. It may have at most `max_bytes` of cells.
    pub fn from_file(bytes: &[u8], max_bytes: u64) -> Result<Self> {
        read(bytes, BLOOM, max_bytes)
    }
}

impl Cuckoo {
    /// As a file.
    pub fn container(&self) -> Container<'_> {
        container(CUCKOO, &self.header(), self.tables().iter())
    }

    /// The filter in the bytes of a whole file, all of which are checked. It may have at most `max_bytes` of cells.
    pub fn from_file(bytes: &[u8], max_bytes: u64) -> Result<Self> {
        read(bytes, CUCKOO, max_bytes)
    }
}

/// The header stored among the parameters.
fn head_in(header: &Header, variant: u16) -> Option<Vec<u8>> {
    let length = usize::try_from(header.get(tag::FOREIGN_LENGTH, 0).ok()?).ok()?;
    let (_, words) = header.params.split_first()?;
    if header.variant != variant || header.scheme != 0 || length.div_ceil(8) != words.len() {
        return None;
    }
    let mut head = Vec::with_capacity(words.len() * 8);
    for (place, &(tag, index, word)) in words.iter().enumerate() {
        if tag != tag::FOREIGN_HEADER || usize::from(index) != place {
            return None;
        }
        head.extend_from_slice(&word.to_le_bytes());
    }
    let sound = head[length..].iter().all(|&byte| byte == 0) && (header.seed, header.secret_fingerprint) == (0, 0);
    head.truncate(length);
    sound.then_some(head)
}

fn read<T: Dumpable>(bytes: &[u8], variant: u16, max_bytes: u64) -> Result<T> {
    let damaged = || Error::format("the file does not hold the filter that its header describes; it is damaged");
    let parsed = ContainerIndex::new(bytes, Verify::Full)?;
    let head = head_in(&parsed.header, variant).ok_or_else(damaged)?;
    let mut filter = T::of_header(&head, max_bytes)?;
    let lengths: Vec<_> = filter.runs().map(Cells::len).collect();
    if parsed.sections.len() != lengths.len() {
        return Err(damaged());
    }
    let mut start = 0;
    for (index, (span, length)) in parsed.sections.iter().zip(lengths).enumerate() {
        if (span.kind, span.index) != (kind::FOREIGN, index as u32) || span.len > length {
            return Err(damaged());
        }
        let piece = &bytes[span.offset..span.offset + span.len];
        filter.load_piece((start + 1 + span.len) as i64, piece)?;
        start += length;
    }
    Ok(filter)
}

#[cfg(test)]
mod tests {
    use super::super::{bloom, cuckoo};
    use super::*;

    fn file(container: &Container<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        let head = container.head().unwrap_or_default();
        container.write_with(&head, &mut bytes).unwrap_or_default();
        bytes
    }

    #[test]
    fn files_restore_even_incomplete_filters() -> Result<()> {
        let mut chain = Chain::construct(10, 0.01, 2, true)?;
        for number in 0..100u32 {
            chain.add(bloom::hash(&number.to_le_bytes()))?;
        }
        let bytes = file(&chain.container());
        // Files are read by later releases: their bytes never change.
        assert_eq!((bytes.len(), crc32fast::hash(&bytes)), (1152, 2_364_319_823));
        let read = Chain::from_file(&bytes, 1 << 20)?;
        assert_eq!((read.header(), file(&read.container())), (chain.header(), bytes.clone()));
        assert!(Chain::from_file(&bytes, 10).is_err() && Cuckoo::from_file(&bytes, 1 << 20).is_err());
        let mut part = Chain::from_header(&chain.header(), 1 << 20)?;
        part.load(4, &[1, 2, 3])?;
        let bytes = file(&part.container());
        assert_eq!(file(&Chain::from_file(&bytes, 1 << 20)?.container()), bytes);
        let mut tables = Cuckoo::construct(cuckoo::Shape::new(8, 2, 20, 2)?)?;
        (0..100u32).try_for_each(|number| tables.add(cuckoo::hash(&number.to_le_bytes())))?;
        let bytes = file(&tables.container());
        assert_eq!((bytes.len(), crc32fast::hash(&bytes)), (576, 2_444_188_734));
        assert_eq!(file(&Cuckoo::from_file(&bytes, 1 << 20)?.container()), bytes);
        Ok(())
    }
}
