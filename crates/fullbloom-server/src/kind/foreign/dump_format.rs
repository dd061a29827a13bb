//! [`DumpFormat`]: what the filters of `RedisBloom` dump and load in chunks.

use std::borrow::Cow;

use crate::fault::Result;

/// A filter in the dump format of `RedisBloom`.
pub trait DumpFormat {
    /// The header of its dump.
    fn header(&self) -> Vec<u8>;
    /// The chunk with this number, from 1 on, and the number under which it is loaded.
    fn chunk(&self, number: i64) -> Option<(i64, Cow<'_, [u8]>)>;
    /// Loads a chunk; an error changes nothing.
    fn load(&mut self, number: i64, bytes: &[u8]) -> Result<()>;
    /// The lines of `BF.DEBUG`.
    fn debug_lines(&self) -> Vec<String>;
    /// The number of tables or layers that a lookup visits.
    fn tables(&self) -> u64;
    /// Frees the space of removed keys.
    fn compact(&mut self) -> Result<()> {
        Ok(())
    }
}
