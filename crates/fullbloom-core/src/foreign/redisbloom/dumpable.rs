//! [`Dumpable`]: what both filters have in common for dumps and files.

use std::borrow::Cow;

use super::bloom::Chain;
use super::cells::Cells;
use super::cuckoo::Cuckoo;
use super::reasons;
use crate::container::Container;
use crate::error::Result;
use crate::foreign::formats::{Format, redisbloom};

/// A filter that can be dumped.
pub trait Dumpable: Sized {
    /// Its row in the table of formats.
    const FORMAT: &'static Format;
    /// Bytes of the header that begins with `first`, at least 12 bytes; `None` if they begin none.
    fn header_len(first: &[u8]) -> Option<usize>;
    /// Bytes of the dump that begins with `head`; `None` if its header, which must be there, is not valid.
    fn parse_total_len(head: &[u8]) -> Option<u64>;
    /// The filter of a header, without its cells. It may have at most `max_bytes` of them.
    fn of_header(header: &[u8], max_bytes: u64) -> Result<Self>;
    /// The filter in the bytes of a file of ours.
    fn of_file(bytes: &[u8], max_bytes: u64) -> Result<Self>;
    /// As a file of ours.
    fn in_container(&self) -> Container<'_>;
    /// The field of a header that is not valid.
    fn explain_header(header: &[u8]) -> String;
    /// The header of its dump.
    fn dump_header(&self) -> Vec<u8>;
    /// Its layers or tables, the oldest first.
    fn runs(&self) -> impl Iterator<Item = &Cells>;
    /// The piece with this number, and the number under which it is loaded.
    fn dump_piece(&self, number: i64) -> Option<(i64, Cow<'_, [u8]>)>;
    /// Loads a piece.
    fn load_piece(&mut self, number: i64, bytes: &[u8]) -> Result<()>;
}

impl Dumpable for Chain {
    const FORMAT: &'static Format = &redisbloom::BLOOM;
    fn header_len(first: &[u8]) -> Option<usize> {
        Chain::header_len(first)
    }
    fn parse_total_len(head: &[u8]) -> Option<u64> {
        Chain::parse_total_len(head)
    }
    fn of_header(header: &[u8], max_bytes: u64) -> Result<Self> {
        Chain::from_header(header, max_bytes)
    }
    fn of_file(bytes: &[u8], max_bytes: u64) -> Result<Self> {
        Chain::from_file(bytes, max_bytes)
    }
    fn in_container(&self) -> Container<'_> {
        self.container()
    }
    fn explain_header(header: &[u8]) -> String {
        reasons::of_bloom(header)
    }
    fn dump_header(&self) -> Vec<u8> {
        self.header()
    }
    fn runs(&self) -> impl Iterator<Item = &Cells> {
        self.cells()
    }
    fn dump_piece(&self, number: i64) -> Option<(i64, Cow<'_, [u8]>)> {
        self.piece(number)
    }
    fn load_piece(&mut self, number: i64, bytes: &[u8]) -> Result<()> {
        self.load(number, bytes)
    }
}

impl Dumpable for Cuckoo {
    const FORMAT: &'static Format = &redisbloom::CUCKOO;
    fn header_len(_: &[u8]) -> Option<usize> {
        Some(super::cuckoo::HEADER)
    }
    fn parse_total_len(head: &[u8]) -> Option<u64> {
        Cuckoo::parse_total_len(head)
    }
    fn of_header(header: &[u8], max_bytes: u64) -> Result<Self> {
        Cuckoo::from_header(header, max_bytes)
    }
    fn of_file(bytes: &[u8], max_bytes: u64) -> Result<Self> {
        Cuckoo::from_file(bytes, max_bytes)
    }
    fn in_container(&self) -> Container<'_> {
        self.container()
    }
    fn explain_header(header: &[u8]) -> String {
        reasons::of_cuckoo(header)
    }
    fn dump_header(&self) -> Vec<u8> {
        self.header()
    }
    fn runs(&self) -> impl Iterator<Item = &Cells> {
        self.tables().iter()
    }
    fn dump_piece(&self, number: i64) -> Option<(i64, Cow<'_, [u8]>)> {
        self.piece(number)
    }
    fn load_piece(&mut self, number: i64, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() { Ok(()) } else { self.load(number, bytes) }
    }
}
