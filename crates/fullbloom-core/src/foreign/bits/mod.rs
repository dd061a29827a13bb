//! [`BitFilter`]: a Bloom filter under the rule of another program.
//!
//! * [`algebra`]: two filters;
//! * [`kernel`]: lookups and additions, one key or many;
//! * [`rounds`]: lookups of a block of keys; [`integers`] and [`lanes`]: of integers by Spark's rule;
//! * [`parts`]: keys whose digests take several parts;
//! * [`remainder`]: positions modulo the number of bits;
//! * [`file`]: the filter in a container of ours.

mod algebra;
mod file;
mod integers;
mod kernel;
mod lanes;
mod parts;
pub(super) mod remainder;
pub(super) mod rounds;

use remainder::Remainder;

use super::formats::{self, BitLayout, Contents, Format, Head, Shape, Tail};
use super::key_type::KeyType;
use super::rules::{Digest, Range, Rule, Seed};
use super::source::Source;
use crate::cells::{Memory, bits};
use crate::error::{Error, Result};
use crate::key::Domain;
use crate::scheme::parquet::BLOCK_WORDS;
use crate::sizing::Law;
use crate::sizing::classic::Classic;
use crate::sizing::lanes::Lanes;

/// Bytes that are read and put in order at a time, within the first-level cache.
const PORTION: usize = 16 << 10;

/// See the head of this file.
pub struct BitFilter {
    format: &'static Format,
    layout: &'static BitLayout,
    key_type: KeyType,
    seed: Seed,
    num_hashes: u32,
    num_bits: u64,
    by: Remainder,
    memory: Memory,
}

impl BitFilter {
    /// An empty filter of `format` for `capacity` keys at rate `fpr`, as its program would size it.
    pub fn for_capacity(
        format: &'static Format,
        key_type: KeyType,
        seed: u32,
        capacity: u64,
        fpr: f64,
    ) -> Result<Self> {
        crate::sizing::check_sized(capacity, fpr)?;
        let (num_bits, num_hashes) =
            (format.bits()?.size)(capacity, fpr).ok_or_else(|| crate::sizing::too_large(capacity, fpr))?;
        Self::with_shape(format, key_type, seed, num_bits, num_hashes)
    }

    /// An empty filter of this shape.
    pub fn with_shape(
        format: &'static Format,
        key_type: KeyType,
        seed: u32,
        num_bits: u64,
        num_hashes: u32,
    ) -> Result<Self> {
        let seed = if format.bits()?.rule.has_seeds() { Seed::spread(seed, num_hashes) } else { Seed::of(seed) };
        Self::over(format, key_type, seed, num_bits, num_hashes, || Memory::zeroed(num_bits.div_ceil(64)))
    }

    /// A filter of this shape without bits, of which only the positions are asked.
    pub fn without_bits(format: &'static Format, key_type: KeyType, num_bits: u64, num_hashes: u32) -> Result<Self> {
        Self::over(format, key_type, Seed::NONE, num_bits, num_hashes, || Memory::zeroed(0))
    }

    /// A filter of this shape, if its format has it, over the words that `memory` gives.
    fn over(
        format: &'static Format,
        key_type: KeyType,
        seed: Seed,
        num_bits: u64,
        num_hashes: u32,
        memory: impl FnOnce() -> Result<Memory>,
    ) -> Result<Self> {
        let layout = format.bits()?;
        if seed.number != 0 && !layout.is_seeded {
            let why = format!("seed must be 0 in format {:?}, got {}", format.name, seed.number);
            return Err(Error::parameter(why));
        }
        format.check_key_type(key_type)?;
        check_bits(format, layout, num_bits)?;
        if let Rule::Probe(probe) = layout.rule
            && let Some(only) = probe.fixed_hashes()
            && num_hashes != only
        {
            let why = format!("num_hashes must be {only} in format {:?}, got {num_hashes}", format.name);
            return Err(Error::parameter(why));
        }
        if num_hashes == 0 || num_hashes > layout.most_hashes {
            let most = layout.most_hashes;
            let why = format!("num_hashes must be between 1 and {most} in format {:?}, got {num_hashes}", format.name);
            return Err(Error::parameter(why));
        }
        let by = Remainder::by(num_bits);
        Ok(BitFilter { format, layout, key_type, seed, num_hashes, num_bits, by, memory: memory()? })
    }

