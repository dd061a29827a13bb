//! Ribbon filters: rate by columns, slots by keys, and how often keys do not fit into a ribbon.
//!
//! A key is an equation of 64 coefficients that begins at a random slot. Equations that wait for a free slot are a queue,
//! one slot served a step: with a share of e more starts than keys its length has a tail of exp(-2 e) a place (Kingman), and
//! a key fails when about 64 wait.

/// Coefficients of a key.
pub const WIDTH: u64 = 64;

/// Keys a slot of a ribbon that passes on keys that do not fit. At 1.02 slots, thresholds and keys passed on take 0.6 %
/// more than the result bits; at 1.00 1.3 %, at 1.04 0.4 %, and building takes a sixth more time.
const LOAD: f64 = 1.02;

/// Slots a key of a ribbon that has to hold all, up to [`MOST_IN_LAST`] keys; 0.01 more for every doubling beyond.
const SPARE: f64 = 1.05;

/// The share of keys that such a ribbon passes on, measured on a million keys.
pub const PASSED_ON: f64 = 0.0235;

/// Up to this number of keys, one ribbon without thresholds is smaller than two.
pub const MOST_IN_LAST: u64 = 2048;

/// The share of two bits of threshold in a slot.
const THRESHOLD: f64 = 2.0 / 128.0;

/// Result bits of every key, and the share of keys with that number: the others have one more. `None` for an invalid
/// rate.
fn result_bits(fpr: f64) -> Option<(i32, f64)> {
    let low = (0..1074).find(|&low| 0.5f64.powi(low + 1) <= fpr)?;
    // Between 2^-(low+1), share 0, and 2^-low.
    Some((low, fpr * 2f64.powi(low) * 2.0 - 1.0))
}

/// Columns in every block, and the share of blocks with that number, of 2^32: the others have one more. The largest
/// rate not above `fpr`; `None` below 2^-32.
pub fn columns(fpr: f64) -> Option<(u32, u32)> {
    let (low, share) = result_bits(fpr)?;
    (low < 32).then_some((low as u32, (share * 2f64.powi(32)) as u32))
}

/// Bits a key of a large filter: result bits in slots of the first ribbon or, for keys passed on, of the next, and the
/// thresholds.
pub fn bits_per_key(fpr: f64) -> f64 {
    let bits = result_bits(fpr).map_or(f64::INFINITY, |(low, share)| f64::from(low) + 1.0 - share);
    bits * (1.0 / LOAD + PASSED_ON * SPARE) + THRESHOLD / LOAD
}

/// The rate if `share` of starts have `low` columns and the others one more.
pub fn rate(low: u32, share: f64) -> f64 {
    0.5f64.powi(low as i32 + 1) * (1.0 + share)
}

/// Blocks of 64 slots in which keys may begin, of a ribbon that passes keys on.
pub fn passing_blocks(keys: u64) -> u64 {
    (keys as f64 / LOAD / WIDTH as f64).ceil() as u64
}

/// The same for the last ribbon, which has to hold all: one time in 30 it fails, and every attempt takes 2 % more.
pub fn last_blocks(keys: u64, attempt: u64) -> u64 {
    let more = 0.01 * f64::from((keys / MOST_IN_LAST).max(1).ilog2());
    (keys as f64 * (SPARE + more) * (1.0 + 0.02 * attempt as f64) / WIDTH as f64).ceil() as u64
}

/// Probability that keys do not all fit into a ribbon with `starts` starts, at least as many: 1 - exp(-4 n e^2 exp(-128
/// e)), e = starts / keys - 1. The exponent is Kingman's, the factor measured: within a factor of two if n e^2 is 12 or
/// more, a bound below, where the queue, which begins empty, has no time to grow.
pub fn failure(keys: f64, starts: f64) -> f64 {
    let e = (starts / keys - 1.0).max(0.0);
    -(-4.0 * keys * e * e * (-2.0 * e * WIDTH as f64).exp()).exp_m1()
}
