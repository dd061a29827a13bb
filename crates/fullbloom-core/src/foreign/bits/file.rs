//! The filter in a container of ours, where its bits can be mapped.

use std::path::Path;

use super::BitFilter;
use crate::cells::{Memory, bits};
use crate::container::file::OpenFile;
use crate::container::header::Span;
use crate::container::{Container, ContainerIndex, FOREIGN, Header, Section, Verify, damage_error, kind, save, tag};
use crate::error::{Error, Result};
use crate::foreign::formats;
use crate::foreign::key_type::KeyType;
use crate::foreign::rules::Seed;
use crate::key::{AddedDomains, KeyHasher};

/// The parameters, in order.
const TAGS: [u16; 4] = [tag::FOREIGN_FORMAT, tag::FOREIGN_KEYS, tag::NUM_BITS, tag::NUM_HASHES];

impl BitFilter {
    /// As a file.
    pub fn container(&self) -> Container<'_> {
        let hasher = KeyHasher::seeded(self.seed.number.into()).holding(AddedDomains::UNKNOWN);
        let mut header = Header::new(FOREIGN, 0, &hasher);
        let numbers = [self.format.number.into(), self.key_type as u64, self.num_bits, u64::from(self.num_hashes)];
        TAGS.into_iter().zip(numbers).for_each(|(tag, number)| header.set(tag, 0, number));
        if self.layout.rule.has_seeds() {
            let each = self.seed.each.iter().take(self.num_hashes as usize).zip(0..);
            each.for_each(|(seed, i)| header.set(tag::FOREIGN_SEED, i, (*seed).into()));
        }
        Container { header, sections: vec![Section::of(kind::BITS, &self.memory)] }
    }

    /// Saves it; a mapped filter only if it is not damaged.
    pub fn save(&self, path: &Path) -> Result<()> {
        save(&self.container(), path)
    }

    /// The filter in the bytes of a whole file, all of which are checked. It may have at most `max_bytes` of bits.
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
        let seeds = header.params.len().saturating_sub(TAGS.len()).min(Seed::MOST) as u16;
        let tags = TAGS.map(|tag| (tag, 0)).into_iter().chain((0..seeds).map(|i| (tag::FOREIGN_SEED, i)));
        let ordered = header.params.iter().map(|&(tag, index, _)| (tag, index)).eq(tags);
        if header.variant != FOREIGN || header.scheme != 0 || header.unclean || !ordered {
            return Err(damage_error("header"));
        }
        if header.secret_fingerprint != 0 {
            return Err(damage_error("secret"));
        }
        let number = |tag| header.get(tag, 0);
        let format = number(tag::FOREIGN_FORMAT).map(formats::find_by_number)?.ok_or_else(|| damage_error("format"))?;
        let layout = format.bits().map_err(|_| damage_error("format"))?;
        let key_type =
            number(tag::FOREIGN_KEYS).map(KeyType::from_number)?.ok_or_else(|| damage_error("type of keys"))?;
        let narrow = |number: u64| u32::try_from(number).map_err(|_| damage_error("seed"));
        let num_hashes = u32::try_from(number(tag::NUM_HASHES)?).map_err(|_| damage_error("number of hashes"))?;
        if u32::from(seeds) != if layout.rule.has_seeds() { num_hashes } else { 0 } {
            return Err(damage_error("number of seeds"));
        }
        let mut seed = Seed::of(narrow(header.seed)?);
        for (each, i) in seed.each.iter_mut().zip(0..seeds) {
            *each = narrow(header.get(tag::FOREIGN_SEED, i)?)?;
        }
        let num_bits = number(tag::NUM_BITS)?;
        let [span] = parsed.sections[..] else { return Err(damage_error("number of sections")) };
        let wanted = num_bits.div_ceil(64).next_multiple_of(8).saturating_mul(8);
        if (span.kind, span.index) != (kind::BITS, 0) || span.len as u64 != wanted {
            return Err(damage_error("length of bits"));
        }
        format.check_size(span.len as u64, max_bytes)?;
        Self::over(format, key_type, seed, num_bits, num_hashes, || memory(span)).map_err(Error::as_format)
    }

    /// Refuses bits behind the last one.
    fn check_rest(&self) -> Result<()> {
        if bits::is_zero_from(self.memory.words(), self.num_bits) { Ok(()) } else { Err(damage_error("last line")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(filter: &BitFilter) -> Result<Vec<u8>> {
        let (container, mut bytes) = (filter.container(), Vec::new());
        container.write_with(&container.head()?, &mut bytes).map_err(|error| Error::Io(error, "test".into()))?;
        Ok(bytes)
    }

    #[test]
    fn files_restore_filters_of_every_format() -> Result<()> {
        for (format, layout) in formats::ALL.iter().filter_map(|format| Some((*format, format.bits().ok()?))) {
            for &key_type in format.key_types {
                let seed = if layout.is_seeded { 42 } else { 0 };
                let mut filter = BitFilter::for_capacity(format, key_type, seed, 100, 0.01)?;
                (0..50u64).try_for_each(|i| filter.add([i.wrapping_mul(0x9e37_79b9_7f4a_7c15), i]).map(drop))?;
                let bytes = file(&filter)?;
                let read = BitFilter::from_file(&bytes, 1 << 20)?;
                assert!(read.equals(&filter) && read.key_type() == key_type);
                assert_eq!(file(&read)?, bytes);
                assert!(matches!(BitFilter::from_file(&bytes, 8), Err(Error::Memory(_))));
                for len in 0..bytes.len() {
                    assert!(BitFilter::from_file(&bytes[..len], 1 << 20).is_err());
                }
            }
        }
        Ok(())
    }
}