    /// The filter in `source`, which is read in one pass; nothing is allocated before the lengths that its bytes state are
    /// checked. It may have at most `max_bytes` of bits. `shape` is that of bits alone, which state none.
    pub fn read(
        format: &'static Format,
        key_type: KeyType,
        mut source: Source<'_>,
        shape: Option<Range>,
        max_bytes: u64,
    ) -> Result<Self> {
        let (layout, len) = (format.bits()?, source.len());
        let stated = match shape {
            Some(shape) => head_of(format, layout, shape, len)?,
            None => (layout.parse)(source.head(), len).map_err(|why| format.refuse(why))?,
        };
        check_bits(format, layout, stated.num_bits).map_err(Error::as_format)?;
        let bytes = stated.num_bits.div_ceil(8);
        format.check_size(bytes, max_bytes)?;
        let mut memory = Memory::zeroed(stated.num_bits.div_ceil(64))?;
        let cells = memory.bytes_mut().ok_or_else(Error::read_only)?;
        source.skip_head(stated.len);
        for portion in cells[..bytes as usize].chunks_mut(PORTION) {
            source.fill(format, portion)?;
            layout.order.arrange(portion);
        }
        let tail = &mut [0; Tail::MOST][..layout.tail.len];
        source.fill(format, tail)?;
        let (stated, other) = (layout.tail.finish)(stated, tail).map_err(|why| format.refuse(why))?;
        let format = other.and_then(|number| formats::find_by_number(number.into())).unwrap_or(format);
        let (num_bits, num_hashes) = (stated.num_bits, stated.num_hashes);
        if !bits::is_zero_from(memory.words(), num_bits) {
            return Err(
                format.refuse(format!("bits behind the last of {num_bits} are set; check num_bits and the order"))
            );
        }
        Self::over(format, key_type, stated.seed, num_bits, num_hashes, || Ok(memory)).map_err(Error::as_format)
    }

    /// Writes the filter as its program does.
    pub fn write(&self, out: &mut dyn std::io::Write) -> std::io::Result<()> {
        out.write_all(&(self.layout.head)(&self.shape()))?;
        let mut portion = [0; PORTION];
        for cells in self.memory.bytes()[..self.num_bits.div_ceil(8) as usize].chunks(PORTION) {
            let portion = &mut portion[..cells.len()];
            portion.copy_from_slice(cells);
            self.layout.order.arrange(portion);
            out.write_all(portion)?;
        }
        out.write_all(&(self.layout.tail.write)(&self.shape()))
    }

    /// Refuses to write a filter that has not all that its program records.
    pub fn check_written(&self) -> Result<()> {
        if self.format.is_written {
            return Ok(());
        }
        let why = "is read and not written: its program records more than the bits; save() keeps the filter";
        Err(Error::parameter(format!("format {:?} {why}", self.format.name)))
    }

    /// Bytes that [`BitFilter::write`] writes.
    pub fn len_written(&self) -> u64 {
        (self.layout.head)(&self.shape()).len() as u64 + self.nbytes() + self.layout.tail.len as u64
    }

    /// What its head states.
    pub(super) fn shape(&self) -> Shape {
        Shape { seed: self.seed, num_bits: self.num_bits, num_hashes: self.num_hashes }
    }

