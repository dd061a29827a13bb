//! Memory of a filter: owned (small), huge pages (large), or a mapped file.
//!
//! Every allocation is fallible and zeroed by the allocator or the kernel, so that an impossible
//! size is an error and never an abort.

use memmap2::{Mmap, MmapMut};
use std::ptr::NonNull;
use std::sync::Arc;

use super::{LINE_BYTES, LINE_WORDS};
use crate::error::{Error, Result};
use crate::isa::Isa;

/// From this size on, memory comes in 2 MiB pages if the kernel has them: batch lookups gain 1.4x at 128 MB and 2x at
/// 1.2 GB, and nothing below the size of the L2 cache. WebAssembly has no pages to map: all of its memory is the allocator's.
const HUGE_FROM_BYTES: usize = if cfg!(target_family = "wasm") { usize::MAX } else { 4 << 20 };
/// Bytes of a huge page.
const HUGE_PAGE_BYTES: u64 = 2 << 20;
/// Bytes that the kernel supplies in one call: two huge pages.
#[cfg(target_os = "linux")]
const SUPPLIED_AT_ONCE: usize = 4 << 20;

/// Up to this size the constructor has memory supplied (0.3 ms a MB); beyond it, the first batch that is large enough
/// to touch most huge pages does.
const SUPPLIED_UP_TO_BYTES: usize = 1 << 30;
/// A batch is large enough if it has a key for each 64 KiB, 32 for a huge page.
const BYTES_PER_WRITE: usize = 1 << 16;

/// No machine maps more than this (47 address bits); a larger request needs no system call.
pub const ADDRESSABLE_BYTES: u64 = 1 << 46;

#[derive(Clone, Copy)]
#[repr(align(64))]
#[allow(dead_code)] // read through a pointer to its words
struct Line([u64; LINE_WORDS]);

enum Backing {
    Lines { _owner: Vec<Line> },
    Pages { owner: MmapMut, supplied: bool },
    ReadOnlyFile { _owner: Arc<Mmap>, checksum: Option<u32> },
    WritableFile { owner: MmapMut, process: u32 },
}

impl Backing {
    /// The backing that this process may write. A forked child shares a writable file with its parent and does not have
    /// its lock; for ordinary memory the check is one comparison.
    #[inline(always)]
    fn is_ours(&self) -> bool {
        matches!(self, Backing::Lines { .. } | Backing::Pages { .. }) || self.is_written_here()
    }

    #[cold]
    fn is_written_here(&self) -> bool {
        matches!(self, Backing::WritableFile { process, .. } if *process == std::process::id())
    }
}

/// A fixed run of 64-bit words, 64-byte aligned, whole lines long.
pub struct Memory {
    words: NonNull<u64>,
    len: usize,
    backing: Backing,
}

// SAFETY: the words are owned by `backing` (or by the mapping it holds) and reached only through
// `&self` for reading and `&mut self` for writing, as for a Box<[u64]>.
unsafe impl Send for Memory {}
// SAFETY: as above; shared access is read-only.
unsafe impl Sync for Memory {}

fn needs(bytes: u64) -> Error {
    Error::Memory(format!(
        "the filter needs {bytes} bytes, which this machine cannot give; lower the capacity or raise the fpr"
    ))
}

impl Memory {
    /// The only constructor. Every structure has a memory, so the instruction set is chosen here, and single lookups
    /// need not check whether it was ([`Isa::is_vector`]).
    fn from_backing(words: NonNull<u64>, len: usize, backing: Backing) -> Self {
        let _ = Isa::current();
        Memory { words, len, backing }
    }

    /// Zeroed memory for at least `words` words, rounded up to whole lines.
    pub fn zeroed(words: u64) -> Result<Self> {
        let mut memory = Self::allocate_unsupplied(words)?;
        if memory.bytes().len() <= SUPPLIED_UP_TO_BYTES {
            memory.expect_writes(usize::MAX);
        }
        Ok(memory)
    }

