//! [`Parts`]: the cells of a structure, copied a slice at a time while keys are added between the slices.

use std::ops::Range;

use crate::cells::Memory;
use crate::container::{Container, Header, Section, kind};
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::structure::Loadable;

/// Bytes of a word.
const WORD: usize = 8;
/// Bytes of a page of memory, or fewer.
const PAGE: usize = 4096;

/// The copy of a section, in the form in which the structure holds its cells.
enum Store {
    Memory(Memory),
    /// Cells of another program's filter: the supplied bytes.
    Bytes(Vec<u8>),
}

struct Part {
    kind: u32,
    index: u32,
    len: usize,
    store: Store,
}

/// Memory for every section of a container. Bytes are numbered over all sections.
pub struct Parts(Vec<Part>);

fn change_error() -> Error {
    Error::format("the sections of the structure changed while it was copied")
}

impl Part {
    fn new(section: &Section<'_>) -> Result<Self> {
        let (kind, index, len) = (section.kind, section.index, section.bytes.len());
        let store = if kind == kind::FOREIGN {
            let mut bytes = Vec::new();
            let room = bytes.try_reserve_exact(len);
            room.map_err(|_| Error::Memory(format!("a copy needs {len} bytes, which this machine cannot give")))?;
            Store::Bytes(bytes)
        } else {
            Store::Memory(Memory::allocate_unsupplied(len.div_ceil(WORD) as u64)?)
        };
        Ok(Part { kind, index, len, store })
    }

    /// The bytes that are supplied.
    fn bytes(&mut self) -> Result<&mut [u8]> {
        match &mut self.store {
            Store::Memory(memory) => memory.bytes_mut().ok_or_else(Error::read_only),
            Store::Bytes(bytes) => Ok(bytes),
        }
    }
}

impl Parts {
    /// Memory for the sections of `container`; nothing is copied yet.
    pub fn new(container: &Container<'_>) -> Result<Self> {
        container.sections.iter().map(Part::new).collect::<Result<_>>().map(Parts)
    }

    /// Bytes of all sections.
    pub fn len(&self) -> usize {
        self.0.iter().map(|part| part.len).sum()
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Hands `work` each section that has bytes in `range`, and which of its own these are.
    fn each(
        &mut self,
        range: Range<usize>,
        mut work: impl FnMut(usize, &mut Part, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let mut start = 0;
        for (section, part) in self.0.iter_mut().enumerate() {
            let (from, to) = (range.start.max(start), range.end.min(start + part.len));
            if from < to {
                work(section, part, from - start..to - start)?;
            }
            start += part.len;
        }
        Ok(())
    }

    /// Has the kernel supply the memory of the next bytes, so that copying them waits for no page.
    pub fn supply(&mut self, range: Range<usize>) -> Result<()> {
        self.each(range, |_, part, range| {
            match &mut part.store {
                Store::Bytes(bytes) => bytes.resize(range.end.max(bytes.len()), 0),
                Store::Memory(_) => {
                    part.bytes()?[range].iter_mut().step_by(PAGE).for_each(|byte| *byte = std::hint::black_box(0));
                }
            }
            Ok(())
        })
    }

    /// Copies the bytes in `range`, which were supplied, from the sections of `container`, which are as long as they were.
    pub fn copy(&mut self, container: &Container<'_>, range: Range<usize>) -> Result<()> {
        self.each(range, |section, part, range| {
            let from = container.sections.get(section).and_then(|section| section.bytes.get(range.clone()));
            let to = part.bytes()?.get_mut(range).ok_or_else(change_error)?;
            to.copy_from_slice(from.ok_or_else(change_error)?);
            Ok(())
        })
    }

    /// Copies one word of a section, unless it is still to be supplied.
    #[inline]
    pub fn copy_word(&mut self, container: &Container<'_>, section: usize, word: usize) -> Result<()> {
        let from = container.sections.get(section).and_then(|section| section.bytes.as_chunks::<WORD>().0.get(word));
        let to = self.0.get_mut(section).ok_or_else(change_error)?.bytes()?.as_chunks_mut::<WORD>().0.get_mut(word);
        let from = from.ok_or_else(change_error)?;
        to.into_iter().for_each(|to| *to = *from);
        Ok(())
    }

    /// The structure with these cells; `header` and `hasher` are those of the original at the moment of the last copied
    /// word.
    pub fn load<F: Loadable>(mut self, header: &Header, hasher: KeyHasher) -> Result<F> {
        F::load(header, hasher, &mut |kind, index, words| match self.take(kind, index)?.store {
            Store::Memory(memory) if memory.words().len() as u64 >= words => Ok(memory),
            _ => Err(change_error()),
        })
    }

    fn take(&mut self, kind: u32, index: u32) -> Result<Part> {
        let at = self.0.iter().position(|part| (part.kind, part.index) == (kind, index)).ok_or_else(change_error)?;
        Ok(self.0.swap_remove(at))
    }

    /// The cells of another program's filter.
    pub fn take_foreign(&mut self, index: u32) -> Result<Vec<u8>> {
        match self.take(kind::FOREIGN, index)? {
            Part { store: Store::Bytes(bytes), len, .. } if bytes.len() == len => Ok(bytes),
            _ => Err(change_error()),
        }
    }
}