    /// Its format.
    pub fn format(&self) -> &'static Format {
        self.format
    }

    /// The type of its keys.
    pub fn key_type(&self) -> KeyType {
        self.key_type
    }

    /// Seed of the hash; 0 in formats that have none, and of a file that states one for each hash.
    pub fn seed(&self) -> u32 {
        self.seed.number
    }

    /// k.
    pub fn num_hashes(&self) -> u32 {
        self.num_hashes
    }

    /// m.
    pub fn num_bits(&self) -> u64 {
        self.num_bits
    }

    /// Bytes of bits.
    pub fn nbytes(&self) -> u64 {
        self.num_bits.div_ceil(8)
    }

    /// The bits, the lowest of a byte first, which zeros fill up to whole lines.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    fn ones(&self) -> u64 {
        bits::count_ones(self.memory.words())
    }

    /// Share of set bits.
    pub fn fill(&self) -> f64 {
        self.ones() as f64 / self.num_bits as f64
    }

    /// The law of its rate.
    fn law(&self) -> Box<dyn Law> {
        let (num_bits, num_hashes) = (self.num_bits, self.num_hashes);
        match self.layout.rule {
            Rule::SplitBlock => Box::new(Lanes { blocks: num_bits / 256, lanes: 8, width: 32, per_lane: 1 }),
            _ => Box::new(Classic { num_bits, num_hashes }),
        }
    }

    /// Model rate at the present fill.
    pub fn fpr(&self) -> f64 {
        self.law().fpr_of_fill(self.fill())
    }

    /// Estimated number of keys, and its standard deviation.
    pub fn approx_count(&self) -> (f64, f64) {
        self.law().estimate(self.fill())
    }

    /// How a key's digest is computed: a digest of one filter is one of every filter with the same hashing.
    pub fn hashing(&self) -> Hashing {
        let range = Range { num_bits: self.num_bits, num_hashes: self.num_hashes };
        Hashing { rule: self.layout.rule, key_type: self.key_type, seed: self.seed, range }
    }

    /// Refuses a filter of another shape, naming what differs.
    pub fn check_alike(&self, other: &Self) -> Result<()> {
        let rows = [
            ("format", self.format.name.to_owned(), other.format.name.to_owned()),
            ("key_type", self.key_type.name().into(), other.key_type.name().into()),
            ("seed", self.seed.to_string(), other.seed.to_string()),
            ("num_bits", self.num_bits.to_string(), other.num_bits.to_string()),
            ("num_hashes", self.num_hashes.to_string(), other.num_hashes.to_string()),
        ];
        let differences: Vec<_> = rows.iter().filter(|(_, mine, theirs)| mine != theirs).collect();
        if differences.is_empty() {
            return Ok(());
        }
        let named: Vec<_> =
            differences.iter().map(|(name, mine, theirs)| format!("{name} ({mine} and {theirs})")).collect();
        Err(Error::Incompatible(format!("the filters differ in {}", named.join(", "))))
    }

    /// Adds all keys of `other`.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        self.check_alike(other)?;
        bits::or_assign(self.memory.writable()?, other.memory.words());
        Ok(())
    }

    /// True if both have the same format, shape and bits.
    pub fn equals(&self, other: &Self) -> bool {
        self.check_alike(other).is_ok() && self.memory.words() == other.memory.words()
    }

    /// Removes all keys.
    pub fn clear(&mut self) -> Result<()> {
        self.memory.writable()?.fill(0);
        Ok(())
    }

    /// The same bits under another format, which must place them alike.
    pub fn convert_to(&self, format: &'static Format) -> Result<Self> {
        if let Contents::Bits(layout) = &format.contents
            && layout.rule == self.layout.rule
            && format.key_types == self.format.key_types
        {
            return Ok(BitFilter { format, layout, ..self.try_clone()? });
        }
        Err(self.format.refuse_conversion(format))
    }

    /// The filter in `num_bits` bits, of which its own are a multiple; it finds all keys that this one finds. Of split
    /// blocks only, where neighbouring blocks become one: `(h n) >> 32` is `(h r n) >> 32` over r, rounded down.
    pub fn fold_to(&self, num_bits: u64) -> Result<Self> {
        let refuse = |why: &str| Err(Error::Incompatible(format!("a filter of {} bits {why}", self.num_bits)));
        if self.layout.rule != Rule::SplitBlock {
            return refuse(&format!("of format {:?} cannot be folded; only split blocks can", self.format.name));
        }
        if num_bits == 0 || !num_bits.is_multiple_of(256) || !self.num_bits.is_multiple_of(num_bits) {
            return refuse(&format!("cannot be folded to {num_bits}, whole blocks of 256 bits that divide it"));
        }
        let mut folded = Self::with_shape(self.format, self.key_type, self.seed.number, num_bits, self.num_hashes)?;
        let blocks = folded.memory.writable()?[..(num_bits / 64) as usize].as_chunks_mut::<BLOCK_WORDS>().0;
        let together = (self.num_bits / num_bits) as usize * BLOCK_WORDS;
        for (block, parts) in blocks.iter_mut().zip(self.memory.words().chunks(together)) {
            parts.as_chunks::<BLOCK_WORDS>().0.iter().for_each(|part| bits::or_assign(block, part));
        }
        Ok(folded)
    }

    /// An independent copy.
    pub fn try_clone(&self) -> Result<Self> {
        Ok(BitFilter { memory: self.memory.try_clone()?, ..*self })
    }
}