    /// A copy of whole words.
    pub fn copy_of(bytes: &[u8]) -> Result<Self> {
        let mut memory = Self::zeroed(bytes.len() as u64 / 8)?;
        memory.copy_from_bytes(bytes)?;
        Ok(memory)
    }

    /// [`Memory::zeroed`] for words that are about to be written once each: the kernel supplies huge pages meanwhile,
    /// and blocks no other thread from mapping memory.
    pub(crate) fn allocate_unsupplied(words: u64) -> Result<Self> {
        let lines = words.max(1).div_ceil(LINE_WORDS as u64);
        let bytes = lines.saturating_mul(LINE_BYTES as u64);
        let size = usize::try_from(bytes).map_err(|_| needs(bytes))?;
        if bytes > ADDRESSABLE_BYTES {
            return Err(needs(bytes));
        }
        if size >= HUGE_FROM_BYTES { Self::pages(size) } else { Self::lines(size / LINE_BYTES) }
    }

    fn lines(lines: usize) -> Result<Self> {
        let mut owner: Vec<Line> = Vec::new();
        owner.try_reserve_exact(lines).map_err(|_| needs((lines * LINE_BYTES) as u64))?;
        owner.resize(lines, Line([0; LINE_WORDS]));
        let words = NonNull::from(owner.as_mut_slice()).cast();
        Ok(Self::from_backing(words, lines * LINE_WORDS, Backing::Lines { _owner: owner }))
    }

    fn pages(bytes: usize) -> Result<Self> {
        let mut owner = MmapMut::map_anon(bytes).map_err(|_| needs(bytes as u64))?;
        // Advice only: a kernel without huge pages serves small ones.
        #[cfg(target_os = "linux")]
        let _ = owner.advise(memmap2::Advice::HugePage);
        let words = NonNull::from(&mut owner[..]).cast();
        Ok(Self::from_backing(words, bytes / 8, Backing::Pages { owner, supplied: false }))
    }

    /// Has the kernel supply all pages now, if `writes` random writes are about to touch them.
    ///
    /// Adding reads before it writes. The kernel answers the read of an untouched huge page with a shared page of
    /// zeros, and the write with 4 KiB copies: 120 ns per key more while a filter of 126 MB fills, and the huge pages are
    /// lost (200 for 100 ns per key afterwards). Several threads also interrupt each other at every such page.
    pub fn expect_writes(&mut self, writes: usize) {
        if let Backing::Pages { owner, supplied } = &mut self.backing
            && !*supplied
            && writes >= owner.len() / BYTES_PER_WRITE
        {
            *supplied = true;
            // Advice only: kernels before 5.14 go on supplying pages one by one. The kernel blocks all other threads
            // from mapping memory until the call ends, 3 s for 240 MB on a virtual machine whose host supplies its
            // pages; with slices, they wait for one slice.
            #[cfg(target_os = "linux")]
            for start in (0..owner.len()).step_by(SUPPLIED_AT_ONCE) {
                let len = SUPPLIED_AT_ONCE.min(owner.len() - start);
                if owner.advise_range(memmap2::Advice::PopulateWrite, start, len).is_err() {
                    break;
                }
            }
        }
    }

