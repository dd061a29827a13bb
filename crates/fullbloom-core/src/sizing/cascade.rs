//! Laws of cascades: levels over a closed world of `included` and `excluded` keys, each for the false positives of the
//! one before.

use std::f64::consts::{FRAC_1_SQRT_2, LN_2};

use super::classic::MAX_HASHES;

/// Rate of every level but the first: half of the keys go on to the next, and one probe into a half-full level has this
/// rate.
pub const HALF: f64 = 0.5;

/// Rate of the first level, over the smaller set: `sqrt(1/2) r / s` leaves the least bits in all.
pub fn first_rate(smaller: f64, larger: f64) -> f64 {
    FRAC_1_SQRT_2 * smaller / larger
}

/// Expected bits of all levels at the real optimum of k: `(r log2(s / r) + r (1/2 + sqrt(1/2) / (1 - sqrt(1/2)))) / ln 2`,
/// about `1.44 r log2(s / r) + 4.2 r`, r the smaller set.
pub fn bits(included: f64, excluded: f64) -> f64 {
    let (r, s) = (included.min(excluded), included.max(excluded));
    if r <= 0.0 {
        return 0.0;
    }
    r * ((s / r).log2() + 0.5 + FRAC_1_SQRT_2 / (1.0 - FRAC_1_SQRT_2)) / LN_2
}

/// The least bits of a level of `keys` keys with its integer number of probes, by the mean fill: deeper levels make up
/// for a rate that is missed by little.
pub fn level(keys: u64, fpr: f64) -> (u64, u32) {
    let best = (-fpr.log2()).floor().clamp(1.0, f64::from(MAX_HASHES - 1)) as u32;
    let sized = [best, best + 1].map(|num_hashes| {
        let k = f64::from(num_hashes);
        let fill = fpr.powf(1.0 / k);
        ((-k * keys as f64 / (-fill).ln_1p()).ceil().max(1.0) as u64, num_hashes)
    });
    let [a, b] = sized;
    if b.0 < a.0 { b } else { a }
}

/// The sizes of two versions may differ by an eighth, or by this many bits, before a level gets a size of its own.
const SLACK: u64 = 512;

/// Whether a level that needs `wanted` bits may have the size of another version's level, so that bits of keys in both
/// are in the same places: at rates up to 0.54 instead of 1/2, in up to an eighth more bits; in twice as many if it
/// `grows`.
pub fn keeps(wanted: u64, other: u64, grows: bool) -> bool {
    let more = if grows { wanted } else { wanted / 8 };
    wanted <= other.saturating_add(other / 8) && other <= wanted.saturating_add(more).saturating_add(SLACK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_bits_hold() {
        // Published with factors of 1.44 and 4.2, which are 1.4427 and 4.2044.
        for (r, s, want) in [(1e4, 1e5, 89_836.0), (1e5, 1e6, 898_358.0), (1e4, 1e7, 185_507.0)] {
            assert!((bits(r, s) / want - 1.0).abs() < 0.002 && bits(s, r) == bits(r, s), "{r} {s}");
        }
        // 12.7 of 30 million certificates: 7.7 MB.
        assert!((bits(12.7e6, 17.3e6) / 8e6 - 7.7).abs() < 0.1);
        assert_eq!((bits(0.0, 5.0), bits(7.0, 0.0)), (0.0, 0.0));
    }

    #[test]
    fn levels_keep_their_rates() {
        for keys in [1u64, 2, 100, 12_345] {
            for fpr in [0.7, 0.5, 0.0707, 1e-3, 1e-12] {
                let (num_bits, num_hashes) = level(keys, fpr);
                let throws = f64::from(num_hashes) * keys as f64;
                let fill = -(-throws / num_bits as f64).exp_m1();
                assert!(fill.powi(num_hashes as i32) <= fpr * (1.0 + 1e-9), "{keys} {fpr}");
            }
        }
        assert_eq!(level(1000, 0.5), (1443, 1));
        for (wanted, other, grows, kept) in [
            (1000, 1000, false, true),
            (1125, 1000, false, true),
            (1126, 1000, true, false),
            (8000, 9512, false, true),
            (8000, 9513, false, false),
            (8000, 16_512, true, true),
            (8000, 16_513, true, false),
        ] {
            assert_eq!(keeps(wanted, other, grows), kept, "{wanted} {other} {grows}");
        }
    }
}