/// Refuses a number of bits that filters of the format do not have.
fn check_bits(format: &Format, layout: &BitLayout, num_bits: u64) -> Result<()> {
    let (step, most) = (layout.bits_step, layout.most_bits);
    if num_bits == 0 || !num_bits.is_multiple_of(step) || num_bits > most {
        let why = format!("num_bits must be a multiple of {step}, up to {most}, in format {:?}", format.name);
        return Err(Error::parameter(format!("{why}, got {num_bits}")));
    }
    if num_bits == 1 && !layout.rule.is_reduced() {
        return Err(Error::parameter(format!("num_bits must be at least 2 in format {:?}, got 1", format.name)));
    }
    Ok(())
}

/// The head of bits alone of this shape in `len` bytes, which state none.
fn head_of(format: &Format, layout: &BitLayout, shape: Range, len: u64) -> Result<Head> {
    let Range { num_bits, num_hashes } = shape;
    if !layout.is_bare {
        let why = "num_bits and num_hashes are for bits alone";
        return Err(Error::parameter(format!("{why}; bytes of format {:?} state them", format.name)));
    }
    if !num_bits.is_multiple_of(layout.bits_step) {
        return Err(format.refuse(format!("num_bits is {num_bits}, not a multiple of {}", layout.bits_step)));
    }
    if num_bits.div_ceil(8) != len {
        let wanted = num_bits.div_ceil(8);
        return Err(format.refuse(format!("{num_bits} bits take {wanted} bytes, and there are {len}")));
    }
    Ok(Head { len: 0, num_hashes, seed: Seed::NONE, num_bits })
}

/// See [`BitFilter::hashing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hashing {
    rule: Rule,
    key_type: KeyType,
    seed: Seed,
    range: Range,
}

impl Hashing {
    /// That of a rule whose digests depend on nothing but the bytes of texts.
    pub const fn of_bytes(rule: Rule) -> Self {
        Hashing { rule, key_type: KeyType::Bytes, seed: Seed::NONE, range: Range { num_bits: 1, num_hashes: 1 } }
    }

    /// That of the elements of a block of Bitcoin.
    pub fn of_block(key: &[u8; 16]) -> Self {
        Hashing { seed: Seed::of_key(key), ..Self::of_bytes(Rule::Bip158) }
    }

    /// That of filters of fingerprints.
    pub fn of_words(key_type: KeyType) -> Self {
        let rule = if key_type == KeyType::Word { Rule::Word } else { Rule::HashedWord };
        Hashing { rule, key_type, ..Self::of_bytes(rule) }
    }

    /// The hash of a key; `None` if it is of another type. The first part of one whose digests take several.
    #[inline(always)]
    pub fn digest(&self, domain: Domain, bytes: &[u8]) -> Option<Digest> {
        self.key_type.feed(domain, bytes, |bytes| self.rule.digest(&self.seed, self.range, 0, bytes))
    }

    /// Digests of one key.
    #[inline]
    pub fn parts(&self) -> usize {
        self.rule.parts(self.range.num_hashes) as usize
    }

    /// Fills `out` with all parts of a key; false if it is of another type.
    pub fn digest_parts(&self, domain: Domain, bytes: &[u8], out: &mut [Digest]) -> bool {
        out.iter_mut().zip(0..).all(|(out, part)| {
            let hash = |bytes: &[u8]| self.rule.digest(&self.seed, self.range, part, bytes);
            self.key_type.feed(domain, bytes, hash).is_some_and(|digest| {
                *out = digest;
                true
            })
        })
    }

    /// The type of the keys.
    pub fn key_type(&self) -> KeyType {
        self.key_type
    }

    /// The keys that it takes, for messages.
    pub fn describe(&self) -> &'static str {
        self.key_type.describe()
    }

    /// True if integers of 64 bits are keys.
    #[inline]
    pub fn takes_words(&self) -> bool {
        matches!(self.key_type, KeyType::Any | KeyType::Long | KeyType::Word)
    }

    /// Fills `out` with the hashes of integers, 8 little-endian bytes each; false if keys are of another type.
    pub fn digest_words(&self, words: &[[u8; 8]], out: &mut [Digest]) -> bool {
        let takes = self.takes_words();
        if takes {
            self.rule.digest_words(&self.seed, self.range, words, out);
        }
        takes
    }
}
