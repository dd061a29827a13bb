//! The bank as a file: its parameters, the shape of every stage, both tables and all lines.
//!
//! Opening maps the file and reads nothing but its header: every line number of a table is checked against the lines when
//! it is used. [`FilterBank::check_cells`] checks all of them at once, before the bank is changed.

use std::path::Path;
use std::sync::Arc;

use super::FilterBank;
use super::directory::Directory;
use super::plan::{MAX_STAGES, Plan, Stage};
use super::pool::{MAX_LINES, Pool};
use crate::bloom::{Layout, Scheme, Shape};
use crate::cells::{LINE_BYTES, Memory, allocation};
use crate::container::file::OpenFile;
use crate::container::header::Span;
use crate::container::{BANK, Container, ContainerIndex, Header, Section, Verify, damage_error, kind, save, tag};
use crate::error::{Error, Result};
use crate::growth::Bound;
use crate::key::KeyHasher;
use crate::structure::opening::{OpenOptions, check_payload, with_path};

/// The parameters of every bank, in order, behind those of the hash.
const TAGS: [(u16, u16); 13] = [
    (tag::CAPACITY, 0),
    (tag::FPR, 0),
    (tag::FPR, 1),
    (tag::GROWTH, 0),
    (tag::MAX_OWNERS, 0),
    (tag::COUNT, 0),
    (tag::NUM_ENTRIES, 0),
    (tag::NUM_ENTRIES, 1),
    (tag::NUM_BUCKETS, 0),
    (tag::NUM_BUCKETS, 1),
    (tag::LINES, 0),
    (tag::LAYOUT, 0),
    (tag::NUM_STAGES, 0),
];

