//! [`Cells`]: the bytes of a layer or a table, which may arrive in pieces.

use std::borrow::Cow;

use super::PIECE;
use crate::error::{Error, Result};

/// A number of bytes; those that have not arrived are zeros, and take no memory: a header that claims gigabytes costs
/// only the bytes that follow it.
#[derive(Default)]
pub struct Cells {
    arrived: Vec<u8>,
    len: usize,
}

fn room(cells: &mut Vec<u8>, len: usize) -> Result<()> {
    let more = len.saturating_sub(cells.len());
    let room = cells.try_reserve_exact(more);
    room.map_err(|_| Error::Memory(format!("the filter needs {more} bytes more, which this machine cannot give")))
}

impl Cells {
    /// Zeros, there from the beginning.
    pub(super) fn zeroed(len: u64) -> Result<Self> {
        let mut cells = Self::awaited(len)?;
        cells.all()?;
        Ok(cells)
    }

    /// Bytes that are there.
    pub(super) fn of(arrived: Vec<u8>) -> Self {
        Cells { len: arrived.len(), arrived }
    }

    /// Bytes that have not arrived.
    pub(super) fn awaited(len: u64) -> Result<Self> {
        match usize::try_from(len) {
            Ok(len) if len <= isize::MAX as usize => Ok(Cells { arrived: Vec::new(), len }),
            _ => Err(Error::Memory(format!("the filter needs {len} bytes, which no machine has"))),
        }
    }

    /// Number of bytes, including those that have not arrived.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes that have arrived.
    pub fn arrived(&self) -> &[u8] {
        &self.arrived
    }

    /// The byte at `at`.
    #[inline(always)]
    pub(super) fn get(&self, at: usize) -> u8 {
        self.arrived.get(at).copied().unwrap_or(0)
    }

    /// All, to be changed.
    #[inline(always)]
    pub(super) fn all(&mut self) -> Result<&mut [u8]> {
        if self.arrived.len() < self.len {
            self.wait_no_more()?;
        }
        Ok(&mut self.arrived)
    }

    #[cold]
    fn wait_no_more(&mut self) -> Result<()> {
        room(&mut self.arrived, self.len)?;
        self.arrived.resize(self.len, 0);
        Ok(())
    }

    /// Writes bytes; `at + bytes.len()` must be within the cells.
    fn put(&mut self, at: usize, bytes: &[u8]) -> Result<()> {
        let (there, end) = (self.arrived.len(), at + bytes.len());
        if at > there {
            return Err(Error::Format(format!(
                "invalid offset - {} bytes of this layer are to be loaded before byte {at}, {there} are",
                at
            )));
        }
        room(&mut self.arrived, end)?;
        let (over, behind) = bytes.split_at((there - at).min(bytes.len()));
        self.arrived[at..at + over.len()].copy_from_slice(over);
        self.arrived.extend_from_slice(behind);
        Ok(())
    }

    /// At most [`PIECE`] bytes from `at` on.
    fn piece(&self, at: usize) -> Cow<'_, [u8]> {
        let end = self.len.min(at.saturating_add(PIECE));
        match self.arrived.get(at..end.min(self.arrived.len())) {
            Some(piece) if !piece.is_empty() => Cow::Borrowed(piece),
            _ => Cow::Owned(vec![0; end.saturating_sub(at)]),
        }
    }

    /// A copy.
    pub(super) fn try_clone(&self) -> Result<Self> {
        let mut arrived = Vec::new();
        room(&mut arrived, self.arrived.len())?;
        arrived.extend_from_slice(&self.arrived);
        Ok(Cells { arrived, len: self.len })
    }
}

/// Finds byte `at` in several consecutive runs of cells: the run, and the place in it.
fn place<'a>(runs: impl Iterator<Item = &'a Cells>, at: i64) -> Option<(usize, usize)> {
    let mut at = usize::try_from(at).ok()?;
    for (index, run) in runs.enumerate() {
        if at < run.len {
            return Some((index, at));
        }
        at -= run.len;
    }
    None
}

/// The piece of these runs with this `number`, and the number of the next one; `None` at the end.
pub(super) fn piece_of<'a>(runs: impl Iterator<Item = &'a Cells> + Clone, number: i64) -> Option<(i64, Cow<'a, [u8]>)> {
    let (index, at) = place(runs.clone(), number.checked_sub(1)?)?;
    let piece = runs.into_iter().nth(index)?.piece(at);
    Some((number + piece.len() as i64, piece))
}

/// Why a piece is refused.
pub(super) enum Refused {
    /// Its number does not belong to a piece of this length.
    Number,
    /// No run begins before it.
    Nowhere,
    /// It exceeds its run.
    Long,
    /// As said.
    Other(Error),
}

/// Loads the piece with this `number`.
pub(super) fn take_piece(cells: &mut [&mut Cells], number: i64, bytes: &[u8]) -> std::result::Result<(), Refused> {
    let start = number.checked_sub(bytes.len() as i64).filter(|start| number > 0 && *start >= 0);
    let start = start.ok_or(Refused::Number)?;
    let (index, at) = place(cells.iter().map(|run| &**run), start - 1).ok_or(Refused::Nowhere)?;
    if bytes.len() > cells[index].len - at {
        return Err(Refused::Long);
    }
    cells[index].put(at, bytes).map_err(Refused::Other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_bytes_are_zeros_and_take_no_memory() -> Result<()> {
        let mut cells = Cells::awaited(1 << 40)?;
        cells.put(0, &[1, 2, 3])?;
        cells.put(1, &[9])?;
        assert_eq!((cells.arrived(), cells.get(1), cells.get(1 << 39)), (&[1, 9, 3][..], 9, 0));
        assert!(cells.put(5, &[1]).is_err());
        assert!(cells.arrived.capacity() < 64);
        Ok(())
    }

    #[test]
    fn pieces_are_found_by_their_numbers() -> Result<()> {
        let mut runs = [Cells::zeroed(3)?, Cells::awaited(2)?];
        runs[0].all()?.copy_from_slice(&[1, 2, 3]);
        let at = |number| piece_of(runs.iter(), number).map(|(next, piece)| (next, piece.into_owned()));
        assert_eq!(at(1), Some((4, vec![1, 2, 3])));
        assert_eq!(at(2), Some((4, vec![2, 3])));
        assert_eq!(at(4), Some((6, vec![0, 0])));
        assert_eq!([at(6), at(0), at(-1), at(i64::MIN), at(i64::MAX)], [None, None, None, None, None]);
        Ok(())
    }
}
