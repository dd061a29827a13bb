//! [`Values`]: all values of a set in order, and the codes of sets built from them.

use super::codes::{Codes, Encoded, Encoder};
use super::offsets::Blocks;
use super::shape::Shape;
use crate::error::{Error, Result};
use crate::sizing::golomb;
use crate::structure::Job;
use crate::structure::records::{BUCKET_BITS, SortedRecords};

/// Values in ascending order, each as its block and its place there.
pub struct Values<'a> {
    blocks: Blocks<'a>,
    block: u64,
    codes: Codes<'a>,
}

impl<'a> Values<'a> {
    /// From `value` on.
    pub fn from(blocks: Blocks<'a>, value: u64) -> Self {
        let shape = blocks.shape;
        let (block, place) = (value / shape.range, value % shape.range);
        let mut values = Values { blocks, block, codes: blocks.block(block.min(shape.blocks - 1)) };
        // Skips the values before it, except the last.
        while block < shape.blocks && values.codes.passed <= place {
            let before = values.codes;
            if !values.codes.step() || values.codes.passed > place {
                values.codes = before;
                break;
            }
        }
        values
    }
}

impl Iterator for Values<'_> {
    type Item = (u64, u64);

    #[inline(always)]
    fn next(&mut self) -> Option<(u64, u64)> {
        while self.block < self.blocks.shape.blocks {
            if self.codes.step() {
                return Some((self.block, self.codes.passed.wrapping_sub(1)));
            }
            self.block += 1;
            if self.block < self.blocks.shape.blocks {
                self.codes = self.blocks.block(self.block);
            }
        }
        None
    }
}

/// Refuses work that exceeds the memory limit: codes while they are built, and their final copy.
fn check_granted(keys: &SortedRecords<1>, bits: f64) -> Result<()> {
    let largest = (0..1 << BUCKET_BITS).map(|bucket| keys.count(BUCKET_BITS, bucket)).max().unwrap_or(0);
    let needed = (keys.len() as f64 * bits / 4.0) as u64 + 24 * largest;
    match keys.memory_limit() {
        Some(granted) if granted < needed => Err(Error::Memory(format!(
            "{} keys need {needed} bytes of memory, got memory={granted}; raise it",
            keys.len()
        ))),
        _ => Ok(()),
    }
}

/// The codes of keys.
pub fn of_keys(keys: &SortedRecords<1>, shape: Shape, fpr: f64, job: &Job<'_>) -> Result<Encoded> {
    let bits = golomb::bits_per_key(fpr, shape.rice_bits);
    check_granted(keys, bits)?;
    let (mut encoder, mut read) =
        (Encoder::new(shape, (keys.len() as f64 * bits / 64.0 * 1.02) as usize + 64)?, Vec::new());
    job.expect(1 << BUCKET_BITS);
    for bucket in 0..1 << BUCKET_BITS {
        keys.read(BUCKET_BITS, bucket, &mut read)?;
        read.iter().try_for_each(|[hash]| encoder.push(shape.place(*hash)))?;
        job.report(1)?;
    }
    encoder.finish()
}

/// The codes of the values of both.
pub fn unite(a: Blocks<'_>, b: Blocks<'_>) -> Result<Encoded> {
    // By the actual contents: the numbers in a file may be forged.
    let mut encoder = Encoder::new(a.shape, (a.codes.len() + b.codes.len()) / 8 + 64)?;
    let (mut ours, mut theirs) = (Values::from(a, 0).peekable(), Values::from(b, 0).peekable());
    loop {
        let next = match (ours.peek(), theirs.peek()) {
            (Some(x), Some(y)) if x <= y => ours.next(),
            (Some(_), None) => ours.next(),
            _ => theirs.next(),
        };
        match next {
            Some(value) => encoder.push(value)?,
            None => return encoder.finish(),
        }
    }
}

/// Values that both have, in order.
fn common<'a>(a: Blocks<'a>, b: Blocks<'a>) -> impl Iterator<Item = (u64, u64)> {
    let (mut ours, mut theirs) = (Values::from(a, 0), Values::from(b, 0).peekable());
    std::iter::from_fn(move || {
        loop {
            let value = ours.next()?;
            while theirs.next_if(|other| *other < value).is_some() {}
            if *theirs.peek()? == value {
                return Some(value);
            }
        }
    })
}

/// How many values both have.
pub fn count_common(a: Blocks<'_>, b: Blocks<'_>) -> u64 {
    common(a, b).count() as u64
}

/// The codes of the values that both have.
pub fn intersect(a: Blocks<'_>, b: Blocks<'_>) -> Result<Encoded> {
    let mut encoder = Encoder::new(a.shape, a.codes.len().min(b.codes.len()) / 8 + 64)?;
    common(a, b).try_for_each(|value| encoder.push(value))?;
    encoder.finish()
}

/// Number of values, if each block holds the codes of places in order and nothing else.
pub fn count_values(blocks: Blocks<'_>) -> Option<u64> {
    let mut count = 0;
    for block in 0..blocks.shape.blocks {
        let (mut codes, mut passed) = (blocks.block(block), 0);
        while codes.step() {
            if codes.passed <= passed || codes.passed > blocks.shape.range {
                return None;
            }
            passed = codes.passed;
            count += 1;
        }
        if !codes.is_spent() {
            return None;
        }
    }
    Some(count)
}
