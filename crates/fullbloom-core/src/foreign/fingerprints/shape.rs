//! [`Shape`]: which three cells a key has. All numbers of a header are little-endian.
//!
//! ```text
//! h = fmix64(key + seed)                               fingerprint = h xor (h >> 32), its last 8 or 16 bits
//! xor:  u64 seed, u64 block                            cell i = i block + ((low32(h <<< 21 i) block) >> 32)
//! fuse: u64 seed, u32 keys, segment, count, span, cells
//!       span = count segment, cells = span + 2 segment
//!       first = (h span) >> 64                         cell i = (first + i segment) xor (0, h >> 18, h) mod segment
//! ```

use std::result::Result as Checked;

use crate::error::{Error, Result};
use crate::hash::murmur3::final_mix;

/// Cells of a key.
pub(super) const PLACES: usize = 3;
/// Cells of the largest segment.
const MOST_SEGMENT: u32 = 1 << 18;

/// The two families.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Three blocks.
    Xor,
    /// Three neighbouring segments.
    Fuse,
}

/// The shape of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::foreign) enum Shape {
    /// Cells of a block.
    Xor { block: u32 },
    /// Number of keys, cells of a segment, and segments in which a key can begin.
    Fuse { keys: u32, segment: u32, count: u32 },
}

impl Family {
    /// Bytes of a header.
    pub(super) fn head_len(self) -> usize {
        match self {
            Family::Xor => 16,
            Family::Fuse => 28,
        }
    }

    /// The counter from which the program draws its seeds.
    pub(super) fn first_seed(self) -> u64 {
        match self {
            Family::Xor => 1,
            Family::Fuse => 0x726b_2b9d_438b_9d4d,
        }
    }

    /// The shape that the program chooses for `keys` keys.
    pub(super) fn shape_for(self, keys: u32) -> Result<Shape> {
        let too_many = || Error::parameter(format!("{keys} keys are more than a filter of this format can have"));
        match self {
            Family::Xor if keys == 0 => Err(Error::parameter("a filter of this format has at least one key")),
            Family::Xor => {
                let block = (32.0 + 1.23 * f64::from(keys)) as u64 / 3;
                let block = u32::try_from(block).ok().filter(|block| *block <= u32::MAX / 3);
                block.map(|block| Shape::Xor { block }).ok_or_else(too_many)
            }
            Family::Fuse => {
                let (segment, count) = fuse_segments(keys);
                let cells = (count + 2).checked_mul(segment.into()).filter(|cells| *cells <= u32::MAX.into());
                cells.map(|_| Shape::Fuse { keys, segment, count: count as u32 }).ok_or_else(too_many)
            }
        }
    }

    /// The seed and the shape in a header; or which field is wrong.
    pub(super) fn parse(self, head: &[u8]) -> Checked<(u64, Shape), String> {
        let short = || String::from("it ends within its header");
        let (seed, rest) = head.split_first_chunk::<8>().ok_or_else(short)?;
        let seed = u64::from_le_bytes(*seed);
        let shape = match self {
            Family::Xor => {
                let block = u64::from_le_bytes(*rest.first_chunk::<8>().ok_or_else(short)?);
                let checked = u32::try_from(block).ok().filter(|block| (1..=u32::MAX / 3).contains(block));
                Shape::Xor { block: checked.ok_or_else(|| format!("its blockLength is {block}"))? }
            }
            Family::Fuse => {
                let fields: &[u8; 20] = rest.first_chunk().ok_or_else(short)?;
                let field = |i: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| fields[4 * i + byte]));
                check_fuse([0, 1, 2, 3, 4].map(field))?
            }
        };
        Ok((seed, shape))
    }
}

