//! Sizing: m, k and the false-positive rate. One law a layout, and the inverse by search.
//!
//! "Honest" means: sized for (n, p), a filter has a rate of at most p at n, by its own law and for the integer k.
//! Every rate of every structure is a function of this module; structures search for the smallest shape that keeps it.
//!
//! * [`classic`]: k throws over all cells; [`occupancy`] its exact rate;
//! * [`lanes`]: k distinct or separate cells in lanes of a block (blocked, split, partitioned);
//!   [`blocked`] sizes lines of scheme `columns` by it;
//! * [`derived`]: positions that follow from each other, as double hashing has them;
//! * [`narrow`]: hashes of few bits;
//! * [`counters`]: cells that count;
//! * [`fingerprints`]: tables of fingerprints (quotient, d-left, cuckoo, prefix);
//! * [`cascade`]: levels over a closed world;
//! * [`golomb`]: gaps of sorted values in Rice codes;
//! * [`invertible`]: sums of keys, from which these come out again;
//! * [`peeled`]: cells of static filters, of which each key's xor to a value;
//! * [`ribbon`]: slots, result bits and failures of ribbons;
//! * [`signatures`]: superimposed codes, and their false drops;
//! * [`stable`]: cells that decay, where the rate does not depend on the number of keys;
//! * [`zone`]: remainders of integers, which distinguish few of them from all others;
//! * [`chain`]: filters asked one after the other, and the stages of one that grows;
//! * [`estimates`]: how many keys there are, and how far off that may be; [`whole`]: keys come in units.
//!
//! [`any_of`] and its kin are what they are made from; [`law`] hands them on by name.

pub mod blocked;
pub mod cascade;
pub mod chain;
pub mod classic;
pub mod counters;
pub mod derived;
pub mod estimates;
pub mod fingerprints;
pub mod golomb;
pub mod invertible;
pub mod lanes;
mod laws;
pub mod narrow;
pub mod occupancy;
pub mod peeled;
pub mod ribbon;
pub mod signatures;
pub mod stable;
pub mod whole;
pub mod zone;

pub use laws::law;

use crate::error::{Error, Result};

/// A law: rate and fill of one shape as functions of the number of keys.
pub trait Law {
    /// Probability that an absent key is found when `items` distinct keys are in.
    fn fpr(&self, items: f64) -> f64;
    /// Expected share of set bits.
    fn fill(&self, items: f64) -> f64;
    /// The number of keys whose expected fill is `fill`; infinite at 1.
    fn items(&self, fill: f64) -> f64;
    /// Standard deviation of [`Law::items`] around the true number, to first order; infinite if that is.
    fn items_sd(&self, items: f64) -> f64;
    /// Standard deviation of the rate of one filter from the law at its fill. If a key may set any cells, the fill
    /// determines the rate.
    fn fpr_sd(&self, _items: f64) -> f64 {
        0.0
    }
    /// Number of blocks of cells; a key uses one of them.
    fn blocks(&self) -> u64 {
        1
    }
    /// The variance of the rates of single blocks.
    fn block_variance(&self, _items: f64) -> f64 {
        0.0
    }
    /// Number of keys that one more set cell represents.
    fn cell_worth(&self, items: f64) -> f64;

    /// [`Law::items`] of a fill, with its deviation: [`estimates`]. Both are infinite if all cells are set, since many
    /// numbers of keys are then equally plausible.
    fn estimate(&self, fill: f64) -> (f64, f64) {
        let items = self.items(fill);
        (items, whole::of_whole(self.items_sd(items).powi(2), self.cell_worth(items)).sqrt())
    }

    /// The keys behind this fill that were new when they were added.
    fn new_of_fill(&self, fill: f64) -> f64 {
        whole::new_among(self.items(fill), |items| self.fpr(items))
    }

    /// Rate at this fill.
    fn fpr_of_fill(&self, fill: f64) -> f64 {
        let items = self.items(fill);
        if items.is_finite() { self.fpr(items) } else { 1.0 }
    }
}

