//! [`Cells`]: the cells of a plain filter as strings of a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::command;
use super::cut::ShardLayout;
use super::reply::{Limit, Reply, items};
use crate::bloom::Shape;
use crate::bloom::kernel::Kernel;
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::scheme::lines::Pattern;

/// Bytes after the cells of a shard: its owner tag.
pub const MARK_BYTES: u64 = 16;
/// Bytes of the longest string of a server.
pub(super) const LONGEST: u64 = 512 << 20;

/// A shape, its hash, and its cut into strings.
#[derive(Clone, Debug)]
pub struct Cells {
    shape: Shape,
    hasher: KeyHasher,
    kernel: Kernel,
    cut: ShardLayout,
    /// Bytes of a unit: a line, or all cells of a layout without lines.
    unit: u64,
    /// The server has a filter of its own, and cells are its business.
    native: bool,
    /// Keys are sent one by one: the server does not let them go together.
    by_key: Arc<AtomicBool>,
}

/// The result of one reply for a key.
pub enum CellState {
    /// The number of its bits that were not set before.
    Unset(u32),
    /// The string ends before the cells of the key.
    Short,
}

impl Cells {
    /// A shape in `shards`.
    pub fn new(shape: Shape, hasher: KeyHasher, shards: u64) -> Result<Self> {
        let kernel = Kernel::new(&shape.check()?);
        let words = shape.words() as usize;
        let unit = kernel.pattern(words, 0).map(|line| line.words as u64 * 8);
        if unit.is_none() && shards != 1 {
            return Err(Error::Parameter(format!(
                "layout {:?} has its bits anywhere and cannot be cut into shards; take layout \"blocked\", or shards=1, got {shards}",
                shape.layout.name()
            )));
        }
        let bytes = shape.num_bits.div_ceil(8);
        let unit = unit.unwrap_or(bytes);
        let (cut, by_key) = (ShardLayout::new(bytes / unit, shards)?, Arc::default());
        let cells = Cells { cut, shape, hasher, kernel, unit, native: false, by_key };
        let longest = cells.range(0).1 + MARK_BYTES;
        if longest > LONGEST {
            let least = || (bytes / unit).div_ceil((LONGEST - MARK_BYTES) / unit);
            let remedy =
                if cells.has_lines() { format!("shards={} or more", least()) } else { "layout \"blocked\"".into() };
            return Err(Error::Parameter(format!(
                "a string of a server has at most {LONGEST} bytes and this shard needs {longest}; take {remedy}"
            )));
        }
        Ok(cells)
    }

    /// The keys of a filter of the server (`BF.*`), which receives hashes, 8 bytes each, lowest first.
    pub fn native(shape: Shape, hasher: KeyHasher) -> Result<Self> {
        Ok(Cells { native: true, ..Self::new(shape, hasher, 1)? })
    }

    /// True of a filter that a server has of its own.
    pub fn is_native(&self) -> bool {
        self.native
    }

    /// Sends keys one by one from now on.
    pub fn go_by_key(&self) {
        self.by_key.store(true, Relaxed);
    }

    /// True if keys are sent one by one, whatever that costs.
    pub fn is_by_key(&self) -> bool {
        self.native || self.by_key.load(Relaxed)
    }

    /// Bits, probes, layout and scheme.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The hash of keys.
    pub fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    /// Number of shards.
    pub fn shards(&self) -> u64 {
        self.cut.shards()
    }

    /// True if a key has one line, and the strings have the bytes of the filter.
    pub fn has_lines(&self) -> bool {
        self.shape.layout.is_one_line()
    }

    /// The first byte of a shard in the filter, and how many it has, without its mark.
    pub fn range(&self, shard: u64) -> (u64, u64) {
        let (first, len) = self.cut.range(shard);
        (first * self.unit, len * self.unit)
    }

    /// Bytes of a line; of all cells if there are no lines.
    pub fn unit(&self) -> u64 {
        self.unit
    }

    fn words(&self) -> usize {
        self.shape.words() as usize
    }

    /// The shard of a hash.
    #[inline]
    pub fn shard(&self, hash: u64) -> u64 {
        if self.cut.shards() == 1 { 0 } else { self.line(hash).map_or(0, |(shard, _, _)| shard) }
    }

    /// Shard, first byte there and bits of the line of a hash.
    #[inline]
    fn line(&self, hash: u64) -> Option<(u64, u64, Pattern)> {
        let pattern = self.kernel.pattern(self.words(), hash)?;
        let (shard, unit) = self.cut.place(pattern.first * 8 / self.unit);
        Some((shard, unit * self.unit, pattern))
    }

    /// Number of replies for one key.
    pub fn replies(&self) -> usize {
        if self.has_lines() { 1 } else { self.shape.num_hashes as usize }
    }

    /// Appends the request for the owner tag of a shard; for a filter of the server, whether it exists.
    pub fn ask_mark(&self, out: &mut Vec<u8>, key: &[u8], shard: u64) {
        if self.native {
            return command::command(out, &[b"EXISTS", key]);
        }
        let end = self.range(shard).1;
        get_range(out, key, end, end + MARK_BYTES - 1);
    }

