//! The index in a container: a section a block, so that rows can be appended to a copy without moving others.

use std::path::Path;

use crate::cells::{LINE_WORDS, Memory, bits};
use crate::container::file::OpenFile;
use crate::container::header::Span;
use crate::container::{Container, ContainerIndex, Header, SIGNATURES, Section, Verify, damage_error, kind, save, tag};
use crate::error::{Error, Result};
use crate::sizing::signatures::Width;

use super::shape::{Column, LINE_ROWS, MOST_COLUMNS, Shape};
use super::terms::Terms;
use super::treatment::MOST_RANKS;
use super::{MOST_BLOCKS, SignatureIndex};

/// The conditions of the caller.
#[derive(Clone, Copy)]
pub struct Conditions<'a> {
    /// Which bytes are checked.
    pub verify: Verify,
    /// The secret of a keyed index.
    pub secret: Option<&'a [u8; 16]>,
    /// Most bytes of sections.
    pub max_bytes: u64,
}

/// Names of columns, each with a zero byte behind it, in whole lines.
fn names(columns: &[Column]) -> Result<Option<Memory>> {
    if columns.is_empty() {
        return Ok(None);
    }
    let mut text: Vec<u8> = Vec::new();
    columns.iter().for_each(|column| text.extend(column.name.bytes().chain([0])));
    let mut memory = Memory::zeroed(text.len().div_ceil(8) as u64)?;
    memory.bytes_mut().ok_or_else(Error::read_only)?[..text.len()].copy_from_slice(&text);
    Ok(Some(memory))
}

fn read_names(bytes: &[u8], count: usize) -> Result<Vec<String>> {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 2);
    if end > bytes.len() || bytes.len() != end.next_multiple_of(64) {
        return Err(damage_error("names of columns"));
    }
    let text = std::str::from_utf8(&bytes[..end - 1]).map_err(|_| damage_error("names of columns"))?;
    let names: Vec<String> = text.split('\0').map(String::from).collect();
    if names.len() == count { Ok(names) } else { Err(damage_error("number of columns")) }
}

impl SignatureIndex {
    fn header(&self) -> Header {
        let mut header = Header::new(SIGNATURES, 0, &self.hasher);
        let shape = &self.shape;
        header.set(tag::COUNT, 0, self.len);
        header.set(tag::BLOCK_ROWS, 0, shape.block_rows);
        header.set(tag::PRIVATE_ROWS, 0, shape.private);
        header.set(tag::LISTED_TERMS, 0, self.terms.len() as u64);
        for (rank, width) in shape.ranks.iter().enumerate() {
            header.set(tag::NUM_BITS, rank as u16, width.num_bits);
            header.set(tag::NUM_HASHES, rank as u16, width.bits_per_term);
        }
        for (i, column) in shape.columns.iter().enumerate() {
            header.set(tag::COLUMN_BITS, i as u16, column.bits);
        }
        header
    }