impl FilterBank {
    /// As a file.
    pub fn container(&self) -> Container<'_> {
        let mut header = Header::new(BANK, Scheme::Columns as u16, &self.hasher);
        let Plan { capacity, fpr, max_fpr, growth, max_owners } = self.plan;
        let (owners, later) = (&self.owners, &self.later);
        let numbers = [
            capacity,
            fpr.to_bits(),
            max_fpr.to_bits(),
            growth.to_bits(),
            max_owners,
            self.added,
            owners.len(),
            later.len(),
            owners.homes(),
            later.homes(),
            self.pool.num_used().into(),
            Layout::Blocked as u64,
            self.stages.len() as u64,
        ];
        TAGS.into_iter().zip(numbers).for_each(|((tag, index), number)| header.set(tag, index, number));
        for (index, stage) in (0..).zip(&self.stages) {
            header.set(tag::NUM_BITS, index, stage.shape.num_bits);
            header.set(tag::NUM_HASHES, index, stage.shape.num_hashes.into());
        }
        for (index, &head) in (0..).zip(self.pool.free()).filter(|(_, head)| **head != 0) {
            header.set(tag::FREE_LINES, index, head.into());
        }
        let mut sections = Vec::new();
        for (index, table) in [owners, later].into_iter().enumerate() {
            let section =
                table.memory().map(|memory| Section { index: index as u32, ..Section::of(kind::OWNERS, memory) });
            sections.extend(section);
        }
        if let Some(memory) = self.pool.memory().filter(|_| self.pool.num_used() > 0) {
            let whole = Section::of(kind::BITS, memory);
            sections.push(Section { bytes: &whole.bytes[..self.pool.num_used() as usize * LINE_BYTES], ..whole });
        }
        Container { header, sections }
    }

    /// Saves it, atomically; a mapped bank only if it is not damaged.
    pub fn save(&self, path: &Path) -> Result<()> {
        self.check_mapped()?;
        save(&self.container(), path)
    }

    /// The bank in the bytes of a whole file, all of which are checked.
    pub fn from_bytes(bytes: &[u8], wanted: &OpenOptions) -> Result<Self> {
        let parsed = ContainerIndex::new(bytes, Verify::Full)?;
        let mut bank = Self::restore(&parsed, wanted, |span| {
            let mut memory = Memory::allocate_unsupplied(span.len as u64 / 8)?;
            memory.copy_from_bytes(&bytes[span.offset..span.offset + span.len])?;
            Ok(memory)
        })?;
        bank.check_cells()?;
        bank.owners.index();
        bank.later.index();
        Ok(bank)
    }

    /// The bank over a read-only mapping of `file`, which was opened as `path`.
    pub fn open(file: &OpenFile, path: &Path, wanted: &OpenOptions) -> Result<Self> {
        let (parsed, map) = (&file.parsed, Arc::new(file.map(path)?));
        let load = || {
            if wanted.verify == Verify::Full {
                check_payload(parsed, &map)?;
            }
            let bank = Self::restore(parsed, wanted, |span| {
                Memory::from_map(&map, span.offset, span.len / 8, Some(span.crc))
            })?;
            // An empty bank has nothing that is mapped, and is not checked later.
            if wanted.verify == Verify::Full || !bank.is_mapped() {
                bank.check_cells()?;
            }
            Ok(bank)
        };
        with_path(load(), path)
    }

    fn restore(parsed: &ContainerIndex, wanted: &OpenOptions, memory: impl Fn(Span) -> Result<Memory>) -> Result<Self> {
        let header = &parsed.header;
        if header.variant != BANK {
            return Err(Error::format("the file does not hold a FilterBank; use fullbloom.open()"));
        }
        if header.scheme != Scheme::Columns as u16 || header.unclean || header.names_hash() {
            return Err(damage_error("header"));
        }
        let bytes: usize = parsed.sections.iter().map(|span| span.len).sum();
        if bytes as u64 > wanted.max_bytes {
            return Err(Error::Memory(format!(
                "the file holds a bank of {bytes} bytes, max_bytes is {}; raise it if you trust the file",
                wanted.max_bytes
            )));
        }
        let hasher = header.hasher(wanted.secret.as_ref())?;
        Self::restore_with(parsed, hasher, Bound::of(wanted.max_bytes), memory)
    }

    fn restore_with(
        parsed: &ContainerIndex,
        hasher: KeyHasher,
        bound: Bound,
        memory: impl Fn(Span) -> Result<Memory>,
    ) -> Result<Self> {
        let header = &parsed.header;
        let number = |tag, index| header.get(tag, index);
        let plan = Plan {
            capacity: number(tag::CAPACITY, 0)?,
            fpr: header.get_f64(tag::FPR, 0)?,
            max_fpr: header.get_f64(tag::FPR, 1)?,
            growth: header.get_f64(tag::GROWTH, 0)?,
            max_owners: number(tag::MAX_OWNERS, 0)?,
        };
        let plan = plan.check().map_err(Error::as_format)?;
        let stages = read_stages(header, &plan)?;
        let free = read_free(header, stages.len())?;
        check_order(header, stages.len())?;
        let used = number(tag::LINES, 0).map(u32::try_from)?.ok().filter(|&used| u64::from(used) <= MAX_LINES);
        let used = used.ok_or_else(|| damage_error("number of lines"))?;
        if number(tag::LAYOUT, 0)? != Layout::Blocked as u64 {
            return Err(damage_error("layout"));
        }
        let mut sections = 0;
        let mut section = |kind, index, words: Option<u64>| {
            let words = words.ok_or_else(|| damage_error("length of a table"))?;
            if words == 0 {
                return Ok(None);
            }
            sections += 1;
            let span = parsed.section(kind, index)?;
            if span.len as u64 != words.saturating_mul(8) {
                return Err(damage_error("length of a section"));
            }
            memory(span).map(Some)
        };
        let mut table = |index: u16| {
            let (homes, entries) = (number(tag::NUM_BUCKETS, index)?, number(tag::NUM_ENTRIES, index)?);
            if entries > homes {
                return Err(damage_error("number of owners"));
            }
            Ok(Directory::from_memory(section(kind::OWNERS, index.into(), Directory::words(homes))?, homes, entries))
        };
        let (owners, later) = (table(0)?, table(1)?);
        let pool = Pool::from_memory(section(kind::BITS, 0, Some(u64::from(used) * 8))?, used, free);
        if sections != parsed.sections.len() {
            return Err(damage_error("number of sections"));
        }
        // Half of all numbers, so that later additions cannot overflow.
        let added = number(tag::COUNT, 0)?.min(u64::MAX >> 1);
        Ok(FilterBank { plan, stages, hasher, owners, later, pool, added, bound })
    }

    /// Refuses tables that contradict each other, and lines that belong to two filters or to none.
    pub fn check_cells(&self) -> Result<()> {
        if !self.owners.check(true) || !self.later.check(false) {
            return Err(damage_error("table of owners"));
        }
        let mut marks = Marks::new(self.pool.num_used())?;
        let mut sum = 0u64;
        for owner in self.owners.iter() {
            marks.take(owner.line, self.stages[0].lines())?;
            sum = sum.saturating_add(owner.count.into());
        }
        let mut before = (0, 0);
        for entry in self.later.iter() {
            let number = if before.0 == entry.owner { before.1 + 1 } else { 1 };
            before = (entry.owner, number);
            let owner = self.owners.get(entry.owner);
            let is_full = owner.is_some_and(|owner| u64::from(owner.count) > self.stages[0].capacity);
            let stage = self.stages.get(number as usize).filter(|_| is_full && entry.count == number);
            marks.take(entry.line, stage.ok_or_else(|| damage_error("table of stages"))?.lines())?;
        }
        let mut ends = true;
        let lines = |size: usize| self.stages.get(size).map(Stage::lines);
        let walked = self.pool.each_free(lines, |first, lines| ends &= marks.take(first, lines).is_ok());
        if walked.is_none() || !ends || marks.left > 0 {
            return Err(damage_error("list of free lines"));
        }
        if sum == self.added { Ok(()) } else { Err(damage_error("number of keys")) }
    }

    /// [`FilterBank::check_cells`] of a mapped bank, which may not have been checked yet.
    pub fn check_mapped(&self) -> Result<()> {
        if self.is_mapped() { self.check_cells() } else { Ok(()) }
    }
}

