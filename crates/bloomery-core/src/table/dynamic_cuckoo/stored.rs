//! A dynamic cuckoo filter as a container, and back.
//!
//! Parameters and cells of stage i stand at index i, as those of a cuckoo filter do at index 0; what
//! all stages have in common stands at index 0xffff.

use super::DynamicCuckooFilter;
use super::plan::{Plan, check_stages};
use crate::cells::Memory;
use crate::container::{Container, Header, tag};
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::registry::DYNAMIC_CUCKOO;
use crate::sizing::check_fpr;
use crate::structure::Loadable;
use crate::table::CuckooFilter;
use crate::table::cuckoo::stored::{self, describe_shape, restore_shape};

/// Index of the parameters of the whole.
const WHOLE: u16 = 0xffff;
/// Parameters of the whole.
const WHOLE_PARAMS: usize = 3 + stored::SHAPE_PARAMS;

/// The whole container of a filter.
pub(super) fn container(filter: &DynamicCuckooFilter) -> Container<'_> {
    let mut header = Header::new(DYNAMIC_CUCKOO, 0, &filter.hasher);
    header.set(tag::CAPACITY, WHOLE, filter.plan.capacity);
    header.set_f64(tag::FPR, WHOLE, filter.plan.fpr);
    header.set(tag::MAX_STAGES, WHOLE, u64::from(filter.plan.max_stages));
    describe_shape(&filter.plan.shape, &mut header, WHOLE);
    let mut sections = Vec::new();
    for (index, stage) in (0u16..).zip(&filter.stages) {
        stored::describe(stage, &mut header, index);
        sections.push(stored::section(stage, u32::from(index)));
    }
    Container { header, sections }
}

/// The number of stages in a file, from its number of parameters.
fn count_stages(header: &Header, max_stages: u32) -> Result<u16> {
    let of_stages = header.params.len().saturating_sub(WHOLE_PARAMS);
    let stages = of_stages / stored::PARAMS;
    if !of_stages.is_multiple_of(stored::PARAMS) || header.scheme != 0 {
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
        hasher: KeyHasher,
        memory: &mut dyn FnMut(u32, u32, u64) -> Result<Memory>,
    ) -> Result<CuckooFilter> {
        let alike = restore_shape(header, index)? == self.shape
            && header.get(tag::CAPACITY, index)? == self.capacity
            && header.get_f64(tag::FPR, index)? == self.stage_fpr;
        if !alike {
            return Err(Error::format(format!("stage {index} of the file differs from the others; it is damaged")));
        }
        stored::restore(header, index, hasher, memory)
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
        let stages = stages.map(|index| plan.restore_stage(header, index, hasher, memory)).collect::<Result<_>>()?;
        Ok(Self::with_stages(plan, hasher, stages))
    }
}
