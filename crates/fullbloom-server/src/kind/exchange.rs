//! [`Exchange`]: a filter as another program keeps it, on its way there and back.

use std::borrow::Cow;

use crate::fault::Result;

/// What goes to the other program, and comes from it.
pub trait Exchange {
    /// The header of its dump.
    fn header(&self) -> Vec<u8>;
    /// The piece that is asked for by a number, from 1 on, and the number that it is loaded under.
    fn piece(&self, number: i64) -> Option<(i64, Cow<'_, [u8]>)>;
    /// Takes in a piece; on an error nothing has changed.
    fn load(&mut self, number: i64, bytes: &[u8]) -> Result<()>;
    /// What the other program tells who looks for faults.
    fn lines(&self) -> Vec<String>;
    /// Tables or layers that a look-up asks.
    fn tables(&self) -> u64;
    /// Makes room where keys were removed.
    fn compact(&mut self) -> Result<()> {
        Ok(())
    }
}