/// The shapes of all stages.
fn read_stages(header: &Header, plan: &Plan) -> Result<Vec<Stage>> {
    let wanted = header.get(tag::NUM_STAGES, 0)?;
    if wanted == 0 || wanted > MAX_STAGES as u64 {
        return Err(damage_error("number of stages"));
    }
    let (mut stages, mut before) = (Vec::new(), 0);
    for index in 0..wanted as u16 {
        let num_hashes = u32::try_from(header.get(tag::NUM_HASHES, index)?).map_err(|_| damage_error("shape"))?;
        let num_bits = header.get(tag::NUM_BITS, index)?;
        let shape = Shape { layout: Layout::Blocked, scheme: Scheme::Columns, num_bits, num_hashes };
        let shape = shape.check().map_err(Error::as_format)?;
        if num_bits / 512 > MAX_LINES {
            return Err(damage_error("shape"));
        }
        let stage = Stage { shape, ..plan.describe(index.into(), before, shape) };
        // The next rate of an owner that may not grow, which no filter has.
        if stage.fpr <= 0.0 {
            return Err(damage_error("number of stages"));
        }
        before = stage.total;
        stages.push(stage);
    }
    Ok(stages)
}

/// The heads of the lists of free lines.
fn read_free(header: &Header, stages: usize) -> Result<Vec<u32>> {
    let mut free = Vec::new();
    for (_, index, head) in header.params.iter().filter(|(tag, ..)| *tag == tag::FREE_LINES) {
        let index = usize::from(*index);
        let head = u32::try_from(*head).ok().filter(|&head| head > 0 && index >= free.len() && index < stages);
        let head = head.ok_or_else(|| damage_error("list of free lines"))?;
        free.resize(index, 0);
        free.push(head);
    }
    Ok(free)
}

/// Refuses parameters that no bank writes, or that are there twice.
fn check_order(header: &Header, stages: usize) -> Result<()> {
    let own = header.params.iter().skip(header.hasher_params()).map(|&(tag, index, _)| (tag, index));
    let free = own.clone().filter(|(tag, _)| *tag == tag::FREE_LINES);
    let shapes = (0..stages as u16).flat_map(|index| [(tag::NUM_BITS, index), (tag::NUM_HASHES, index)]);
    if own.eq(TAGS.into_iter().chain(shapes).chain(free)) { Ok(()) } else { Err(damage_error("parameters")) }
}

/// Which lines belong to a filter, a bit each.
struct Marks {
    words: Vec<u64>,
    lines: u32,
    /// Lines without a filter.
    left: u32,
}

impl Marks {
    fn new(lines: u32) -> Result<Self> {
        Ok(Marks { words: allocation::zeroed(lines.div_ceil(64) as usize)?, lines, left: lines })
    }

    /// Marks the lines of a filter; an error if one has a filter already, or is beyond the last.
    fn take(&mut self, first: u32, lines: u32) -> Result<()> {
        let end =
            first.checked_add(lines).filter(|&end| end <= self.lines).ok_or_else(|| damage_error("line numbers"))?;
        for line in first..end {
            let (word, bit) = (&mut self.words[(line / 64) as usize], 1 << (line % 64));
            if *word & bit != 0 {
                return Err(damage_error("line numbers"));
            }
            *word |= bit;
        }
        self.left -= lines;
        Ok(())
    }
}
