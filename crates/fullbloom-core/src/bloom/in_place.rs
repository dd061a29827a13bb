//! The file of a Bloom filter that is written in place.

use super::filter::BloomFilter;
use super::surplus::Surplus;
use crate::container::file::Writer;
use crate::container::tag;
use crate::error::{Error, Result};
use crate::structure::Filter;

/// Parameters that a header without space for them leaves out, the least important first: without domains the file
/// records no types of keys, without a surplus the estimate counts all bits.
const OPTIONAL: [&[u16]; 2] = [&[tag::KEY_DOMAINS], &[tag::SURPLUS, tag::SURPLUS_VARIANCE]];

impl BloomFilter {
    /// Attaches the file of the filter's memory and marks it as open on disk.
    pub fn attach(&mut self, writer: Writer) -> Result<()> {
        writer.write_head(&self.head_for(&writer, true)?)?;
        self.writer = Some(writer);
        Ok(())
    }

    /// Header and tables for the file of `writer`, with the length of the present ones, so that the cells after them
    /// stay in place.
    fn head_for(&self, writer: &Writer, unclean: bool) -> Result<Vec<u8>> {
        let mut container = self.container();
        container.header.unclean = unclean;
        let len = writer.file_len()?;
        for tags in OPTIONAL {
            if (container.nbytes() as u64) > len {
                container.header.params.retain(|(tag, ..)| !tags.contains(tag));
            }
        }
        if (container.nbytes() as u64) < len {
            Surplus::NONE.fill(&mut container.header);
        }
        if container.nbytes() as u64 != len {
            return Err(Error::format("the file's header has no room for this filter's; save it under another path"));
        }
        container.head()
    }

    /// Brings the file of a filter opened with `r+` up to date: cells first, then the header that
    /// vouches for them. The file stays marked as open until [`BloomFilter::detach`]. An error if the path that was
    /// opened names another file by now.
    pub fn flush(&self) -> Result<()> {
        self.write_back(true)?;
        self.writer.as_ref().filter(|writer| writer.is_ours()).map_or(Ok(()), Writer::check_named)
    }

    /// [`BloomFilter::flush`], then releases the file: the filter stays closed.
    pub fn detach(&mut self) -> Result<()> {
        self.write_back(false)?;
        let Some(writer) = self.writer.take() else { return Ok(()) };
        self.closed = true;
        let named = if writer.is_ours() { writer.check_named() } else { Ok(()) };
        writer.release();
        named
    }

    fn write_back(&self, still_open: bool) -> Result<()> {
        let Some(writer) = self.writer.as_ref().filter(|writer| writer.is_ours()) else { return Ok(()) };
        self.memory.sync().map_err(|e| Error::Io(e, "flushing the mapped filter".into()))?;
        writer.write_head(&self.head_for(writer, still_open)?)
    }
}

impl Drop for BloomFilter {
    fn drop(&mut self) {
        // Best effort: an error here has nowhere to go, and the file then stays marked as open.
        let _ = self.detach();
    }
}
