//! The file of a Bloom filter that is written in place.

use super::filter::BloomFilter;
use super::surplus::Surplus;
use crate::container::file::Writer;
use crate::container::tag;
use crate::error::{Error, Result};
use crate::structure::Filter;

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
        if (container.nbytes() as u64) > len {
            // The header has no room for the types of the keys; without them a lookup gives no warning.
            container.header.params.retain(|(tag, ..)| *tag != tag::KEY_DOMAINS);
        }
        if (container.nbytes() as u64) < len {
            Surplus::NONE.fill(&mut container.header);
        }
        if container.nbytes() as u64 != len {
            return Err(Error::format("the file's header has no room for this filter's; save it under another path"));
        }
        container.head()
    }

    /// Refuses a surplus that the header of the file has no room for: without it the file would report the surplus as
    /// keys (343 where 300 are).
    pub(super) fn check_room(&self, surplus: Surplus) -> Result<()> {
        let Some(writer) = self.writer.as_ref().filter(|_| surplus != Surplus::NONE) else { return Ok(()) };
        let mut container = self.container();
        container.header.params.retain(|(tag, ..)| *tag != tag::KEY_DOMAINS);
        surplus.fill(&mut container.header);
        if container.nbytes() as u64 <= writer.file_len()? {
            return Ok(());
        }
        Err(Error::parameter(
            "the header of this file has no room for what this operation has to record; do it in memory (open without \
             mode=\"r+\") and save the result",
        ))
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
