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

/// Makes `cells` long enough for `end` bytes of `len` in the end. Each time it is at least doubled, so that a run that
/// arrives in a thousand pieces is copied twice at most, not a thousand times.
fn reserve(cells: &mut Vec<u8>, end: usize, len: usize) -> Result<()> {
    if end <= cells.capacity() {
        return Ok(());
    }
    let more = cells.capacity().saturating_mul(2).clamp(end, len) - cells.len();
    let reserved = cells.try_reserve_exact(more);
    reserved.map_err(|_| Error::Memory(format!("the filter needs {more} bytes more, which this machine cannot give")))
}

impl Cells {
    /// Zeros, there from the beginning.
    pub(super) fn zeroed(len: u64) -> Result<Self> {
        let mut cells = Self::with_len(len)?;
        cells.all()?;
        Ok(cells)
    }

    /// Bytes that are there.
    pub(super) fn of(arrived: Vec<u8>) -> Self {
        Cells { len: arrived.len(), arrived }
    }

    /// Bytes that have not arrived.
    pub(super) fn with_len(len: u64) -> Result<Self> {
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

    /// Zeros all.
    pub(super) fn clear(&mut self) {
        self.arrived.fill(0);
    }

    #[cold]
    fn wait_no_more(&mut self) -> Result<()> {
        reserve(&mut self.arrived, self.len, self.len)?;
        self.arrived.resize(self.len, 0);
        Ok(())
    }

    /// Writes bytes.
    pub(super) fn put(&mut self, at: usize, bytes: &[u8]) -> std::result::Result<(), PieceError> {
        if bytes.len() > self.len.saturating_sub(at) {
            return Err(PieceError::Long);
        }
        self.put_within(at, bytes).map_err(PieceError::Other)
    }

    fn put_within(&mut self, at: usize, bytes: &[u8]) -> Result<()> {
        let (there, end) = (self.arrived.len(), at + bytes.len());
        if at > there {
            return Err(Error::Format(format!(
                "invalid offset - {} bytes of this layer must be loaded before byte {at}, {there} are",
                at
            )));
        }
        reserve(&mut self.arrived, end, self.len)?;
        let (over, behind) = bytes.split_at((there - at).min(bytes.len()));
        self.arrived[at..at + over.len()].copy_from_slice(over);
        self.arrived.extend_from_slice(behind);
        Ok(())
    }

    /// At most [`PIECE`] bytes from `at` on.
    pub(super) fn piece(&self, at: usize) -> Cow<'_, [u8]> {
        let end = self.len.min(at.saturating_add(PIECE));
        match self.arrived.get(at..end.min(self.arrived.len())) {
            Some(piece) if !piece.is_empty() => Cow::Borrowed(piece),
            _ => Cow::Owned(vec![0; end.saturating_sub(at)]),
        }
    }

    /// A copy.
    pub(super) fn try_clone(&self) -> Result<Self> {
        let mut arrived = Vec::new();
        reserve(&mut arrived, self.arrived.len(), self.arrived.len())?;
        arrived.extend_from_slice(&self.arrived);
        Ok(Cells { arrived, len: self.len })
    }
}

/// Why a piece is refused.
pub(super) enum PieceError {
    /// Its number does not belong to a piece of this length.
    Number,
    /// No run begins before it.
    Nowhere,
    /// It exceeds its run.
    Long,
    /// As said.
    Other(Error),
}

/// Place of the first of `len` bytes that a piece with this `number` ends with.
pub(super) fn start_of(number: i64, len: usize) -> std::result::Result<i64, PieceError> {
    let start = number.checked_sub(len as i64).filter(|start| number > 0 && *start >= 0);
    start.map(|start| start - 1).ok_or(PieceError::Number)
}

/// Finds byte `at` in consecutive runs of these lengths: the run, and the place in it.
pub(super) fn place(lens: impl Iterator<Item = usize>, at: i64) -> Option<(usize, usize)> {
    let mut at = usize::try_from(at).ok()?;
    for (index, len) in lens.enumerate() {
        if at < len {
            return Some((index, at));
        }
        at -= len;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_bytes_are_zeros_and_take_no_memory() -> Result<()> {
        let mut cells = Cells::with_len(1 << 40)?;
        assert!(cells.put(0, &[1, 2, 3]).is_ok() && cells.put(1, &[9]).is_ok());
        assert_eq!((cells.arrived(), cells.get(1), cells.get(1 << 39)), (&[1, 9, 3][..], 9, 0));
        assert!(cells.put(5, &[1]).is_err());
        assert!(cells.arrived.capacity() < 64);
        Ok(())
    }

    #[test]
    fn a_run_in_many_pieces_is_moved_few_times() -> Result<()> {
        const STEP: usize = 1 << 10;
        let mut cells = Cells::with_len(1 << 20)?;
        let mut capacities = std::collections::BTreeSet::new();
        for at in (0..1 << 20).step_by(STEP) {
            assert!(cells.put(at, &[7; STEP]).is_ok());
            let capacity = cells.arrived.capacity();
            assert!(capacity <= (2 * (at + STEP)).min(1 << 20), "{capacity} for {at} bytes");
            capacities.insert(capacity);
        }
        assert!(capacities.len() <= 11, "{capacities:?}");
        Ok(())
    }

    #[test]
    fn places_are_found_in_consecutive_runs() {
        let at = |at| place([3, 2].into_iter(), at);
        assert_eq!([at(0), at(1), at(3), at(4)], [Some((0, 0)), Some((0, 1)), Some((1, 0)), Some((1, 1))]);
        assert_eq!([at(5), at(-1), at(i64::MIN), at(i64::MAX)], [None; 4]);
        let starts = [(4, 3), (3, 3), (0, 0), (-1, 0), (i64::MIN, 1)].map(|(number, len)| start_of(number, len).ok());
        assert_eq!(starts, [Some(0), Some(-1), None, None, None]);
    }
}
