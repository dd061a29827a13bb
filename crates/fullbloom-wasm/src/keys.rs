//! [`Batch`]: keys that JavaScript has written into the module's memory, and their hashes.
//!
//! A batch is in one of four forms: texts (UTF-8 one after the other, lengths apart; in bytes, or in the units of
//! JavaScript's strings, then with a byte behind each text), numbers (8 bytes each), or any keys, each behind a tag of one
//! byte:
//!
//! | tag | then |
//! |---|---|
//! | 0 text | length (4 bytes), UTF-8 |
//! | 1 number | 8 bytes; a safe integer is an integer, any other number a float |
//! | 2 float | 8 bytes |
//! | 3 integer | length (4 bytes), two's complement |
//! | 4 tuple | number of parts (4 bytes), the parts |
//!
//! All is little-endian. What the canonical bytes of a key are is the core's to say.

use wasm_bindgen::prelude::wasm_bindgen;

use crate::core::{Domain, KeyDomains, KeyHasher, NumberBytes, PART_HEADER, end_part, float_bits};
use crate::fault::{Fault, Result};

/// How deep a tuple may nest: as in Python.
const DEEPEST: usize = 64;
/// How long it may be: as in Python.
const LONGEST: usize = 16 << 20;
/// The largest integer n of which n and n + 1 are distinct numbers: `Number.MAX_SAFE_INTEGER`.
const LARGEST_SAFE: f64 = 9_007_199_254_740_991.0;

/// How the keys of a batch are written down.
#[wasm_bindgen]
#[derive(Clone, Copy)]
pub enum Form {
    /// Texts, their lengths apart.
    Texts = 0,
    /// Numbers, 8 bytes each.
    Numbers = 1,
    /// Any keys behind tags.
    Tagged = 2,
    /// Texts, each followed by a byte; lengths apart, in units of UTF-16.
    Units = 3,
}

/// The memory through which keys come and answers go.
#[wasm_bindgen]
#[derive(Default)]
pub struct Batch {
    bytes: Vec<u8>,
    lengths: Vec<u32>,
    pub(crate) hashes: Vec<u64>,
    pub(crate) domains: KeyDomains,
    pub(crate) answers: Vec<u8>,
    pub(crate) words: Vec<u64>,
}

/// Makes `memory` so long.
fn lengthen<T: Clone + Default>(memory: &mut Vec<T>, len: usize) -> Result<()> {
    if memory.len() < len {
        let more = len - memory.len();
        memory.try_reserve_exact(more).map_err(|_| Fault::memory(more * size_of::<T>()))?;
        memory.resize(len, T::default());
    }
    Ok(())
}

#[wasm_bindgen]
impl Batch {
    /// No memory yet.
    #[wasm_bindgen(constructor)]
    #[allow(clippy::new_without_default, reason = "the one that JavaScript calls")]
    pub fn new() -> Self {
        Batch::default()
    }

    /// Makes room for so many bytes of keys; where it begins.
    pub fn bytes(&mut self, len: usize) -> std::result::Result<usize, wasm_bindgen::JsValue> {
        lengthen(&mut self.bytes, len)?;
        Ok(self.bytes.as_ptr() as usize)
    }

    /// Makes room for the lengths, or the values, of so many keys; where it begins.
    pub fn lengths(&mut self, len: usize) -> std::result::Result<usize, wasm_bindgen::JsValue> {
        lengthen(&mut self.lengths, len)?;
        Ok(self.lengths.as_ptr() as usize)
    }

    /// Makes room for a value beside each of so many keys; where it begins.
    pub fn values(&mut self, len: usize) -> std::result::Result<usize, wasm_bindgen::JsValue> {
        lengthen(&mut self.words, len)?;
        Ok(self.words.as_ptr() as usize)
    }

    /// Where the answers lie, a byte each.
    pub fn answers(&self) -> usize {
        self.answers.as_ptr() as usize
    }

    /// Where the counts or values lie, 8 bytes each.
    pub fn words(&self) -> usize {
        self.words.as_ptr() as usize
    }

    /// How many keys were hashed: all, or those before one that was refused.
    pub fn hashed(&self) -> usize {
        self.hashes.len()
    }

    /// Where the hashes lie, 8 bytes each.
    pub fn hashes(&self) -> usize {
        self.hashes.as_ptr() as usize
    }
}

