//! Lookups of a block of keys, round by round: a round tests one or two positions of each key that all rounds before found
//! set. An absent key of a half-full filter costs about three probes, not k, and no branch depends on a bit.
//!
//! A round writes its bits to fixed places; a pass over these, which are in the first-level cache, then selects the keys that
//! are left. Selecting them in the same loop would make the address of each store depend on a load that misses the
//! cache, behind which the processor holds back later loads: keys that are all present took 79 ns in place of 16.
//! Nothing is prefetched: the loads of a round depend on nothing, so as many as the machine allows are under way.

/// Keys of a block: its positions fit in the first-level cache.
pub(in crate::foreign) const BLOCK: usize = 256;
/// Positions of a key that are computed for whole blocks. More are rare, and follow one by one.
pub(in crate::foreign) const MOST: usize = 16;

/// The positions of a block, round by round.
pub(in crate::foreign) type Rounds<P> = [[P; BLOCK]; MOST];

/// A position as lanes have it.
pub(in crate::foreign) trait Position: Copy {
    fn bit(self) -> u64;
}

impl Position for u32 {
    #[inline(always)]
    fn bit(self) -> u64 {
        self.into()
    }
}

impl Position for u64 {
    #[inline(always)]
    fn bit(self) -> u64 {
        self
    }
}

/// Bits in memory.
pub(in crate::foreign) trait Bits: Copy {
    /// 1 if the bit is set.
    fn get(self, bit: u64) -> u8;
}

impl Bits for &[u64] {
    #[inline(always)]
    fn get(self, bit: u64) -> u8 {
        (u64::from_le(self[(bit >> 6) as usize]) >> (bit & 63)) as u8 & 1
    }
}

impl Bits for &[u8] {
    #[inline(always)]
    fn get(self, bit: u64) -> u8 {
        self[(bit >> 3) as usize] >> (bit & 7) & 1
    }
}

/// Looks up as many keys as `found` has, a block at most, by their positions in `rounds`.
#[inline(always)]
pub(in crate::foreign) fn look_up<P: Position>(bits: impl Bits, rounds: &[[P; BLOCK]], found: &mut [u8]) {
    let (mut hits, mut left) = ([1u8; BLOCK], [0u8; BLOCK]);
    let (mut count, mut is_whole) = (found.len().min(BLOCK), true);
    // A round is two positions: half of the time of one is the passes over its bits.
    for pair in rounds.chunks(2) {
        let (Some(first), Some(second)) = (pair.first(), pair.last()) else { break };
        let hits = &mut hits[..count];
        if is_whole {
            for (hit, (&first, &second)) in hits.iter_mut().zip(first.iter().zip(second)) {
                *hit &= bits.get(first.bit()) & bits.get(second.bit());
            }
        } else {
            for (hit, &key) in hits.iter_mut().zip(&left) {
                let key = usize::from(key);
                *hit &= bits.get(first[key].bit()) & bits.get(second[key].bit());
            }
        }
        let kept = hits.iter().map(|&hit| u32::from(hit)).sum::<u32>() as usize;
        if kept == 0 {
            count = 0;
            break;
        }
        // Keys of which few are absent stay: selecting all others takes longer than testing these again.
        if kept * 8 < count * 7 {
            let mut end = 0;
            for (i, hit) in hits.iter().enumerate() {
                left[end] = if is_whole { i as u8 } else { left[i] };
                end += usize::from(*hit);
            }
            hits[..kept].fill(1);
            (count, is_whole) = (kept, false);
        }
    }
    if is_whole && count > 0 {
        found.copy_from_slice(&hits[..count]);
        return;
    }
    found.fill(0);
    for (&hit, &key) in hits[..count].iter().zip(&left) {
        found[usize::from(key)] = hit;
    }
}
