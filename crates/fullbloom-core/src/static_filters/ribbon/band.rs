//! [`Band`]: equations of 64 neighbouring coefficients, solved one by one.
//!
//! Dillinger and Walzer, "Ribbon filter: practically smaller than Bloom and xor", 2021. The equation of a slot begins
//! there; one whose slot is occupied is added to the other's, begins later, and goes on.

use super::layer::{BUCKET, Columns, Equation, Layer, THRESHOLDS, equation, parity};
use crate::cells::allocation::{reserve, zeroed};
use crate::error::Result;
use crate::scheme::fastrange;
use crate::sizing::ribbon::WIDTH;

/// Coefficients and results by slot; 0 in a free one.
struct Band {
    rows: Vec<u64>,
    results: Vec<u32>,
}

impl Band {
    fn new(slots: u64) -> Result<Self> {
        Ok(Band { rows: zeroed(slots as usize)?, results: zeroed(slots as usize)? })
    }

    /// The slot that an equation takes; `None` if earlier ones leave none, and their results differ in the bits of
    /// `mask`.
    #[inline(always)]
    fn insert(&mut self, equation: Equation, mask: u32) -> Option<Option<usize>> {
        let Equation { start, coefficients: mut row, results: mut result } = equation;
        result &= mask;
        let mut slot = start as usize;
        loop {
            let taken = self.rows[slot];
            if taken == 0 {
                (self.rows[slot], self.results[slot]) = (row, result);
                return Some(Some(slot));
            }
            row ^= taken;
            result ^= self.results[slot];
            if row == 0 {
                return (result & mask == 0).then_some(None);
            }
            let zeros = row.trailing_zeros();
            row >>= zeros;
            slot += zeros as usize;
        }
    }

    /// Inserts the equations of a bucket, the last first, up to the one that does not fit. Returns the number of the
    /// threshold before which keys are passed on; removes those again. `taken` is a buffer for the start and slot of
    /// each.
    fn take(&mut self, equations: impl Iterator<Item = (u32, Equation)>, taken: &mut Vec<(u64, usize)>) -> usize {
        for (mask, equation) in equations {
            let offset = equation.start % BUCKET;
            let Some(slot) = self.insert(equation, mask) else {
                let code = THRESHOLDS.iter().position(|&to| u64::from(to) > offset).unwrap_or(THRESHOLDS.len() - 1);
                // No other equation depends on the last ones.
                let back = taken.iter().rev().take_while(|(offset, _)| *offset < THRESHOLDS[code].into());
                back.for_each(|&(_, slot)| (self.rows[slot], self.results[slot]) = (0, 0));
                return code;
            };
            taken.extend(slot.map(|slot| (offset, slot)));
        }
        0
    }

    /// Writes the columns of all blocks: the last slot first, a free one 0.
    fn solve(&self, layer: Layer, columns: Columns, words: &mut [u64]) {
        let mut state = [0u64; 32];
        for block in (0..=layer.blocks).rev() {
            let (at, has) = layer.place(block, columns);
            let state = &mut state[..has as usize];
            let slots = (block * WIDTH) as usize..((block + 1) * WIDTH) as usize;
            for (&row, &result) in self.rows[slots.clone()].iter().zip(&self.results[slots]).rev() {
                // A free slot has no coefficients and no result: its bits are 0.
                for (j, column) in state.iter_mut().enumerate() {
                    let bit = parity(*column & (row >> 1)) ^ result >> j & 1;
                    *column = *column << 1 | u64::from(bit);
                }
            }
            let into = &mut words[at as usize..(at + has) as usize];
            into.iter_mut().zip(&*state).for_each(|(word, column)| *word = column.to_le());
        }
    }
}

/// The result bits of a key that begins in this slot.
fn mask(layer: Layer, columns: Columns, start: u64) -> u32 {
    let (_, has) = layer.place(start / WIDTH, columns);
    (1u64 << has).wrapping_sub(1) as u32
}

/// Solves for keys at `positions`, which are in order, into `words`, all 0; pushes the numbers of keys passed on to
/// `passed`.
///
/// Buckets go from the first to the last, a bucket's keys from the last to the first: keys that reach over from the
/// bucket before block the first ones, which are passed on from the first failure.
pub fn passing(
    layer: Layer,
    columns: Columns,
    positions: impl Fn(usize) -> u64,
    keys: usize,
    words: &mut [u64],
    passed: &mut Vec<u32>,
) -> Result<()> {
    let starts = layer.starts();
    let mut band = Band::new(starts + WIDTH)?;
    let (codes, blocks) = words.split_at_mut(layer.code_words() as usize);
    let start = |key| fastrange(positions(key), starts);
    let (mut taken, mut first) = (Vec::new(), 0);
    for bucket in 0..starts.div_ceil(BUCKET) {
        let end = first + (first..keys).take_while(|&key| start(key) / BUCKET == bucket).count();
        taken.clear();
        reserve(&mut taken, end - first)?;
        let equations = (first..end).rev().map(|key| equation(positions(key), starts));
        let code = band.take(equations.map(|equation| (mask(layer, columns, equation.start), equation)), &mut taken);
        if code > 0 {
            layer.set_code(codes, bucket, code);
            reserve(passed, end - first)?;
            let gone = (first..end).filter(|&key| start(key) % BUCKET < THRESHOLDS[code].into());
            passed.extend(gone.map(|key| key as u32));
        }
        first = end;
    }
    band.solve(layer, columns, blocks);
    Ok(())
}

/// Solves for all `positions`; false when they do not fit.
pub fn solve_all(
    layer: Layer,
    columns: Columns,
    positions: impl Iterator<Item = u64>,
    words: impl FnOnce() -> Result<Vec<u64>>,
) -> Result<Option<Vec<u64>>> {
    let mut band = Band::new(layer.starts() + WIDTH)?;
    for position in positions {
        let equation = equation(position, layer.starts());
        let mask = mask(layer, columns, equation.start);
        if band.insert(equation, mask).is_none() {
            return Ok(None);
        }
    }
    let mut words = words()?;
    band.solve(layer, columns, &mut words);
    Ok(Some(words))
}
