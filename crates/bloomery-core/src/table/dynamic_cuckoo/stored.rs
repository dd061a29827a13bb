//! A dynamic cuckoo filter as a container, and back.
//!
//! Parameters and cells of stage i stand at index i, as those of a cuckoo filter do at index 0; what
//! all stages have in common stands at index 0xffff.

use super::DynamicCuckooFilter;
use super::plan::{Plan, check_stages};
use crate::cells::Memory;
use crate::container::{Container, Header, Section, tag};
use crate::error::{Error, Result};
use crate::registry::DYNAMIC_CUCKOO;
use crate::sizing::check_fpr;
use crate::structure::{Declared, Filter, Loadable, load};
use crate::table::{CuckooFilter, CuckooShape};

/// Index of the parameters of the whole.
const WHOLE: u16 = 0xffff;
/// Parameters of the whole.
const WHOLE_PARAMS: usize = 7;
/// Parameters of a stage.
const STAGE_PARAMS: usize = load::PARAMS + CuckooFilter::STORED.len();

/// Writes a shape under `index`.
fn describe_shape(shape: &CuckooShape, header: &mut Header, index: u16) {
    header.set(tag::NUM_BUCKETS, index, shape.buckets);
    header.set(tag::BUCKET_SIZE, index, u64::from(shape.bucket_size));
    header.set(tag::FINGERPRINT_BITS, index, u64::from(shape.fingerprint_bits));
    header.set(tag::SEMI_SORT, index, u64::from(shape.semi_sort));
}

/// Reads back what [`describe_shape`] wrote, checked as a constructor would.
fn restore_shape(header: &Header, index: u16) -> Result<CuckooShape> {
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

/// The whole container of a filter.
pub(super) fn container(filter: &DynamicCuckooFilter) -> Container<'_> {
    let mut header = Header::new(DYNAMIC_CUCKOO, 0, &filter.hasher);
    header.set(tag::CAPACITY, WHOLE, filter.plan.capacity);
    header.set_f64(tag::FPR, WHOLE, filter.plan.fpr);
    header.set(tag::MAX_STAGES, WHOLE, u64::from(filter.plan.max_stages));
    describe_shape(&filter.plan.shape, &mut header, WHOLE);
    let mut sections = Vec::new();
    for (index, stage) in (0u16..).zip(&filter.stages) {
        let part = stage.container();
        header.nest(index, &part.header);
        sections.extend(part.sections.into_iter().map(|section| Section { index: u32::from(index), ..section }));
    }
    Container { header, sections }
}

/// The number of stages in a file, from its number of parameters.
fn count_stages(header: &Header, max_stages: u32) -> Result<u16> {
    let of_stages = header.params.len().saturating_sub(WHOLE_PARAMS);
    let stages = of_stages / STAGE_PARAMS;
    if !of_stages.is_multiple_of(STAGE_PARAMS) || header.scheme != 0 {
        return Err(Error::format("the file holds parameters that no DynamicCuckooFilter has; it is damaged"));
    }
    match u16::try_from(stages) {
        Ok(number) if number > 0 && u32::from(number) <= max_stages => Ok(number),
        _ => Err(Error::format(format!("the file holds {stages} stages and allows 1 to {max_stages}; it is damaged"))),
    }
}

impl Plan {
    /// What stands at the index of the whole; the rate of a stage stands at the first one.
    fn restore(header: &Header) -> Result<Self> {
        let plan = Plan {
            capacity: header.get(tag::CAPACITY, WHOLE)?,
            fpr: header.get_f64(tag::FPR, WHOLE)?,
            max_stages: check_stages(header.get(tag::MAX_STAGES, WHOLE)?).map_err(Error::as_format)?,
            shape: restore_shape(header, WHOLE)?,
            stage_fpr: header.get_f64(tag::FPR, 0)?,
        };
        check_fpr(plan.fpr).map_err(Error::as_format)?;
        Ok(plan)
    }

    /// Stage `index`, which must be as planned. Its cells are asked for after that is known.
    fn restore_stage(
        &self,
        header: &Header,
        index: u16,
        memory: &mut dyn FnMut(u32, u32, u64) -> Result<Memory>,
        secret: Option<&[u8; 16]>,
    ) -> Result<CuckooFilter> {
        let alike = restore_shape(header, index)? == self.shape
            && header.get(tag::CAPACITY, index)? == self.capacity
            && header.get_f64(tag::FPR, index)? == self.stage_fpr;
        if !alike {
            return Err(Error::format(format!("stage {index} of the file differs from the others; it is damaged")));
        }
        CuckooFilter::load(&header.part(index), &mut |kind, _, words| memory(kind, u32::from(index), words), secret)
    }
}

impl Loadable for DynamicCuckooFilter {
    fn load(
        header: &Header,
        memory: &mut dyn FnMut(u32, u32, u64) -> Result<Memory>,
        secret: Option<&[u8; 16]>,
    ) -> Result<Self> {
        let hasher = header.hasher(secret)?;
        let plan = Plan::restore(header)?;
        let stages = 0..count_stages(header, plan.max_stages)?;
        let stages = stages.map(|index| plan.restore_stage(header, index, memory, secret)).collect::<Result<_>>()?;
        Ok(Self::with_stages(plan, hasher, stages))
    }
}