    /// Adds zeroed words behind the present ones, up to `words` rounded up to whole lines, or to whole huge pages. On Linux
    /// pages are moved rather than copied, so that a large memory never exists twice. After an error nothing has changed.
    ///
    /// The kernel aligns only mappings of whole huge pages, and splits the huge pages of one that it moves to an address
    /// that is not aligned: a bank of 63 MB kept 22 of them.
    pub(crate) fn lengthen(&mut self, words: u64) -> Result<()> {
        if self.is_read_only() {
            return Err(Error::read_only());
        }
        let is_huge = words >= (HUGE_FROM_BYTES / 8) as u64;
        let words =
            if is_huge { words.div_ceil(HUGE_PAGE_BYTES / 8).saturating_mul(HUGE_PAGE_BYTES / 8) } else { words };
        #[cfg(target_os = "linux")]
        if let Backing::Pages { owner, supplied } = &mut self.backing {
            let bytes = words.div_ceil(LINE_WORDS as u64).saturating_mul(LINE_BYTES as u64);
            let size =
                usize::try_from(bytes).ok().filter(|_| bytes <= ADDRESSABLE_BYTES).ok_or_else(|| needs(bytes))?;
            if size / 8 <= self.len {
                return Ok(());
            }
            // SAFETY: private anonymous memory, to which only `words` points; that is renewed before anyone reads it.
            unsafe { owner.remap(size, memmap2::RemapOptions::new().may_move(true)) }.map_err(|_| needs(bytes))?;
            *supplied = false;
            (self.words, self.len) = (NonNull::from(&mut owner[..]).cast(), size / 8);
            return Ok(());
        }
        if words <= self.len as u64 {
            return Ok(());
        }
        let mut longer = Self::allocate_unsupplied(words)?;
        longer.writable()?[..self.len].copy_from_slice(self.words());
        *self = longer;
        Ok(())
    }

    /// The words of a read-only file mapping from byte `offset` on, `len` words; `checksum` is the CRC-32 that they
    /// must have, if anything vouches for them.
    pub fn from_map(owner: &Arc<Mmap>, offset: usize, len: usize, checksum: Option<u32>) -> Result<Self> {
        let words = Self::locate(owner.as_ptr(), owner.len(), offset, len)?;
        Ok(Self::from_backing(words, len, Backing::ReadOnlyFile { _owner: owner.clone(), checksum }))
    }

    /// The words of a shared writable file mapping from byte `offset` on, `len` words.
    pub fn from_map_mut(mut owner: MmapMut, offset: usize, len: usize) -> Result<Self> {
        let words = Self::locate(owner.as_mut_ptr(), owner.len(), offset, len)?;
        Ok(Self::from_backing(words, len, Backing::WritableFile { owner, process: std::process::id() }))
    }

    fn locate(base: *const u8, size: usize, offset: usize, len: usize) -> Result<NonNull<u64>> {
        let end = len.checked_mul(8).and_then(|bytes| bytes.checked_add(offset));
        if end.is_none_or(|end| end > size) || !offset.is_multiple_of(LINE_BYTES) || !len.is_multiple_of(LINE_WORDS) {
            return Err(Error::format("a section lies outside of its file"));
        }
        // SAFETY: offset + 8 * len <= size was checked, so the pointer stays inside the mapping.
        let words = unsafe { base.add(offset) }.cast_mut().cast::<u64>();
        NonNull::new(words).ok_or_else(|| Error::format("the file could not be mapped"))
    }

    /// The words, for reading.
    #[inline(always)]
    pub fn words(&self) -> &[u64] {
        // SAFETY: `words` points at `len` initialised words owned by `backing`, 64-byte aligned;
        // `&self` forbids writers for the lifetime of the slice. A file mapping may be changed by
        // another process: the flock taken at open (container::file) makes this module's writers
        // exclusive, and any bit pattern is a valid u64.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr(), self.len) }
    }

    /// The words, for writing; `None` if the memory is a read-only mapping, or belongs to a parent process.
    #[inline(always)]
    pub fn words_mut(&mut self) -> Option<&mut [u64]> {
        if !self.backing.is_ours() {
            return None;
        }
        // SAFETY: as in `words`, and `&mut self` makes this the only reference.
        Some(unsafe { std::slice::from_raw_parts_mut(self.words.as_ptr(), self.len) })
    }

    /// [`Memory::words_mut`], or the error that explains why not.
    #[inline(always)]
    pub fn writable(&mut self) -> Result<&mut [u64]> {
        self.words_mut().ok_or_else(Error::read_only)
    }

    /// True if writing is not allowed: [`Memory::words_mut`] returns `None`.
    #[inline(always)]
    pub fn is_read_only(&self) -> bool {
        !self.backing.is_ours()
    }