/// The lowest rate a filter of 64-bit hashes is built for, however few its keys.
pub const LEAST_FPR: f64 = 1e-15;

/// Refuses a rate outside of (0, 1).
pub fn check_fpr(fpr: f64) -> Result<f64> {
    if fpr > 0.0 && fpr < 1.0 {
        return Ok(fpr);
    }
    Err(Error::Parameter(format!("fpr must be between 0 and 1 (exclusive), got {}", format_rate(fpr))))
}

/// Refuses a capacity of 0 and an invalid rate.
pub fn check_sized(capacity: u64, fpr: f64) -> Result<()> {
    check_fpr(fpr)?;
    if capacity > 0 { Ok(()) } else { Err(Error::parameter("capacity must be at least 1, got 0")) }
}

/// Says that no machine has the memory.
pub fn too_large(capacity: u64, fpr: f64) -> Error {
    Error::Memory(format!(
        "a capacity of {capacity} at fpr {} needs more memory than any machine can give; lower the capacity or raise \
         the fpr",
        format_rate(fpr)
    ))
}

/// The lowest rate that constructors accept for `items` keys: two share a 64-bit hash with probability 2^-64, so n keys
/// put a floor of n / 2^64 under every rate, and half of the rate is left to the structure.
pub fn least_fpr(items: f64) -> f64 {
    (2.0 * items / 2f64.powi(64)).max(LEAST_FPR)
}

/// Refuses a rate that 64-bit hashes cannot honour at this capacity.
pub fn check_reachable(capacity: u64, fpr: f64) -> Result<()> {
    let least = least_fpr(capacity as f64);
    if fpr >= least {
        return Ok(());
    }
    Err(Error::Parameter(format!(
        "fpr must be at least {least:.1e} for a capacity of {capacity} (keys are 64-bit hashes), got {}",
        format_rate(fpr)
    )))
}

/// A rate as people write it: 0.01, 1.5, 1e-300, nan.
pub fn format_rate(rate: f64) -> String {
    if rate.is_nan() {
        return "nan".into();
    }
    if rate != 0.0 && rate.abs() < 1e-4 || rate.abs() >= 1e16 { format!("{rate:e}") } else { format!("{rate}") }
}

/// Smallest `units` in `1..=limit` whose law is at or below `fpr`, else `None`. Costs about 60 evaluations.
pub fn smallest(limit: u64, fpr: f64, law: impl Fn(u64) -> f64) -> Option<u64> {
    first_after(limit, |units| law(units) > fpr)
}

/// Largest number of keys at which `law` is at or below `fpr`.
pub fn largest_items(law: &dyn Law, fpr: f64) -> u64 {
    first_after(1 << 62, |items| law.fpr(items as f64) <= fpr).unwrap_or(1 << 62) - 1
}

/// The first of `1..=limit` that is not `within`, if all before it are.
fn first_after(limit: u64, within: impl Fn(u64) -> bool) -> Option<u64> {
    let mut high = 1u64;
    while within(high) {
        if high >= limit {
            return None;
        }
        high = high.saturating_mul(2).min(limit);
    }
    let mut low = high / 2;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        *(if within(middle) { &mut low } else { &mut high }) = middle;
    }
    Some(high)
}

/// At least one of n events of chance p: `1 - (1 - p)^n`; n may be a fraction, as estimates are.
pub fn any_of(p: f64, n: f64) -> f64 {
    -(n * (-p).ln_1p()).exp_m1()
}

/// The chance of each of n events, at least one of which has chance `any`: the inverse of [`any_of`].
pub fn each_of(any: f64, n: f64) -> f64 {
    -((-any).ln_1p() / n).exp_m1()
}

/// At least one of events with these chances: `1 - prod (1 - p_i)`; 0 for none.
pub fn any_among(chances: impl IntoIterator<Item = f64>) -> f64 {
    -chances.into_iter().map(|p| (-p).ln_1p()).sum::<f64>().exp_m1()
}

/// All of k events of chance p, such as k probes that find set cells: `p^k`.
pub fn all_of(p: f64, k: u32) -> f64 {
    p.powi(k as i32)
}
