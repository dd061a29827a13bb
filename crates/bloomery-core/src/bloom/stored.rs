//! A Bloom filter as a container, and back.

use super::filter::BloomFilter;
use super::shape::{Layout, Shape};
use crate::cells::Memory;
use crate::container::file::Writer;
use crate::container::{Container, Header, Section, kind, tag};
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::registry::BLOOM;
use crate::scheme::Scheme;
use crate::structure::Loadable;

/// Parameters that [`describe`] writes.
pub(super) const PARAMS: usize = 8;

/// Writes the parameters of `filter` under `index` (its stage, 0 for a single filter).
pub(super) fn describe(filter: &BloomFilter, header: &mut Header, index: u16) {
    header.set(tag::CAPACITY, index, filter.capacity);
    header.set_f64(tag::FPR, index, filter.target_fpr);
    header.set(tag::LAYOUT, index, filter.shape.layout as u64);
    header.set(tag::SCHEME, index, filter.shape.scheme as u64);
    header.set(tag::NUM_BITS, index, filter.shape.num_bits);
    header.set(tag::NUM_HASHES, index, u64::from(filter.shape.num_hashes));
    header.set(tag::COUNT, index, filter.count);
    header.set(tag::STRICT, index, u64::from(filter.strict));
}

/// The whole container of a single filter.
pub(super) fn container(filter: &BloomFilter) -> Container<'_> {
    let mut header = Header::new(BLOOM, filter.shape.scheme as u16, &filter.hasher);
    describe(filter, &mut header, 0);
    Container { header, sections: vec![section(filter, 0)] }
}

/// The cells of `filter` as section `index`.
pub(super) fn section(filter: &BloomFilter, index: u32) -> Section<'_> {
    Section { kind: kind::BITS, index, bytes: filter.memory.bytes() }
}

/// Reads back what [`describe`] wrote, checking it as a constructor would, then asks for memory.
pub(super) fn restore(
    header: &Header,
    index: u16,
    hasher: KeyHasher,
    memory: &mut dyn FnMut(u32, u32, u64) -> Result<Memory>,
) -> Result<BloomFilter> {
    let damaged = |what: &str| Error::format(format!("the file names an unknown {what}; use a newer release"));
    let layout = Layout::from_id(header.get(tag::LAYOUT, index)?).ok_or_else(|| damaged("layout"))?;
    let scheme = u16::try_from(header.get(tag::SCHEME, index)?).ok().and_then(Scheme::from_id);
    let scheme = scheme.ok_or_else(|| damaged("scheme"))?;
    let num_hashes = u32::try_from(header.get(tag::NUM_HASHES, index)?).unwrap_or(u32::MAX);
    let shape = Shape { layout, scheme, num_bits: header.get(tag::NUM_BITS, index)?, num_hashes };
    let shape = shape.check().map_err(Error::as_format)?;
    let strict = match header.get(tag::STRICT, index)? {
        0 => false,
        1 => true,
        _ => return Err(damaged("value of strict")),
    };
    let (capacity, fpr) = (header.get(tag::CAPACITY, index)?, header.get_f64(tag::FPR, index)?);
    let memory = memory(kind::BITS, u32::from(index), shape.words())?;
    if has_bits_past(memory.words(), shape.num_bits) {
        return Err(Error::format("the file has bits set beyond its num_bits; it is damaged"));
    }
    let mut filter =
        BloomFilter::with_memory(shape, capacity, fpr, hasher, strict, memory).map_err(Error::as_format)?;
    filter.count = header.get(tag::COUNT, index)?;
    filter.warned = filter.count > capacity;
    if header.unclean {
        filter.recount();
    }
    Ok(filter)
}

/// True when a bit from number `num_bits` on is set: looks at the last line only.
fn has_bits_past(words: &[u64], num_bits: u64) -> bool {
    let (last, used) = ((num_bits / 64) as usize, num_bits % 64);
    let partial = words.get(last).is_some_and(|word| u64::from_le(*word) >> used != 0);
    partial || words.iter().skip(last + 1).any(|&word| word != 0)
}

impl Loadable for BloomFilter {
    fn load(
        header: &Header,
        memory: &mut dyn FnMut(u32, u32, u64) -> Result<Memory>,
        secret: Option<&[u8; 16]>,
    ) -> Result<Self> {
        let filter = restore(header, 0, header.hasher(secret)?, memory)?;
        if header.params.len() != PARAMS {
            return Err(Error::format("the file holds parameters that no BloomFilter has; it is damaged"));
        }
        if header.scheme != filter.shape.scheme as u16 {
            return Err(Error::format("the file's two scheme numbers differ; it is damaged"));
        }
        Ok(filter)
    }
}

impl BloomFilter {
    /// Takes over the file behind the filter's memory and marks it as open on disk.
    pub fn attach(&mut self, writer: Writer) -> Result<()> {
        let mut container = container(self);
        container.header.unclean = true;
        writer.write_head(&container.head())?;
        self.writer = Some(writer);
        Ok(())
    }

    /// Brings the file of a filter opened with `r+` up to date: cells first, then the header that
    /// vouches for them. The file stays marked as open until [`BloomFilter::detach`].
    pub fn flush(&self) -> Result<()> {
        self.write_back(true)
    }

    /// As [`BloomFilter::flush`], and lets go of the file: the filter is closed for good.
    pub fn detach(&mut self) -> Result<()> {
        self.write_back(false)?;
        if let Some(writer) = self.writer.take() {
            self.closed = true;
            writer.release();
        }
        Ok(())
    }

    fn write_back(&self, still_open: bool) -> Result<()> {
        let Some(writer) = self.writer.as_ref().filter(|writer| writer.is_ours()) else { return Ok(()) };
        self.memory.sync().map_err(|e| Error::Io(e, "flushing the mapped filter".into()))?;
        let mut container = container(self);
        container.header.unclean = still_open;
        writer.write_head(&container.head())
    }

    /// True when a file is written in place.
    pub fn is_attached(&self) -> bool {
        self.writer.is_some()
    }
}

impl Drop for BloomFilter {
    fn drop(&mut self) {
        // Best effort: an error here has nowhere to go, and the file then stays marked as open.
        let _ = self.detach();
    }
}
