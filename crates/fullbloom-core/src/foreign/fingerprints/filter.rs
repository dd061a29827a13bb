//! [`FingerprintFilter`]: cells and their shape.

use super::layout::FingerprintLayout;
use super::shape::Shape;
use super::solving;
use crate::cells::Memory;
use crate::error::{Error, Result};
use crate::foreign::bits::Hashing;
use crate::foreign::formats::{Contents, Format};
use crate::foreign::key_type::KeyType;
use crate::foreign::source::Source;

/// See the head of this file.
pub struct FingerprintFilter {
    pub(super) format: &'static Format,
    pub(super) layout: &'static FingerprintLayout,
    pub(super) key_type: KeyType,
    pub(super) seed: u64,
    pub(super) shape: Shape,
    pub(super) memory: Memory,
}

impl FingerprintFilter {
    /// The filter of `keys`, words of 64 bits; repeated ones count once. The order of keys does not matter.
    pub fn build(format: &'static Format, key_type: KeyType, mut keys: Vec<u64>) -> Result<Self> {
        let layout = layout_of(format)?;
        format.check_key_type(key_type)?;
        keys.sort_unstable();
        keys.dedup();
        let too_many =
            || Error::parameter(format!("a filter of format {:?} has no room for so many keys", format.name));
        let count = u32::try_from(keys.len()).map_err(|_| too_many())?;
        let shape = layout.family.shape_for(count)?;
        let cells = solving::solve(&shape, layout.family.first_seed(), &keys)?;
        drop(keys);
        let memory = Memory::zeroed(layout.nbytes(shape).div_ceil(8))?;
        let mut filter = FingerprintFilter { format, layout, key_type, seed: cells.seed, shape, memory };
        filter.set(&cells)?;
        Ok(filter)
    }

    fn set(&mut self, solved: &solving::Solved) -> Result<()> {
        let shape = self.shape;
        let bytes = self.memory.bytes_mut().ok_or_else(Error::read_only)?;
        match self.layout.width {
            8 => solved.write(&shape, &mut *bytes, |bytes, i| bytes[i].into(), |bytes, i, cell| bytes[i] = cell as u8),
            _ => {
                let cells = bytes.as_chunks_mut::<2>().0;
                let get = |cells: &[[u8; 2]], i: usize| u16::from_le_bytes(cells[i]);
                solved.write(&shape, cells, get, |cells, i, cell| cells[i] = cell.to_le_bytes());
            }
        }
        Ok(())
    }

    /// The filter in `source`, which is read in one pass; nothing is allocated before the lengths that its bytes state are
    /// checked. It may have at most `max_bytes` of cells.
    pub fn read(format: &'static Format, key_type: KeyType, mut source: Source<'_>, max_bytes: u64) -> Result<Self> {
        let layout = layout_of(format)?;
        format.check_key_type(key_type)?;
        let (seed, shape) = layout.parse(source.head(), source.len()).map_err(|why| format.refuse(why))?;
        let bytes = layout.nbytes(shape);
        format.check_size(bytes, max_bytes)?;
        let mut memory = Memory::zeroed(bytes.div_ceil(8))?;
        source.skip_head(layout.family.head_len());
        let cells = memory.bytes_mut().ok_or_else(Error::read_only)?;
        source.fill(format, &mut cells[..bytes as usize])?;
        source.fill(format, &mut [0; 8][..layout.tail])?;
        Ok(FingerprintFilter { format, layout, key_type, seed, shape, memory })
    }

    /// The filter with this header, over cells of which `memory` gives the bytes: their number is its argument.
    pub(in crate::foreign) fn restore(
        format: &'static Format,
        key_type: KeyType,
        head: &[u8],
        memory: impl FnOnce(u64) -> Result<Memory>,
    ) -> Result<Self> {
        let layout = layout_of(format)?;
        if head.len() != layout.family.head_len() {
            return Err(format.refuse(format!("its header has {} bytes", head.len())));
        }
        let (seed, shape) = layout.family.parse(head).map_err(|why| format.refuse(why))?;
        Ok(FingerprintFilter { format, layout, key_type, seed, shape, memory: memory(layout.nbytes(shape))? })
    }

    /// The cells, which zeros fill up to whole lines.
    pub(in crate::foreign) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Writes the filter as its program does.
    pub fn write(&self, out: &mut dyn std::io::Write) -> std::io::Result<()> {
        out.write_all(&self.head())?;
        out.write_all(&self.memory.bytes()[..self.nbytes() as usize])?;
        out.write_all(&[0; 8][..self.layout.tail])
    }

    /// Bytes that [`FingerprintFilter::write`] writes.
    pub fn len_written(&self) -> u64 {
        self.layout.family.head_len() as u64 + self.nbytes() + self.layout.tail as u64
    }

    /// Its header.
    pub(in crate::foreign) fn head(&self) -> Vec<u8> {
        self.shape.head(self.seed)
    }

    /// Its format.
    pub fn format(&self) -> &'static Format {
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

    /// Bits of a cell.
    pub fn width(&self) -> u32 {
        self.layout.width
    }

    /// Number of keys, if the format records it.
    pub fn num_keys(&self) -> Option<u64> {
        self.shape.num_keys()
    }

    /// Estimated number of keys, and its standard deviation: the recorded one, or that for which so many cells are allocated.
    pub fn approx_count(&self) -> (f64, f64) {
        self.num_keys().map_or_else(|| self.shape.estimate(), |keys| (keys as f64, 0.0))
    }

    /// Bytes of cells.
    pub fn nbytes(&self) -> u64 {
        self.layout.nbytes(self.shape)
    }

    /// Rate of false positives.
    pub fn fpr(&self) -> f64 {
        0.5f64.powi(self.layout.width as i32)
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

fn layout_of(format: &'static Format) -> Result<&'static FingerprintLayout> {
    match &format.contents {
        Contents::Fingerprints(layout) => Ok(layout),
        _ => Err(Error::parameter(format!("filters of format {:?} have no fingerprints", format.name))),
    }
}
