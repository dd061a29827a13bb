//! Cells of static filters that are solved by peeling, by the number of their keys and of the cells of a key.

/// Longest segments, whatever the number of keys: 2^18 cells lie in the second-level cache.
pub const MOST_SEGMENT_BITS: u32 = 18;

/// For keys with a cell in each of `arity` consecutive segments, 3 or 4: the bits of a segment of 2^bits cells, and the
/// segments in which a key may begin.
pub fn segments(keys: u64, arity: u32) -> (u32, u64) {
    // Fitted by Graf and Lemire so that solving nearly always succeeds.
    let log = (keys.max(2) as f64).ln();
    let (bits, factor) = match arity {
        3 => (log / 3.33f64.ln() + 2.25, (0.875 + 0.25 * 1e6f64.ln() / log).max(1.125)),
        _ => (log / 2.91f64.ln() - 0.5, (0.77 + 0.305 * 6e5f64.ln() / log).max(1.075)),
    };
    let mut bits = (bits.max(0.0) as u32).clamp(2, MOST_SEGMENT_BITS);
    let cells = (keys as f64 * factor).round() as u64;
    // The fit is rounded up too far where a length has just doubled: in 14 segments of 1,024 cells not one of 30
    // attempts places 11,504 keys, in 28 of 512 cells 29 do. Below 512 cells all lengths do in 0.75 and more.
    if arity == 3 && bits >= 9 && cells >> bits < 24 {
        bits -= 1;
    }
    (bits, cells.div_ceil(1 << bits).saturating_sub(u64::from(arity) - 1).max(1))
}

/// Cells of such segments.
pub fn fuse_cells(keys: u64, arity: u32) -> u64 {
    let (bits, begins) = segments(keys, arity);
    (begins + u64::from(arity) - 1) << bits
}

/// Bound on the chance that the xor of an absent key's cells names one of its `arity` cells, if two bits of a cell say
/// which cell of a key is its own: `arity / 4`, since three of four numbers do for arity 3, and more if some cells
/// belong to no key, whose bits are zero. Three such cells always name the first; 1.3 covers cells whose bits are not
/// yet mixed (measured on 1 to 100,000 keys: 1.30 at one key, 1.2 at 50, less from 200 on).
pub fn own_cell(keys: f64, cells: f64, arity: u32) -> f64 {
    let (mixed, free) = (f64::from(arity) / 4.0, (1.0 - keys / cells).clamp(0.0, 1.0));
    (mixed + 1.3 * (1.0 - mixed) * free.powi(arity as i32)).min(1.0)
}

/// Cells of each of three segments, in each of which a key has a cell: 1.23 per key, above the threshold of 1.222 by a
/// margin that few keys need.
pub fn third(keys: u64) -> u64 {
    ((keys as f64 * 1.23) as u64 + 32).div_ceil(3)
}
