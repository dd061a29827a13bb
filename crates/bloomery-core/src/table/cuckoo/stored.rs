//! A cuckoo filter as a container, and back; alone or as a stage of a chain.

use super::CuckooFilter;
use super::moves::Stash;
use super::shape::CuckooShape;
use crate::cells::Memory;
use crate::container::{Container, Header, Section, kind, tag};
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::registry::CUCKOO;
use crate::structure::Loadable;
use crate::structure::load::{self, Load};

/// Parameters that [`describe_shape`] writes.
pub(crate) const SHAPE_PARAMS: usize = 4;
/// Parameters that [`describe`] writes.
pub(crate) const PARAMS: usize = load::PARAMS + SHAPE_PARAMS + 2;

/// Writes a shape under `index`.
pub(crate) fn describe_shape(shape: &CuckooShape, header: &mut Header, index: u16) {
    header.set(tag::NUM_BUCKETS, index, shape.buckets);
    header.set(tag::BUCKET_SIZE, index, u64::from(shape.bucket_size));
    header.set(tag::FINGERPRINT_BITS, index, u64::from(shape.fingerprint_bits));
    header.set(tag::SEMI_SORT, index, u64::from(shape.semi_sort));
}

/// Reads back what [`describe_shape`] wrote, checked as a constructor would.
pub(crate) fn restore_shape(header: &Header, index: u16) -> Result<CuckooShape> {
    let small = |tag: u16| header.get(tag, index).map(|value| u32::try_from(value).unwrap_or(u32::MAX));
    let semi_sort = small(tag::SEMI_SORT)?;
    if semi_sort > 1 {
        return Err(Error::format("the file says neither yes nor no of semi-sorting; it is damaged"));
    }
    let shape = CuckooShape {
        buckets: header.get(tag::NUM_BUCKETS, index)?,
        bucket_size: small(tag::BUCKET_SIZE)?,
        fingerprint_bits: small(tag::FINGERPRINT_BITS)?,
        semi_sort: semi_sort == 1,
    };
    shape.check().map_err(Error::as_format)
}

/// Writes the parameters of a table under `index`.
pub(crate) fn describe(filter: &CuckooFilter, header: &mut Header, index: u16) {
    filter.load.describe(header, index);
    describe_shape(&filter.shape, header, index);
    header.set(tag::STASH_FINGERPRINT, index, filter.stash.fp);
    header.set(tag::STASH_BUCKET, index, filter.stash.bucket);
}

/// The cells of a table under `index`.
pub(crate) fn section(filter: &CuckooFilter, index: u32) -> Section<'_> {
    Section { kind: kind::FINGERPRINTS, index, bytes: filter.memory.bytes() }
}

/// Reads back what [`describe`] wrote; the cells are asked for once all else is sound.
pub(crate) fn restore(
    header: &Header,
    index: u16,
    hasher: KeyHasher,
    memory: &mut dyn FnMut(u32, u32, u64) -> Result<Memory>,
) -> Result<CuckooFilter> {
    let (shape, load) = (restore_shape(header, index)?, Load::restore(header, index)?);
    let stash = Stash { fp: header.get(tag::STASH_FINGERPRINT, index)?, bucket: header.get(tag::STASH_BUCKET, index)? };
    if stash.fp >> shape.fingerprint_bits != 0 || stash.bucket >= shape.buckets || (stash.fp == 0 && stash.bucket != 0)
    {
        return Err(Error::format("the file's stash lies outside of its table; it is damaged"));
    }
    if load.added > shape.slots() + u64::from(stash.fp != 0) {
        return Err(Error::format(format!(
            "the file says that {} slots hold {} fingerprints; it is damaged",
            shape.slots(),
            load.added
        )));
    }
    let memory = memory(kind::FINGERPRINTS, u32::from(index), shape.words())?;
    if has_bits_past(memory.words(), shape.bits()) {
        return Err(Error::format("the file has bits set beyond its buckets; it is damaged"));
    }
    let mut filter = CuckooFilter::with_memory(shape, load, hasher, memory)?;
    filter.stash = stash;
    Ok(filter)
}

/// True when a bit from number `bits` on is set; at most a few words lie there.
fn has_bits_past(words: &[u64], bits: u64) -> bool {
    let (last, used) = ((bits / 64) as usize, bits % 64);
    let partial = words.get(last).is_some_and(|word| u64::from_le(*word) >> used != 0);
    partial || words.iter().skip(last + 1).any(|&word| word != 0)
}

/// The whole container of a filter.
pub(crate) fn container(filter: &CuckooFilter) -> Container<'_> {
    let mut header = Header::new(CUCKOO, 0, &filter.hasher);
    describe(filter, &mut header, 0);
    Container { header, sections: vec![section(filter, 0)] }
}

impl Loadable for CuckooFilter {
    fn load(
        header: &Header,
        memory: &mut dyn FnMut(u32, u32, u64) -> Result<Memory>,
        secret: Option<&[u8; 16]>,
    ) -> Result<Self> {
        let hasher = header.hasher(secret)?;
        if header.params.len() != PARAMS || header.scheme != 0 {
            return Err(Error::format("the file holds parameters that no CuckooFilter has; it is damaged"));
        }
        restore(header, 0, hasher, memory)
    }
}