fn check_fuse([keys, segment, count, span, cells]: [u32; 5]) -> Checked<Shape, String> {
    if !segment.is_power_of_two() || !(4..=MOST_SEGMENT).contains(&segment) {
        return Err(format!("its SegmentLength is {segment}"));
    }
    if count == 0 {
        return Err("its SegmentCount is 0".into());
    }
    let wanted = u64::from(count) * u64::from(segment);
    if u64::from(span) != wanted {
        return Err(format!("its SegmentCountLength is {span}, not {wanted}"));
    }
    let wanted = wanted + 2 * u64::from(segment);
    if u64::from(cells) != wanted {
        return Err(format!("its ArrayLength is {cells}, not {wanted}"));
    }
    if keys > cells {
        return Err(format!("its Size is {keys}, more than its {cells} cells"));
    }
    Ok(Shape::Fuse { keys, segment, count })
}

/// Cells of a segment, and segments in which a key can begin.
fn fuse_segments(keys: u32) -> (u32, u64) {
    let (size, ln) = (f64::from(keys), f64::from(keys.max(1)).ln());
    let mut segment = match keys {
        0 => 4,
        _ => (1u32 << ((ln / 3.33f64.ln() + 2.25) as u32)).min(MOST_SEGMENT),
    };
    let capacity = match keys {
        0 | 1 => 0,
        _ => (size * (0.875 + 0.25 * 1e6f64.ln() / ln).max(1.125)).round() as u64,
    };
    while segment > 256 && capacity.div_ceil(segment.into()) < 34 {
        segment /= 2;
    }
    (segment, capacity.div_ceil(segment.into()).saturating_sub(2).max(1))
}

impl Shape {
    /// Number of cells.
    pub(super) fn num_cells(self) -> u64 {
        match self {
            Shape::Xor { block } => 3 * u64::from(block),
            Shape::Fuse { segment, count, .. } => (u64::from(count) + 2) * u64::from(segment),
        }
    }

    /// Number of keys, if it is recorded.
    pub(super) fn num_keys(self) -> Option<u64> {
        match self {
            Shape::Xor { .. } => None,
            Shape::Fuse { keys, .. } => Some(keys.into()),
        }
    }

    /// Estimated number of keys of a filter that does not record it, and its standard deviation: the program allocates
    /// `32 + 1.23 n` cells, down to a whole number and to a multiple of 3.
    pub(super) fn estimate(self) -> (f64, f64) {
        // The number that was rounded is uniform between the cells and 3 more.
        let cells = self.num_cells() as f64 + 1.5;
        (((cells - 32.0) / 1.23).max(0.0), 3.0 / 12.0f64.sqrt() / 1.23)
    }

    /// The header.
    pub(super) fn head(self, seed: u64) -> Vec<u8> {
        let mut head = seed.to_le_bytes().to_vec();
        match self {
            Shape::Xor { block } => head.extend(u64::from(block).to_le_bytes()),
            Shape::Fuse { keys, segment, count } => {
                let fields = [keys, segment, count, count * segment, (count + 2) * segment];
                head.extend(fields.into_iter().flat_map(u32::to_le_bytes));
            }
        }
        head
    }

    /// The cells of a hash: all different, and below [`Shape::num_cells`].
    #[inline(always)]
    pub(super) fn places(self, hash: u64) -> [usize; PLACES] {
        match self {
            Shape::Xor { block } => {
                let block = u64::from(block);
                let within = |turn: u32| (u64::from(hash.rotate_left(turn) as u32) * block) >> 32;
                [within(0) as usize, (within(21) + block) as usize, (within(42) + 2 * block) as usize]
            }
            Shape::Fuse { segment, count, .. } => {
                let (segment, span) = (u64::from(segment), u64::from(count) * u64::from(segment));
                let (first, last) = (((u128::from(hash) * u128::from(span)) >> 64) as u64, segment - 1);
                let second = (first + segment) ^ ((hash >> 18) & last);
                [first as usize, second as usize, ((first + 2 * segment) ^ (hash & last)) as usize]
            }
        }
    }
}

/// The hash of a key.
#[inline(always)]
pub(super) fn hash(key: u64, seed: u64) -> u64 {
    final_mix(key.wrapping_add(seed))
}

/// What the cells of a hash add up to; of 8 bits, the last ones.
#[inline(always)]
pub(super) fn fingerprint(hash: u64) -> u16 {
    (hash ^ (hash >> 32)) as u16
}
