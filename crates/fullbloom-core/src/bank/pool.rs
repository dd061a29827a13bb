//! [`Pool`]: the lines of all filters of a bank, side by side. Lines of removed filters are linked in lists, one for each
//! size, through their own first words, and are used again.

use crate::cells::{LINE_WORDS, Memory};
use crate::error::{Error, Result};
use crate::scheme::placed;

/// Lines that a bank can have: their numbers fit 32 bits, and one number means none.
pub const MAX_LINES: u64 = u32::MAX as u64 - 1;
/// Lines of the first memory.
const LEAST_LINES: u64 = 16;

/// Lines, and the heads of the lists of free ones.
pub struct Pool {
    memory: Option<Memory>,
    used: u32,
    /// One more than the first line of the first free filter of each size; 0 for none.
    free: Vec<u32>,
}

impl Pool {
    /// A pool without lines.
    pub fn empty() -> Self {
        Pool { memory: None, used: 0, free: Vec::new() }
    }

    /// Over `used` lines of a file.
    pub fn from_memory(memory: Option<Memory>, used: u32, free: Vec<u32>) -> Self {
        Pool { memory, used, free }
    }

    /// Lines in use, free ones included.
    pub fn num_used(&self) -> u32 {
        self.used
    }

    /// Heads of the lists of free filters, one a size.
    pub fn free(&self) -> &[u32] {
        &self.free
    }

    /// The words of all lines in use.
    #[inline(always)]
    pub fn words(&self) -> &[u64] {
        let words = self.memory.as_ref().map_or(&[][..], Memory::words);
        &words[..self.used as usize * LINE_WORDS]
    }

    /// [`Pool::words`], for writing.
    #[inline(always)]
    pub fn words_mut(&mut self) -> Result<&mut [u64]> {
        let used = self.used as usize * LINE_WORDS;
        match &mut self.memory {
            Some(memory) => Ok(&mut memory.writable()?[..used]),
            None => Ok(&mut []),
        }
    }

    /// Prefetches a line.
    #[inline(always)]
    pub fn fetch(&self, line: u32) {
        placed::fetch(self.words().as_ptr(), line);
    }

    /// The words of `lines` lines from `first` on; empty if they are not in the pool.
    #[inline]
    pub fn filter(&self, first: u32, lines: u32) -> &[u64] {
        let start = first as usize * LINE_WORDS;
        self.words().get(start..start + lines as usize * LINE_WORDS).unwrap_or_default()
    }

    /// [`Pool::filter`], for writing.
    pub fn filter_mut(&mut self, first: u32, lines: u32) -> Result<&mut [u64]> {
        let start = first as usize * LINE_WORDS;
        Ok(self.words_mut()?.get_mut(start..start + lines as usize * LINE_WORDS).unwrap_or_default())
    }

    /// The memory of the lines, if there are any.
    pub fn memory(&self) -> Option<&Memory> {
        self.memory.as_ref()
    }

    /// True if the memory cannot be written.
    pub fn is_read_only(&self) -> bool {
        self.memory.as_ref().is_some_and(Memory::is_read_only)
    }

    /// An independent copy.
    pub fn try_clone(&self) -> Result<Self> {
        let copy = |memory: &Memory| {
            if memory.checksum().is_some() {
                return memory.try_clone(); // which checks it
            }
            let mut copy = Memory::allocate_unsupplied(self.words().len() as u64)?;
            copy.writable()?[..self.words().len()].copy_from_slice(self.words());
            Ok(copy)
        };
        Ok(Pool { memory: self.memory.as_ref().map(copy).transpose()?, used: self.used, free: self.free.clone() })
    }

    /// Removes all lines and their memory.
    pub fn clear(&mut self) {
        *self = Self::empty();
    }

    /// True if a filter of this size is free.
    pub fn has_free(&self, size: usize) -> bool {
        self.free.get(size).is_some_and(|&head| head != 0)
    }

    /// The first line of `lines` zeroed ones, for a filter of size number `size`.
    pub fn take(&mut self, size: usize, lines: u32) -> Result<u32> {
        if let Some(first) = self.free.get(size).and_then(|head| head.checked_sub(1)) {
            let words = self.filter_mut(first, lines)?;
            let Some(next) = words.first().map(|next| u64::from_le(*next) as u32) else { return Err(list_error()) };
            words.fill(0);
            self.free[size] = next;
            return Ok(first);
        }
        let (first, end) = (self.used, u64::from(self.used) + u64::from(lines));
        if end > MAX_LINES {
            return Err(Error::Capacity(format!(
                "the bank is full: it has {first} lines of 64 bytes and {lines} more would exceed {MAX_LINES}; spread \
                 the owners over several banks"
            )));
        }
        self.reserve(end)?;
        self.used = end as u32;
        // Writing is what touches these pages first: a read would get 4 KiB copies of the page of zeros.
        self.filter_mut(first, lines)?.fill(0);
        Ok(first)
    }

    /// Has memory for `lines` lines.
    fn reserve(&mut self, lines: u64) -> Result<()> {
        let held = self.memory.as_ref().map_or(0, |memory| memory.words().len() / LINE_WORDS) as u64;
        if lines <= held {
            return Ok(());
        }
        let wanted = lines.max(held + held / 4).max(LEAST_LINES) * LINE_WORDS as u64;
        match &mut self.memory {
            None => self.memory = Some(Memory::allocate_unsupplied(wanted)?),
            Some(memory) => memory.lengthen(wanted)?,
        }
        Ok(())
    }

    /// Returns the lines of a filter of size number `size`.
    pub fn give_back(&mut self, size: usize, first: u32, lines: u32) -> Result<()> {
        if self.free.len() <= size {
            self.free.resize(size + 1, 0);
        }
        let head = self.free[size];
        let words = self.filter_mut(first, lines)?;
        words.fill(0);
        if let Some(word) = words.first_mut() {
            *word = u64::from(head).to_le();
            self.free[size] = first + 1;
        }
        Ok(())
    }

    /// Calls `visit` with the first line of each free filter, its size number being that of its list; None for a list
    /// that does not end, or a free filter that is not clear.
    pub fn each_free(&self, lines_of: impl Fn(usize) -> Option<u32>, mut visit: impl FnMut(u32, u32)) -> Option<()> {
        let mut left = self.used;
        for (size, &head) in self.free.iter().enumerate() {
            let lines = lines_of(size)?;
            let mut head = head;
            while let Some(first) = head.checked_sub(1) {
                left = left.checked_sub(lines)?;
                let (next, rest) = self.filter(first, lines).split_first()?;
                let next = u64::from_le(*next);
                if rest.iter().any(|&word| word != 0) {
                    return None;
                }
                visit(first, lines);
                head = u32::try_from(next).ok()?;
            }
        }
        Some(())
    }
}

fn list_error() -> Error {
    Error::format("the list of free lines leads out of the bank; the file is damaged")
}
