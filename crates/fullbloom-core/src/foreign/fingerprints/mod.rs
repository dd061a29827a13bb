//! [`FingerprintFilter`]: an xor or a binary fuse filter of `xor_singleheader`, and of its Python package pyfusefilter.
//!
//! Such a filter is built of all its keys at once; nothing can be added.
//!
//! * [`rows`]: the table of formats;
//! * [`shape`]: the cells of a key, and the header that describes them;
//! * [`solving`]: cells whose xor is a fingerprint;
//! * [`lookup`]: one key or many;
//! * [`file`]: the filter in a container of ours.

mod file;
mod lookup;
pub mod rows;
mod shape;
mod solving;

use std::io::Read;

pub use rows::FingerprintFormat;
use shape::Shape;

use super::bits::Hashing;
use super::key_type::KeyType;
use crate::cells::Memory;
use crate::error::{Error, Result};

/// See the head of this file.
pub struct FingerprintFilter {
    format: &'static FingerprintFormat,
    key_type: KeyType,
    seed: u64,
    shape: Shape,
    memory: Memory,
}

impl FingerprintFilter {
    /// The filter of `keys`, words of 64 bits; repeated ones count once. The order of keys does not matter.
    pub fn build(format: &'static FingerprintFormat, key_type: KeyType, mut keys: Vec<u64>) -> Result<Self> {
        format.keys().check(key_type)?;
        keys.sort_unstable();
        keys.dedup();
        let too_many =
            || Error::parameter(format!("a filter of format {:?} has no room for so many keys", format.name));
        let count = u32::try_from(keys.len()).map_err(|_| too_many())?;
        let shape = format.family.shape_for(count)?;
        let cells = solving::solve(&shape, format.family.first_seed(), &keys)?;
        drop(keys);
        let mut filter =
            FingerprintFilter { format, key_type, seed: cells.seed, shape, memory: Self::memory(format, shape)? };
        filter.set(&cells)?;
        Ok(filter)
    }

    fn memory(format: &FingerprintFormat, shape: Shape) -> Result<Memory> {
        Memory::zeroed((shape.num_cells() * u64::from(format.width / 8)).div_ceil(8))
    }

    fn set(&mut self, solved: &solving::Solved) -> Result<()> {
        let shape = self.shape;
        let bytes = self.memory.bytes_mut().ok_or_else(Error::read_only)?;
        match self.format.width {
            8 => solved.write(&shape, &mut *bytes, |bytes, i| bytes[i].into(), |bytes, i, cell| bytes[i] = cell as u8),
            _ => {
                let cells = bytes.as_chunks_mut::<2>().0;
                let get = |cells: &[[u8; 2]], i: usize| u16::from_le_bytes(cells[i]);
                solved.write(&shape, cells, get, |cells, i, cell| cells[i] = cell.to_le_bytes());
            }
        }
        Ok(())
    }

    /// The filter in the `len` bytes that `input` gives, read in one pass; nothing is allocated before the lengths that
    /// they state are checked. It may have at most `max_bytes` of cells.
    pub fn read(
        format: &'static FingerprintFormat,
        key_type: KeyType,
        input: &mut dyn Read,
        len: u64,
        max_bytes: u64,
    ) -> Result<Self> {
        format.keys().check(key_type)?;
        let failed = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => format.refuse("the bytes were cut short while they were read"),
            _ => Error::Io(error, "read".into()),
        };
        let head_len = format.family.head_len();
        let mut head = vec![0; head_len.min(len as usize)];
        input.read_exact(&mut head).map_err(failed)?;
        let (seed, shape) = format.parse(&head, len).map_err(|why| format.refuse(why))?;
        let bytes = shape.num_cells() * u64::from(format.width / 8);
        if bytes > max_bytes {
            let why = format!("the filter has {bytes} bytes, max_bytes is {max_bytes}; raise it if you trust the file");
            return Err(Error::Memory(why));
        }
        let mut memory = Self::memory(format, shape)?;
        let cells = memory.bytes_mut().ok_or_else(Error::read_only)?;
        input.read_exact(&mut cells[..bytes as usize]).map_err(failed)?;
        Ok(FingerprintFilter { format, key_type, seed, shape, memory })
    }

    /// Writes the filter as its program does.
    pub fn write(&self, out: &mut dyn std::io::Write) -> std::io::Result<()> {
        out.write_all(&self.head())?;
        out.write_all(&self.memory.bytes()[..self.nbytes() as usize])?;
        out.write_all(&[0; 8][..self.format.tail])
    }

    /// Bytes that [`FingerprintFilter::write`] writes.
    pub fn len_written(&self) -> u64 {
        self.format.family.head_len() as u64 + self.nbytes() + self.format.tail as u64
    }

    fn head(&self) -> Vec<u8> {
        self.shape.head(self.seed)
    }

    /// Its format.
    pub fn format(&self) -> &'static FingerprintFormat {
        self.format
    }

    /// The type of its keys.
    pub fn key_type(&self) -> KeyType {
        self.key_type
    }

    /// The seed with which its keys could be solved.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Number of cells.
    pub fn num_cells(&self) -> u64 {
        self.shape.num_cells()
    }

    /// Number of keys, if the format records it.
    pub fn num_keys(&self) -> Option<u64> {
        self.shape.num_keys()
    }

    /// Bytes of cells.
    pub fn nbytes(&self) -> u64 {
        self.num_cells() * u64::from(self.format.width / 8)
    }

    /// Rate of false positives.
    pub fn fpr(&self) -> f64 {
        0.5f64.powi(self.format.width as i32)
    }

    /// How a key becomes a word.
    pub fn hashing(&self) -> Hashing {
        Hashing::of_words(self.key_type)
    }

    /// True if both have the same format, types of keys and bytes.
    pub fn equals(&self, other: &Self) -> bool {
        (self.format.number, self.key_type, self.seed, self.shape)
            == (other.format.number, other.key_type, other.seed, other.shape)
            && self.memory.words() == other.memory.words()
    }

    /// An independent copy.
    pub fn try_clone(&self) -> Result<Self> {
        Ok(FingerprintFilter { memory: self.memory.try_clone()?, ..*self })
    }
}

#[cfg(test)]
mod tests;