    /// Appends one command that adds hashes to the filter `key` of the server, if it exists, or looks them up.
    pub fn write_module_command(&self, out: &mut Vec<u8>, key: &[u8], hashes: &[u64], adding: bool) {
        command::begin(out, hashes.len() as u64 + if adding { 4 } else { 2 });
        command::word(out, if adding { b"BF.INSERT" } else { b"BF.MEXISTS" });
        command::word(out, key);
        if adding {
            command::word(out, b"NOCREATE");
            command::word(out, b"ITEMS");
        }
        hashes.iter().for_each(|hash| command::word(out, &hash.to_le_bytes()));
    }

    /// Appends the lookup of a hash in the string `key`.
    pub fn ask(&self, out: &mut Vec<u8>, key: &[u8], hash: u64) {
        match self.line(hash) {
            Some((_, first, _)) => get_range(out, key, first, first + self.unit - 1),
            None => self.each_position(hash, |position| {
                command::begin(out, 3);
                command::word(out, b"GETBIT");
                command::word(out, key);
                command::number(out, position);
            }),
        }
    }

    /// Appends the command that sets the bits of a hash in the string `key`; the server replies with their previous
    /// values, atomically.
    pub fn put(&self, out: &mut Vec<u8>, key: &[u8], hash: u64) {
        let Some((_, first, line)) = self.line(hash) else {
            return self.each_position(hash, |position| {
                command::begin(out, 4);
                command::word(out, b"SETBIT");
                command::word(out, key);
                command::number(out, position);
                command::word(out, b"1");
            });
        };
        command::begin(out, 2 + 4 * u64::from(line.ones()));
        out.extend_from_slice(b"$8\r\nBITFIELD\r\n");
        command::word(out, key);
        line.each(|bit| {
            out.extend_from_slice(b"$3\r\nSET\r\n$2\r\nu1\r\n");
            command::number(out, reverse_bit(first * 8 + bit));
            out.extend_from_slice(b"$1\r\n1\r\n");
        });
    }

    /// Visits the bits of a hash in its shard, by the numbers that a server has for them.
    pub fn each_bit(&self, hash: u64, mut visit: impl FnMut(u64)) {
        match self.line(hash) {
            Some((_, first, line)) => line.each(|bit| visit(reverse_bit(first * 8 + bit))),
            None => self.each_position(hash, visit),
        }
    }

    fn each_position(&self, hash: u64, visit: impl FnMut(u64)) {
        self.kernel.positions(self.words(), hash).into_iter().for_each(visit);
    }

    /// The size limit of a reply to [`Cells::put`] (`adding`) or [`Cells::ask`].
    pub fn limit(&self, adding: bool) -> Limit {
        match (self.has_lines(), adding) {
            (true, true) => Limit::numbers(self.shape.num_hashes as usize),
            (true, false) => Limit::text(self.unit),
            (false, _) => Limit::LINE,
        }
    }

    /// The result of a reply to [`Cells::ask`]; `None` for an invalid reply.
    pub fn read_lookup(&self, hash: u64, reply: Reply<'_>) -> Option<CellState> {
        match (self.line(hash), reply) {
            (Some(_), Reply::Nil) => Some(CellState::Short),
            (Some((_, _, line)), Reply::Bulk(bytes)) if bytes.len() as u64 <= self.unit => {
                Some(if bytes.len() as u64 == self.unit {
                    CellState::Unset(line.missing(bytes))
                } else {
                    CellState::Short
                })
            }
            (None, reply) => self.bit(reply),
            _ => None,
        }
    }

    /// The result of a reply to [`Cells::put`]; `None` for an invalid reply.
    pub fn read_insertion(&self, hash: u64, reply: Reply<'_>) -> Option<CellState> {
        match (self.line(hash), reply) {
            (Some((_, _, line)), Reply::Array(array)) => {
                let (mut count, mut unset) = (0, 0);
                for item in items(array) {
                    unset += u32::from(item.filter(|bit| (0..=1).contains(bit))? == 0);
                    count += 1;
                }
                (count == line.ones()).then_some(CellState::Unset(unset))
            }
            (None, reply) => self.bit(reply),
            _ => None,
        }
    }

    fn bit(&self, reply: Reply<'_>) -> Option<CellState> {
        match reply {
            Reply::Integer(bit @ 0..=1) => Some(CellState::Unset(u32::from(bit == 0))),
            _ => None,
        }
    }

    /// Converts cells between a string and memory: reverses the bits of each byte if the layout needs it.
    pub fn turn(&self, bytes: &mut [u8]) {
        if !self.has_lines() {
            bytes.iter_mut().for_each(|byte| *byte = byte.reverse_bits());
        }
    }

    /// Rate at `ones` set bits.
    pub fn fpr(&self, ones: u64) -> f64 {
        self.shape.law().fpr_of_fill(self.fill(ones))
    }

    /// Estimated number of keys at `ones` set bits, with its standard deviation.
    pub fn approx_count(&self, ones: u64) -> (f64, f64) {
        self.shape.law().estimate(self.fill(ones))
    }

    /// Share of set bits.
    pub fn fill(&self, ones: u64) -> f64 {
        ones.min(self.shape.num_bits) as f64 / self.shape.num_bits as f64
    }
}

/// The number that a server has for bit `bit` of a filter.
fn reverse_bit(bit: u64) -> u64 {
    bit & !7 | (7 - (bit & 7))
}

fn get_range(out: &mut Vec<u8>, key: &[u8], first: u64, last: u64) {
    out.extend_from_slice(b"*4\r\n$8\r\nGETRANGE\r\n");
    command::word(out, key);
    command::number(out, first);
    command::number(out, last);
}