    /// True for a mapping that the parent of this process writes.
    pub fn is_inherited(&self) -> bool {
        matches!(self.backing, Backing::WritableFile { .. }) && self.is_read_only()
    }

    /// True if the words are in a file.
    pub fn is_mapped(&self) -> bool {
        matches!(self.backing, Backing::ReadOnlyFile { .. } | Backing::WritableFile { .. })
    }

    /// Writes a shared mapping back to its file and waits for the disk; nothing else otherwise.
    pub fn sync(&self) -> std::io::Result<()> {
        match &self.backing {
            Backing::WritableFile { owner, .. } => owner.flush(),
            _ => Ok(()),
        }
    }

    /// Bytes of all words, in whole lines.
    pub fn len_bytes(&self) -> usize {
        self.len * 8
    }

    /// The expected CRC-32 of the bytes, if they are in a file that nobody changes.
    pub fn checksum(&self) -> Option<u32> {
        match self.backing {
            Backing::ReadOnlyFile { checksum, .. } => checksum,
            _ => None,
        }
    }

    /// The error for bytes of a mapped file with a wrong checksum.
    #[cold]
    pub fn checksum_error() -> Error {
        Error::format(
            "the cells of the mapped file do not match its checksum: it is damaged, or was written in place since it \
             was opened; open it again with verify=\"full\"",
        )
    }

    /// An owned copy. A file must have the right checksum, since a copy has none to check later.
    pub fn try_clone(&self) -> Result<Self> {
        if self.checksum().is_some_and(|wanted| wanted != crc32fast::hash(self.bytes())) {
            return Err(Self::checksum_error());
        }
        let mut copy = Memory::allocate_unsupplied(self.len as u64)?;
        if let Some(words) = copy.words_mut() {
            words.copy_from_slice(self.words());
        }
        Ok(copy)
    }

    /// The stored bytes: words in little-endian order.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the words are plain initialised memory; words are kept in little-endian order
        // (see cells::bits), so their bytes are the file's bytes on every machine.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast::<u8>(), self.len * 8) }
    }

    /// [`Memory::bytes`], for writing; `None` as for [`Memory::words_mut`].
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        let words = self.words_mut()?;
        // SAFETY: the bytes of these words, which `words_mut` lends to nobody else; any bytes are words.
        Some(unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), words.len() * 8) })
    }

    /// Overwrites the words with `bytes`, which must be exactly as long.
    pub fn copy_from_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() != self.len_bytes() {
            return Err(Error::format("the length of a section does not match its parameters"));
        }
        let words = self.words_mut().ok_or_else(|| Error::ReadOnly("the filter is read-only".into()))?;
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
            *word = u64::from_ne_bytes(*bytes);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_memory_keeps_its_words_and_adds_zeros() {
        let mut memory = Memory::allocate_unsupplied(8).unwrap();
        memory.words_mut().unwrap().fill(7);
        for words in [8, 24, 16, 300_000, 600_000, 700_000, 5_000_000] {
            let before = memory.words().len();
            memory.lengthen(words).unwrap();
            let after = memory.words().len();
            assert!(after as u64 >= words && after >= before && after.is_multiple_of(LINE_WORDS));
            assert!((memory.words().as_ptr() as usize).is_multiple_of(LINE_BYTES));
            assert!(memory.words()[..before].iter().all(|&word| word == 7));
            assert!(memory.words()[before..].iter().all(|&word| word == 0));
            memory.words_mut().unwrap().fill(7);
        }
        assert!(memory.lengthen(u64::MAX).is_err() && memory.words()[0] == 7);
    }

    #[test]
    fn memory_is_zeroed_aligned_and_whole_lines() {
        for words in [0, 1, 8, 9, 600_000] {
            let m = Memory::zeroed(words).unwrap();
            assert!(m.words().len() as u64 >= words && m.words().len().is_multiple_of(LINE_WORDS));
            assert!((m.words().as_ptr() as usize).is_multiple_of(LINE_BYTES));
            assert!(m.words().iter().all(|&w| w == 0));
        }
    }
}
