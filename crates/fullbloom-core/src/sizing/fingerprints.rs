//! Laws and sizes of tables of fingerprints: quotient, d-left, cuckoo, prefix.
//!
//! An absent key is found when one of the fingerprints that it is compared with is its own. Bender et al., "Don't
//! thrash: how to cache your hash on flash", 2012 (quotient); Bonomi, Mitzenmacher, Panigrahy, Singh and
//! Varghese, "An improved construction for counting Bloom filters", 2006 (d-left); Fan, Andersen, Kaminsky and
//! Mitzenmacher, "Cuckoo filter: practically better than Bloom", 2014; Even, Even and Morrison, "Prefix filter:
//! practically and theoretically better than Bloom", 2022.

use super::{any_of, each_of};

/// Terms below this share of their sum are left out.
const NEGLIGIBLE: f64 = 1e-18;

/// Rate of a table of n fingerprints of f bits: `1 - (1 - 2^-f)^n`.
pub fn quotient(items: f64, bits: u32) -> f64 {
    any_of(0.5f64.powi(bits as i32), items)
}

/// The rate with `distinct` of all `fingerprints`: their share, of which [`quotient`] is the expectation.
pub fn share_of(distinct: f64, fingerprints: f64) -> f64 {
    (distinct / fingerprints).min(1.0)
}

/// The least number F of fingerprints with `1 - (1 - 1/F)^n <= fpr`: buckets times remainders of a d-left table.
pub fn least(items: f64, fpr: f64) -> f64 {
    1.0 / each_of(fpr, items)
}

/// Mean load of a bucket that d choices carry without an overflow, even while keys are added and removed: 2 cells below
/// w for d >= 4 (the published design, 6 of 8). In simulations of 50 to 10^6 keys with three rounds of random
/// replacement none overflowed for d >= 3 and one key in 10^7 for d = 2, w = 12; with d = 4, 1.3 cells below w, one key
/// in 10^5 did.
pub fn d_left_load(subtables: u32, cells: u32) -> f64 {
    let spare = match subtables {
        2 => 4.0,
        3 => 2.5,
        _ => 2.0,
    };
    f64::from(cells) - spare
}

/// Values of a cuckoo fingerprint of f bits; 0 marks a free slot.
fn values(bits: u32) -> f64 {
    2f64.powi(bits as i32) - 1.0
}

/// Rate of a cuckoo filter: `1 - (1 - 1/(2^f - 1))^c`. A key is compared with the fingerprints of two buckets, at
/// load a (items per slot) with c = 2 b a of them in the mean.
pub fn cuckoo(compared: f64, bits: u32) -> f64 {
    any_of(1.0 / values(bits), compared)
}

/// Rate of a cuckoo filter of n keys in B buckets: `1 - (1 - (2 - 1/B) / (B (2^f - 1)))^n`. Each key is equal with one
/// chance in 2^f - 1, and lies in one of two buckets; one pair in B has only one. [`cuckoo`] with c = 2 n / B, which
/// sizes and files use, is its bound.
pub fn cuckoo_table(items: f64, buckets: f64, bits: u32) -> f64 {
    any_of((2.0 - 1.0 / buckets) / buckets / values(bits), items)
}

/// Expected number of pairs of buckets of b slots with more than 2b equal fingerprints, at `items` distinct keys:
/// a pair of buckets and a fingerprint are one of (buckets / 2) (2^f - 1) groups, whose keys are Poisson.
pub fn cuckoo_overfull(items: f64, buckets: f64, bucket_size: u32, bits: u32) -> f64 {
    let groups = buckets / 2.0 * values(bits);
    let (mean, slots) = (items / groups, 2 * bucket_size);
    // Poisson beyond 2b, by its first terms.
    let mut term = (-mean).exp();
    let mut sum = 0.0;
    for i in 1..=slots + 40 {
        term *= mean / f64::from(i);
        sum += if i > slots { term } else { 0.0 };
    }
    groups * sum
}

/// Buckets for `capacity` keys: at a load that moving keys reaches, plus some slots, since small tables vary more.
/// Measured first failures: 0.87 at b = 2, 0.97 at b = 4, 0.995 at b = 8 with 4 million slots; below 1000 slots the
/// worst of 10,000 tables.
///
/// Narrow fingerprints link too few buckets with each other: 0.95 at b = 4 and f = 6, 0.88 at 5, 0.76 at 4.
pub fn cuckoo_buckets(capacity: u64, bucket_size: u32, bits: u32) -> u64 {
    let (load, more) = match bucket_size {
        1 => (0.40, 512.0),
        2 => (0.84, 48.0),
        4 => (0.95, 16.0),
        _ => (0.98, 16.0),
    };
    let load = load
        * match bits {
            4 => 0.70,
            5 => 0.85,
            6 => 0.95,
            _ => 1.0,
        };
    ((capacity as f64 / load + more) / f64::from(bucket_size)).ceil() as u64
}

/// Share of the keys that the bins of a prefix filter pass on: of k slots at `load` keys per slot, the keys X of a
/// bin being Poisson with mean l = k load, `E[(X - k)+] / l = P(X >= k) - (k / l) P(X > k)`.
pub fn passed_on(load: f64, bin_size: u32) -> f64 {
    let (size, mean) = (f64::from(bin_size), load * f64::from(bin_size));
    if mean <= 0.0 {
        return 0.0;
    }
    // P(X = k), by its logarithm: e^-l alone may be below every float.
    let full = ((1..=bin_size).map(|keys| (mean / f64::from(keys)).ln()).sum::<f64>() - mean).exp();
    if mean < size {
        let (mut term, mut more, mut sum) = (full, 0.0, 0.0);
        while term > 0.0 && (more == 0.0 || more * term > NEGLIGIBLE * sum) {
            more += 1.0;
            term *= mean / (size + more);
            sum += more * term;
        }
        return sum / mean;
    }
    let (mut term, mut keys, mut below) = (full, size, 0.0);
    while keys > 0.0 && term > NEGLIGIBLE * below {
        term *= keys / mean;
        keys -= 1.0;
        below += term;
    }
    (1.0 - below) - size / mean * (1.0 - below - full)
}

/// Bound on the rate of a prefix filter: an absent key is compared with the fingerprints of the k `load` keys of its
/// bin, out of k 2^r, in the bin or through the spare; and a share of the keys is looked up in a spare with its own
/// rate.
pub fn prefix(load: f64, remainder_bits: u32, asking: f64, spare: f64) -> f64 {
    (load * 0.5f64.powi(remainder_bits as i32) + asking * spare).min(1.0)
}
