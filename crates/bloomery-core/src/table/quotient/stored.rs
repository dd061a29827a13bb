//! A quotient filter as a container, and back.
//!
//! Opening looks at the header alone. Cells that no table could have are met by the operations:
//! they end, and answer "absent" or that the file is damaged.

use super::filter::QuotientFilter;
use super::geometry::Geometry;
use super::slots::Slots;
use crate::cells::Memory;
use crate::container::{Container, Header, Section, kind, tag};
use crate::error::{Error, Result};
use crate::registry::QUOTIENT;
use crate::structure::Loadable;
use crate::structure::load::{self, Load};

const KINDS: [u32; 3] = [kind::QUOTIENT_BITS, kind::QUOTIENT_OFFSETS, kind::QUOTIENT_SLOTS];
/// Parameters beside those of [`Load`].
const PARAMS: usize = 4;

/// The whole container of a filter.
pub(super) fn container(filter: &QuotientFilter) -> Container<'_> {
    let mut header = Header::new(QUOTIENT, 0, &filter.hasher);
    let geometry = filter.geometry();
    filter.load.describe(&mut header, 0);
    header.set(tag::QUOTIENT_BITS, 0, u64::from(geometry.quotient_bits));
    header.set(tag::REMAINDER_BITS, 0, u64::from(geometry.remainder_bits));
    header.set(tag::COUNTER_BITS, 0, u64::from(geometry.counter_bits));
    header.set(tag::USED_SLOTS, 0, filter.used);
    let memories = filter.slots.memories().into_iter().zip(KINDS);
    let sections = memories.map(|(memory, kind)| Section { kind, index: 0, bytes: memory.bytes() }).collect();
    Container { header, sections }
}

impl Loadable for QuotientFilter {
    fn load(
        header: &Header,
        memory: &mut dyn FnMut(u32, u32, u64) -> Result<Memory>,
        secret: Option<&[u8; 16]>,
    ) -> Result<Self> {
        let hasher = header.hasher(secret)?;
        let bits = |tag| header.get(tag, 0).map(|bits| u32::try_from(bits).unwrap_or(u32::MAX).min(1 << 16));
        let geometry = Geometry {
            quotient_bits: bits(tag::QUOTIENT_BITS)?,
            remainder_bits: bits(tag::REMAINDER_BITS)?,
            counter_bits: bits(tag::COUNTER_BITS)?,
        };
        let geometry = geometry.check().map_err(Error::as_format)?;
        let (load, used) = (Load::restore(header, 0)?, header.get(tag::USED_SLOTS, 0)?);
        if header.params.len() != load::PARAMS + PARAMS || header.scheme != 0 {
            return Err(Error::format("the file holds parameters that no QuotientFilter has; it is damaged"));
        }
        if used > geometry.limit() || load.added > used {
            return Err(Error::format(format!(
                "the file says that {used} slots hold {} fingerprints, its table may fill {}; it is damaged",
                load.added,
                geometry.limit()
            )));
        }
        let [bits, offsets, cells] = geometry.words();
        let memories = [memory(KINDS[0], 0, bits)?, memory(KINDS[1], 0, offsets)?, memory(KINDS[2], 0, cells)?];
        Ok(QuotientFilter { slots: Slots::over(geometry, memories)?, hasher, load, used })
    }
}
