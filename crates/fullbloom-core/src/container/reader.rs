//! [`Reader`]: numbers from the head of a file.

use crate::error::{Error, Result};

/// A reader over bytes that never runs past them.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or_else(|| Error::format("the file is cut short"))?;
        self.0 = rest;
        Ok(*head)
    }

    pub(super) fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.take()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    pub(super) fn size(&mut self) -> Result<usize> {
        usize::try_from(self.u64()?).map_err(|_| Error::format("the file names a length beyond this machine's"))
    }

    pub(super) fn zero(&mut self) -> Result<()> {
        if self.u32()? == 0 { Ok(()) } else { Err(Error::format("a reserved field of the file is not zero")) }
    }
}