impl Batch {
    /// The first bytes.
    #[inline(always)]
    pub(crate) fn first(&self, len: usize) -> &[u8] {
        self.bytes.get(..len).unwrap_or_default()
    }

    /// Hashes the keys; those before one that is refused are hashed, and their number is that of the hashes.
    pub(crate) fn hash(&mut self, hasher: &KeyHasher, keys: usize, form: Form) -> Result<()> {
        self.hashes.clear();
        self.domains = KeyDomains::NONE;
        self.hashes.try_reserve(keys).map_err(|_| Fault::memory(8 * keys))?;
        match form {
            Form::Texts => self.hash_texts(hasher, keys),
            Form::Units => self.hash_units(hasher, keys),
            Form::Numbers => self.hash_numbers(hasher, keys),
            Form::Tagged => {
                let mut reader = Reader { rest: &self.bytes };
                for _ in 0..keys {
                    let (hash, domain) = reader.key(hasher)?;
                    self.hashes.push(hash);
                    self.domains = self.domains.with(KeyDomains::of(domain));
                }
                Ok(())
            }
        }
    }

    fn hash_texts(&mut self, hasher: &KeyHasher, keys: usize) -> Result<()> {
        let (lengths, mut rest) = (self.lengths.get(..keys).ok_or_else(cut_short)?, self.bytes.as_slice());
        for &len in lengths {
            let (text, more) = rest.split_at_checked(len as usize).ok_or_else(cut_short)?;
            self.hashes.push(hasher.text(text));
            rest = more;
        }
        if keys > 0 {
            self.domains = KeyDomains::TEXT;
        }
        Ok(())
    }

    fn hash_units(&mut self, hasher: &KeyHasher, keys: usize) -> Result<()> {
        let (lengths, mut rest) = (self.lengths.get(..keys).ok_or_else(cut_short)?, self.bytes.as_slice());
        for &units in lengths {
            let len = bytes_of(rest, units as usize);
            let (text, more) = rest.split_at_checked(len).ok_or_else(cut_short)?;
            self.hashes.push(hasher.text(text));
            rest = more.get(1..).ok_or_else(cut_short)?;
        }
        if keys > 0 {
            self.domains = KeyDomains::TEXT;
        }
        Ok(())
    }

    fn hash_numbers(&mut self, hasher: &KeyHasher, keys: usize) -> Result<()> {
        let numbers = self.bytes.as_chunks::<8>().0.get(..keys).ok_or_else(cut_short)?;
        for &number in numbers {
            let (hash, domain) = hash_number(hasher, f64::from_le_bytes(number));
            self.hashes.push(hash);
            self.domains = self.domains.with(KeyDomains::of(domain));
        }
        Ok(())
    }

    /// Gives as many answers as there are hashes.
    pub(crate) fn room_for_answers(&mut self) -> Result<()> {
        lengthen(&mut self.answers, self.hashes.len())
    }

    /// Gives as many words as there are hashes.
    pub(crate) fn room_for_words(&mut self) -> Result<()> {
        lengthen(&mut self.words, self.hashes.len())
    }
}

/// How many of `bytes`, which are UTF-8, hold so many units of UTF-16: one a character, two from four bytes on.
fn bytes_of(bytes: &[u8], units: usize) -> usize {
    let (mut len, mut left) = (0, units);
    while left > 0 {
        match bytes.get(len) {
            Some(0..0x80) => len += 1,
            Some(0x80..0xe0) => len += 2,
            Some(0xe0..0xf0) => len += 3,
            Some(_) => {
                len += 4;
                left = left.saturating_sub(1);
            }
            None => return usize::MAX,
        }
        left = left.saturating_sub(1);
    }
    len
}

/// What no batch of the package is.
#[cold]
fn cut_short() -> Fault {
    Fault::key_type("the batch ends within a key")
}

/// The integer that a number of JavaScript is, where it is a safe one.
#[inline(always)]
fn safe_integer(number: f64) -> Option<i64> {
    (number.abs() <= LARGEST_SAFE && number as i64 as f64 == number).then_some(number as i64)
}

