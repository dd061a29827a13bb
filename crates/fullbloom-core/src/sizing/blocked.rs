//! The size of lines of scheme `columns`: how many, with how many positions per column.

use super::lanes::Lanes;
use super::{Law, check_reachable, check_sized, smallest, too_large};
use crate::error::Result;

/// 2^46 bytes, beyond any machine, in lines of 64 bytes.
const MAX_LINES: u64 = 1 << 40;

/// The law of `lines` lines with `per_column` positions in each of four columns.
pub fn law(lines: u64, per_column: u32) -> Lanes {
    Lanes { blocks: lines, lanes: 4, width: 128, per_lane: per_column }
}

/// The law of `layers` layers of such lines, in which a key has the same line number in all layers and a separate
/// pattern in each: the rate of absent keys that all layers hold. Layers share the load of a line, so that the rate is
/// E[q(I)^layers] of the rate q(I) of a line of I keys, above the power of the rate of one: 2.2 times its square at 0.1
/// %. It is exact if all layers hold the same keys, and a bound if later ones hold fewer.
pub fn layers(lines: u64, per_column: u32, layers: u32) -> Lanes {
    let one = law(lines, per_column);
    Lanes { lanes: one.lanes * layers, ..one }
}

/// The fewest lines, with their positions per column, that have a rate of at most `fpr` at `capacity`.
pub fn smallest_lines(capacity: u64, fpr: f64) -> Result<(u64, u32)> {
    check_sized(capacity, fpr)?;
    // Not even the information bound, log2(1/p) bits per key, fits.
    if capacity as f64 * -fpr.log2() / 512.0 > MAX_LINES as f64 {
        return Err(too_large(capacity, fpr));
    }
    check_reachable(capacity, fpr)?;
    let sized = (1..=3u32).filter_map(|per_column| {
        let lines = smallest(MAX_LINES, fpr, |lines| law(lines, per_column).fpr(capacity as f64))?;
        Some((lines, per_column))
    });
    sized.min().ok_or_else(|| too_large(capacity, fpr))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn lines_keep_the_rate_and_waste_little() {
        for fpr in [0.3, 0.01, 1e-4, 1e-9] {
            for capacity in [1, 10, 1000, 1_000_000] {
                let (lines, per_column) = smallest_lines(capacity, fpr).unwrap();
                assert!(law(lines, per_column).fpr(capacity as f64) <= fpr);
                assert!(lines == 1 || law(lines - 1, per_column).fpr(capacity as f64) > fpr);
            }
        }
        assert!(matches!(smallest_lines(u64::MAX, 0.9), Err(Error::Memory(_))));
        assert!(matches!(smallest_lines(0, 0.1), Err(Error::Parameter(_))));
    }
}
