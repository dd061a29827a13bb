//! [`Foreign`]: any filter in the bytes of another program.

use super::bits::BitFilter;
use super::formats::{self, Contents, Format};
use super::redisbloom::bloom::Chain;
use super::redisbloom::cuckoo::Cuckoo;
use super::redisbloom::dump;
use super::rules::Range;
use super::source::Source;
use super::static_filter::StaticFilter;
use crate::error::{Error, Result};

/// What the caller says about bytes.
#[derive(Clone, Default)]
pub struct Description<'a> {
    /// Format; detected by default.
    pub format: Option<&'static Format>,
    /// Name of the type of keys.
    pub key_type: Option<&'a str>,
    /// Bits and hashes of a filter whose bytes do not state them.
    pub shape: Option<Range>,
    /// Hash of the block of a filter whose elements are hashed with it.
    pub block_hash: Option<[u8; 32]>,
    /// Most bytes of cells, now and when the filter grows.
    pub max_bytes: Option<u64>,
}

/// A filter, by its class.
pub enum Foreign {
    /// Bits.
    Bits(BitFilter),
    /// Built of all its keys at once.
    Static(StaticFilter),
    /// A Bloom filter that grows.
    Layers(Chain),
    /// A cuckoo filter that grows.
    Tables(Cuckoo),
}

impl Description<'_> {
    /// The format of the bytes.
    pub fn find_format(&self, source: &Source<'_>) -> Result<&'static Format> {
        let len = source.len();
        let unknown = || {
            let detected = formats::ALL.iter().filter(|format| format.is_detected);
            let names: Vec<_> = detected.map(|format| format.name).collect();
            Error::format(format!(
                "the lengths that these {len} bytes state fit in none of the formats {}; they are damaged, or of another \
                 program (format= says why they are not of that format)",
                names.join(", ")
            ))
        };
        self.format.or_else(|| formats::detect(source.head(), len)).ok_or_else(unknown)
    }

    /// The filter in `source`, which is read once.
    pub fn read(&self, source: Source<'_>) -> Result<Foreign> {
        let format = self.find_format(&source)?;
        let (key_type, max_bytes) = (format.key_type(self.key_type)?, self.max_bytes.unwrap_or(u64::MAX));
        if self.shape.is_some() && !format.is_bare() {
            let why = "num_bits and num_hashes are for bits alone";
            return Err(Error::parameter(format!("{why}; bytes of format {:?} state them", format.name)));
        }
        if self.block_hash.is_some() && !format.needs_block_hash() {
            let why = "block_hash is for filters of a block of Bitcoin";
            return Err(Error::parameter(format!("{why}, not for format {:?}", format.name)));
        }
        Ok(match &format.contents {
            Contents::Bits(_) => Foreign::Bits(BitFilter::read(format, key_type, source, self.shape, max_bytes)?),
            Contents::Fingerprints(_) | Contents::GolombSet => {
                Foreign::Static(StaticFilter::read(format, key_type, source, self.block_hash, max_bytes)?)
            }
            Contents::Layers => Foreign::Layers(dump::read(source, max_bytes)?),
            Contents::Tables => Foreign::Tables(dump::read(source, max_bytes)?),
        })
    }
}