/// The hash of a number, and its domain.
#[inline(always)]
pub(crate) fn hash_number(hasher: &KeyHasher, number: f64) -> (u64, Domain) {
    match safe_integer(number) {
        Some(integer) => (hasher.hash_signed(integer), Domain::Integer),
        None => (hasher.float(number), Domain::Float),
    }
}

/// The fewest bytes, 9 or more, that hold an integer beyond 128 bits and its sign; fewer bits are the core's.
fn shortest(bytes: &[u8]) -> &[u8] {
    let sign = if bytes.last().is_some_and(|last| last >> 7 == 1) { 0xff } else { 0 };
    let mut len = bytes.len();
    while len > 9 && bytes[len - 1] == sign && bytes[len - 2] >> 7 == sign >> 7 {
        len -= 1;
    }
    &bytes[..len]
}

/// Reads keys behind tags.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or_else(cut_short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (&taken, rest) = self.rest.split_first_chunk::<N>().ok_or_else(cut_short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn len(&mut self) -> Result<usize> {
        Ok(u32::from_le_bytes(self.array()?) as usize)
    }

    /// The hash of the next key, and its domain.
    fn key(&mut self, hasher: &KeyHasher) -> Result<(u64, Domain)> {
        let (mut hash, mut domain) = (0, Domain::Text);
        self.canonical(0, &mut |found, bytes| {
            (hash, domain) = (hasher.bytes(found, bytes), found);
            Ok(())
        })?;
        Ok((hash, domain))
    }

    /// Gives `take` the domain and the canonical bytes of the next key, which lies in `depth` tuples.
    fn canonical(&mut self, depth: usize, take: &mut dyn FnMut(Domain, &[u8]) -> Result<()>) -> Result<()> {
        match self.array::<1>()? {
            [0] => {
                let len = self.len()?;
                take(Domain::Text, self.take(len)?)
            }
            [1] => {
                let number = f64::from_le_bytes(self.array()?);
                match safe_integer(number) {
                    Some(integer) => take(Domain::Integer, NumberBytes::of(i128::from(integer)).as_slice()),
                    None => take(Domain::Float, &float_bits(number).to_le_bytes()),
                }
            }
            [2] => take(Domain::Float, &float_bits(f64::from_le_bytes(self.array()?)).to_le_bytes()),
            [3] => {
                let len = self.len()?;
                let bytes = self.take(len)?;
                if len > 16 {
                    return take(Domain::Integer, shortest(bytes));
                }
                let sign = if bytes.last().is_some_and(|last| last >> 7 == 1) { 0xff } else { 0 };
                let mut wide = [sign; 16];
                wide[..len].copy_from_slice(bytes);
                take(Domain::Integer, NumberBytes::of(i128::from_le_bytes(wide)).as_slice())
            }
            [4] => {
                let mut parts = Vec::new();
                self.tuple(depth + 1, &mut parts)?;
                take(Domain::Tuple, &parts)
            }
            _ => Err(cut_short()),
        }
    }

    /// Appends the parts of a tuple, the `depth`-th of those around and in each other.
    fn tuple(&mut self, depth: usize, out: &mut Vec<u8>) -> Result<()> {
        if depth > DEEPEST {
            return Err(Fault::key_type(format!("a tuple key may nest {DEEPEST} levels, got more")));
        }
        for _ in 0..self.len()? {
            let start = out.len();
            if self.rest.first() == Some(&4) {
                self.rest = &self.rest[1..];
                expect(out, PART_HEADER)?;
                out.extend_from_slice(&[0; PART_HEADER]);
                self.tuple(depth + 1, out)?;
                end_part(out, start, Domain::Tuple);
            } else {
                self.canonical(depth, &mut |domain, bytes| {
                    expect(out, PART_HEADER + bytes.len())?;
                    out.extend_from_slice(&[0; PART_HEADER]);
                    out.extend_from_slice(bytes);
                    end_part(out, start, domain);
                    Ok(())
                })?;
            }
        }
        Ok(())
    }
}

/// Makes room for `more` bytes of a tuple.
fn expect(out: &mut Vec<u8>, more: usize) -> Result<()> {
    if more > LONGEST - out.len() {
        let remedy = "hash its long parts and put the digests in their place";
        return Err(Fault::key_type(format!("a tuple key may take {LONGEST} bytes encoded, got more; {remedy}")));
    }
    out.try_reserve(more).map_err(|_| Fault::memory(more))
}
