//! How a term selects rows: never edited, since files depend on it.

use crate::hash::splitmix;
use crate::scheme::fastrange;
use crate::sizing::signatures::MOST_BITS_PER_TERM;

/// Output numbers of the generator that separate columns from ranks.
const FIRST_COLUMN: u64 = 1 << 32;

/// The term of a value with this hash in column `column`.
#[inline]
pub(super) fn in_column(hash: u64, column: usize) -> u64 {
    splitmix::at(hash, FIRST_COLUMN + column as u64)
}

/// Calls `take` with the `bits` distinct rows of `num_bits` that a term has at `rank`: every set of that size is equally
/// likely (Floyd's sampling; Bentley and Floyd, "A sample of brilliance", 1987).
#[inline]
pub(super) fn each_row(term: u64, rank: usize, num_bits: u64, bits: u64, take: &mut impl FnMut(u64)) {
    let seed = splitmix::at(term, rank as u64);
    let mut chosen = [0u64; MOST_BITS_PER_TERM as usize];
    for i in 0..bits.min(num_bits).min(MOST_BITS_PER_TERM) {
        let last = num_bits - bits + i;
        let drawn = fastrange(splitmix::at(seed, i), last + 1);
        let row = if chosen[..i as usize].contains(&drawn) { last } else { drawn };
        chosen[i as usize] = row;
        take(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_term_are_distinct_and_all_equally_likely() {
        for (num_bits, bits) in [(40, 4), (5, 5), (7, 1), (64, 64), (80, 2)] {
            let (mut counts, trials) = (vec![0u32; num_bits as usize], 20_000u64);
            for term in 0..trials {
                let mut rows = Vec::new();
                each_row(term, 0, num_bits, bits, &mut |row| rows.push(row));
                rows.iter().for_each(|row| counts[*row as usize] += 1);
                rows.sort_unstable();
                rows.dedup();
                assert_eq!(rows.len() as u64, bits);
            }
            let (p, n) = (bits as f64 / num_bits as f64, trials as f64);
            let (mean, sd) = (n * p, (n * p * (1.0 - p)).sqrt());
            // Five standard deviations: one false alarm in a million counts.
            assert!(counts.iter().all(|count| (f64::from(*count) - mean).abs() <= 5.0 * sd + 1e-9));
        }
    }

    #[test]
    fn rows_of_a_term_never_change() {
        let mut rows = Vec::new();
        each_row(0x0123_4567_89ab_cdef, 0, 80, 4, &mut |row| rows.push(row));
        each_row(0x0123_4567_89ab_cdef, 3, 1000, 3, &mut |row| rows.push(row));
        each_row(in_column(0x0123_4567_89ab_cdef, 2), 0, 80, 2, &mut |row| rows.push(row));
        assert_eq!(rows, GOLDEN);
    }

    const GOLDEN: [u64; 9] = [0, 22, 50, 8, 362, 934, 2, 23, 74];
}
