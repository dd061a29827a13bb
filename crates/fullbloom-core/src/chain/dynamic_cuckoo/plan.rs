//! [`Plan`]: the parameters of the stages of a dynamic cuckoo filter.
//!
//! With s stages, all full, an absent key is compared with s times the fingerprints of one:
//!
//! ```text
//! rate = 1 - (1 - p)^s,  p = 1 - (1 - 1 / (2^f - 1))^(2 b a)  of one stage at load a
//! ```
//!
//! So a stage is sized for p = 1 - (1 - rate)^(1/s).

use crate::chain::stages::MAX_STAGES;
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::sizing::{any_of, check_fpr, each_of, format_rate};
use crate::structure::Filter;
use crate::table::CuckooFilter;
use crate::table::cuckoo::shape::{CuckooShape, FINGERPRINT_BITS};

/// The parameters of every stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Keys of one stage.
    pub capacity: u64,
    /// Bound on the rate of the whole.
    pub fpr: f64,
    /// Most stages, 1 to [`MAX_STAGES`].
    pub max_stages: u32,
    /// Buckets and fingerprints of a stage.
    pub shape: CuckooShape,
    /// Rate of one full stage. Stored, and written for each stage, since a logarithm may differ in its last bit from
    /// machine to machine.
    pub stage_fpr: f64,
}

impl Plan {
    /// Stages of the smallest tables with which `max_stages` of them, full, keep `fpr`; if `fingerprint_bits` is given,
    /// of tables with that width, which then determines `fpr`.
    pub fn for_capacity(
        capacity: u64,
        fpr: f64,
        max_stages: u64,
        bucket_size: u32,
        fingerprint_bits: Option<u32>,
    ) -> Result<Self> {
        check_fpr(fpr)?;
        let max_stages = check_stages(max_stages)?;
        let stages = f64::from(max_stages);
        let table = |rate, bits| CuckooShape::for_capacity(capacity, rate, bucket_size, bits, false);
        if fingerprint_bits.is_some() {
            let shape = table(fpr, fingerprint_bits)?;
            let stage_fpr = shape.fpr(capacity as f64);
            let fpr = any_of(stage_fpr, stages);
            check_telling(fpr, max_stages, &shape)?;
            return Ok(Plan { capacity, fpr, max_stages, shape, stage_fpr });
        }
        // Any invalid parameter except the rate is also invalid for the widest table.
        table(fpr, Some(*FINGERPRINT_BITS.end()))?;
        let stage_fpr = each_of(fpr, stages);
        let shape = table(stage_fpr, None).map_err(|error| match error {
            Error::Parameter(message) if max_stages > 1 => Error::Parameter(format!(
                "{message}; that is the share of each of {max_stages} stages in fpr {}: raise it or lower max_stages",
                format_rate(fpr)
            )),
            other => other,
        })?;
        Ok(Plan { capacity, fpr, max_stages, shape, stage_fpr })
    }

    /// An empty stage.
    pub(super) fn stage(&self, hasher: KeyHasher) -> Result<CuckooFilter> {
        CuckooFilter::new(self.shape, self.capacity, self.stage_fpr, hasher)
    }
}

/// Refuses a number of stages that no filter has.
pub(super) fn check_stages(max_stages: u64) -> Result<u32> {
    match u32::try_from(max_stages) {
        Ok(stages @ 1..=MAX_STAGES) => Ok(stages),
        _ => Err(Error::Parameter(format!("max_stages must be between 1 and {MAX_STAGES}, got {max_stages}"))),
    }
}

/// Refuses fingerprints so narrow that full stages would find every key.
fn check_telling(fpr: f64, max_stages: u32, shape: &CuckooShape) -> Result<()> {
    if fpr < 1.0 {
        return Ok(());
    }
    Err(Error::Parameter(format!(
        "fingerprint_bits must be larger, got {}: {max_stages} full stages of them would admit every key; or lower \
         max_stages",
        shape.fingerprint_bits
    )))
}

/// Keys that a stage takes before others are used.
pub(super) fn room(stage: &CuckooFilter) -> u64 {
    stage.capacity().saturating_sub(stage.num_added())
}
