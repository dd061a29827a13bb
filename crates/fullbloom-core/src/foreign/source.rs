//! [`Source`]: bytes that another program wrote, read once, of which the first ones tell their format.

use std::io::{self, Read};

use super::formats::Format;
use crate::error::{Error, Result};

/// See the head of this file.
pub struct Source<'a> {
    head: Vec<u8>,
    /// Bytes of the head that have been read.
    at: usize,
    rest: Box<dyn Read + Send + 'a>,
    len: u64,
}

impl<'a> Source<'a> {
    /// The `len` bytes that `input` gives; the first ones are read now.
    pub fn new(input: impl Read + Send + 'a, len: u64) -> io::Result<Self> {
        let mut rest = input;
        let mut head = Vec::new();
        rest.by_ref().take(len.min(Format::HEAD as u64)).read_to_end(&mut head)?;
        Ok(Source { head, at: 0, rest: Box::new(rest), len })
    }

    /// Bytes in memory.
    pub fn of(bytes: &'a [u8]) -> Self {
        let (head, rest) = bytes.split_at(bytes.len().min(Format::HEAD));
        Source { head: head.to_vec(), at: 0, rest: Box::new(rest), len: bytes.len() as u64 }
    }

    /// The first bytes, [`Format::HEAD`] of them or all.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Number of bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True without bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Passes over the first `count` bytes, which are in the head.
    pub(super) fn skip_head(&mut self, count: usize) {
        self.at = count.min(self.head.len());
    }

    /// Fills `out` with the next bytes. A source that ends before its length is refused as bytes of `format`.
    pub(super) fn fill(&mut self, format: &Format, out: &mut [u8]) -> Result<()> {
        self.read_exact(out).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => format.refuse("the bytes were cut short while they were read"),
            _ => Error::Io(error, "read".into()),
        })
    }

    /// The next `count` bytes; memory is taken as they arrive.
    pub(super) fn read_next(&mut self, format: &Format, count: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match self.by_ref().take(count).read_to_end(&mut bytes) {
            Ok(read) if read as u64 == count => Ok(bytes),
            Ok(_) => Err(format.refuse("the bytes were cut short while they were read")),
            Err(error) => Err(Error::Io(error, "read".into())),
        }
    }
}

impl Read for Source<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = &self.head[self.at..];
        if left.is_empty() {
            return self.rest.read(out);
        }
        let count = left.len().min(out.len());
        out[..count].copy_from_slice(&left[..count]);
        self.at += count;
        Ok(count)
    }
}