    /// Passes the index as a file to `take`.
    pub fn with_container<R>(&self, take: impl FnOnce(&Container<'_>) -> Result<R>) -> Result<R> {
        let names = names(&self.shape.columns)?;
        let terms = self.terms.memory.iter().map(|memory| Section::of(kind::TERMS, memory));
        let named = names.iter().map(|memory| Section::of(kind::COLUMN_NAMES, memory));
        let block = |(i, memory)| Section { index: i as u32, ..Section::of(kind::SIGNATURES, memory) };
        let sections = terms.chain(named).chain(self.blocks.iter().enumerate().map(block)).collect();
        take(&Container { header: self.header(), sections })
    }

    /// Saves it atomically; a mapped index only if it is not damaged.
    pub fn save(&self, path: &Path) -> Result<()> {
        if self.blocks.iter().any(Memory::is_mapped) {
            self.check_rest()?;
        }
        self.with_container(|container| save(container, path))
    }

    /// The index in the bytes of a whole file, all of which are checked.
    pub fn from_file(bytes: &[u8], wanted: Conditions<'_>) -> Result<Self> {
        let parsed = ContainerIndex::new(bytes, Verify::Full)?;
        let index =
            Self::restore(&parsed, wanted, &mut |span| Memory::copy_of(&bytes[span.offset..span.offset + span.len]))?;
        index.check_rest()?;
        Ok(index)
    }

    /// The index over a read-only mapping of `file`, which was opened as `path`.
    pub fn open(file: &OpenFile, path: &Path, wanted: Conditions<'_>) -> Result<Self> {
        let map = file.map_sections(path, wanted.verify)?;
        let index = Self::restore(&file.parsed, wanted, &mut |span| {
            Memory::from_map(&map, span.offset, span.len / 8, Some(span.crc))
        })?;
        if wanted.verify == Verify::Full {
            index.check_rest()?;
        }
        Ok(index)
    }

    fn restore(
        parsed: &ContainerIndex,
        wanted: Conditions<'_>,
        memory: &mut dyn FnMut(Span) -> Result<Memory>,
    ) -> Result<Self> {
        let header = &parsed.header;
        if header.variant != SIGNATURES || header.scheme != 0 || header.unclean {
            return Err(damage_error("header"));
        }
        let bytes: u64 = parsed.sections.iter().map(|span| span.len as u64).sum();
        if bytes > wanted.max_bytes {
            return Err(Error::Memory(format!(
                "the file holds an index of {bytes} bytes, max_bytes is {}; raise it if you trust the file",
                wanted.max_bytes
            )));
        }
        let hasher = header.hasher(wanted.secret)?;
        let count = |wanted: u16| header.params.iter().filter(|(tag, ..)| *tag == wanted).count();
        let (ranks, columns) = (count(tag::NUM_BITS), count(tag::COLUMN_BITS));
        if ranks > MOST_RANKS || columns > MOST_COLUMNS {
            return Err(damage_error("number of ranks or columns"));
        }
        let width = |rank: usize| {
            let number = |tag| header.get(tag, rank as u16);
            Ok(Width { num_bits: number(tag::NUM_BITS)?, bits_per_term: number(tag::NUM_HASHES)? })
        };
        let ranks = (0..ranks).map(width).collect::<Result<Vec<_>>>()?;
        let mut sections = Sections { spans: &parsed.sections, memory };
        let number = |tag| header.get(tag, 0);
        let (len, listed) = (number(tag::COUNT)?, number(tag::LISTED_TERMS)?);
        let terms = if listed > 0 { Some(sections.take(kind::TERMS, 0)?) } else { None };
        let names =
            if columns > 0 { read_names(sections.take(kind::COLUMN_NAMES, 0)?.bytes(), columns)? } else { Vec::new() };
        let column = |(i, name)| Ok(Column { name, bits: header.get(tag::COLUMN_BITS, i as u16)? });
        let columns = names.into_iter().enumerate().map(column).collect::<Result<Vec<_>>>()?;
        let (block_rows, private) = (number(tag::BLOCK_ROWS)?, number(tag::PRIVATE_ROWS)?);
        let shape = Shape::with_block_rows(ranks, columns, private, block_rows).map_err(Error::as_format)?;
        let starts = shape.starts();
        let blocks = len.div_ceil(shape.block_rows);
        if blocks != sections.spans.len() as u64 || blocks > MOST_BLOCKS as u64 {
            return Err(damage_error("number of rows"));
        }
        let terms = Terms::load(terms, listed, &shape)?;
        let words = starts[MOST_RANKS].next_multiple_of(LINE_WORDS as u64);
        let mut held = Vec::new();
        for i in 0..blocks {
            if sections.spans[0].len as u64 != words.saturating_mul(8) {
                return Err(damage_error("length of signatures"));
            }
            held.push(sections.take(kind::SIGNATURES, i as u32)?);
        }
        let index = SignatureIndex { hasher, shape, starts, terms, len, blocks: held };
        // Parameters that none of the above has read would be lost in a copy.
        let read = index.header();
        if read.params.len() != header.params.len() || read.params.iter().any(|param| !header.params.contains(param)) {
            return Err(damage_error("parameters"));
        }
        Ok(index)
    }

    /// Refuses bits of rows behind the last one: a query would be right, a row appended to a copy would not.
    fn check_rest(&self) -> Result<()> {
        let used = self.len % self.shape.block_rows;
        let Some(last) = self.blocks.last().filter(|_| used > 0) else { return Ok(()) };
        for (rank, _) in self.shape.ranks.iter().enumerate() {
            let lines = self.shape.lines(rank);
            for row in 0..self.shape.rows(rank) {
                for line in 0..lines {
                    let free = used.saturating_sub((line << rank) * LINE_ROWS).min(LINE_ROWS);
                    let start = (self.starts[rank] + (row * lines + line) * LINE_WORDS as u64) as usize;
                    if !bits::is_zero_from(&last.words()[start..start + LINE_WORDS], free) {
                        return Err(damage_error("end of the last block"));
                    }
                }
            }
        }
        Ok(())
    }
}

/// The sections of a file, in the order in which they are read.
struct Sections<'a> {
    spans: &'a [Span],
    memory: &'a mut dyn FnMut(Span) -> Result<Memory>,
}

impl Sections<'_> {
    fn take(&mut self, kind: u32, index: u32) -> Result<Memory> {
        let Some((span, rest)) = self.spans.split_first() else { return Err(damage_error("number of sections")) };
        if (span.kind, span.index) != (kind, index) || span.len == 0 || span.len % 64 != 0 {
            return Err(damage_error("sections"));
        }
        self.spans = rest;
        (self.memory)(*span)
    }
}
