//! Scheme 11, `two-lines`: two 512-bit lines per key, one in each half of the bits, each by scheme 2, [`columns`](super::columns).
//!
//! ```text
//! h'          = splitmix.mix(h)
//! first line  = line and positions of h, T a column, among the first half of the lines
//! second line = line and positions of h', likewise, among the second half
//! ```
//!
//! k = 8T, T in 1..=3. Why halves: the two lines of a key never coincide, and their fills are independent, so that the
//! rate is the square of the rate of `columns` with half of the bits. Why two lines: if one line is overfull, the other
//! seldom is too: at 1, 0.01 and 0.0001 % 9.77, 20.1 and 31.3 bits per key, where one line takes 10.1, 22.0 and 40.3, and
//! bits anywhere 9.59, 19.2 and 28.8. Putze, Sanders and Singler, "Cache-, hash- and space-efficient Bloom filters",
//! 2007.

use super::columns::Columns;
use super::lines;
use crate::hash::splitmix;
use crate::key::source::CHUNK;

/// The scheme with `T` positions per column of each line.
#[derive(Clone, Copy, Debug)]
pub struct TwoLines<const T: usize>;

/// The hash that chooses the second line and its bits.
#[inline(always)]
fn second(hash: u64) -> u64 {
    splitmix::mix(hash)
}

/// The second hashes of at most [`CHUNK`] keys.
#[inline(always)]
fn seconds<'a>(hashes: &[u64], mixed: &'a mut [u64; CHUNK]) -> &'a [u64] {
    let mixed = &mut mixed[..hashes.len()];
    mixed.iter_mut().zip(hashes).for_each(|(mixed, &hash)| *mixed = second(hash));
    mixed
}

impl<const T: usize> TwoLines<T> {
    /// Checks one hash.
    #[inline(never)]
    pub fn contains_one(words: &[u64], hash: u64) -> bool {
        let (one, other) = words.split_at(words.len() / 2);
        lines::contains_one::<Columns<T>>(one, hash) && lines::contains_one::<Columns<T>>(other, second(hash))
    }

    /// Adds one hash; true if it was new.
    #[inline(never)]
    pub fn add_one(words: &mut [u64], hash: u64) -> bool {
        let (one, other) = words.split_at_mut(words.len() / 2);
        let new = lines::add_one::<Columns<T>>(one, hash);
        lines::add_one::<Columns<T>>(other, second(hash)) || new
    }

    /// The bits of one hash among `words`, first those of the first line.
    pub fn positions(words: usize, hash: u64) -> Vec<u64> {
        let half = words / 2;
        let other = lines::positions::<Columns<T>>(half, second(hash)).into_iter();
        lines::positions::<Columns<T>>(half, hash).into_iter().chain(other.map(|bit| 64 * half as u64 + bit)).collect()
    }

    /// Checks `hashes`; the slices are equally long.
    pub fn contains(words: &[u64], hashes: &[u64], found: &mut [u8]) {
        let (one, other) = words.split_at(words.len() / 2);
        let (mut mixed, mut more) = ([0; CHUNK], [0; CHUNK]);
        for (hashes, found) in hashes.chunks(CHUNK).zip(found.chunks_mut(CHUNK)) {
            let more = &mut more[..hashes.len()];
            lines::contains::<Columns<T>>(one, hashes, found);
            lines::contains::<Columns<T>>(other, seconds(hashes, &mut mixed), more);
            found.iter_mut().zip(more).for_each(|(found, more)| *found &= *more);
        }
    }

    /// Adds `hashes` in order; reports for each whether it was new, returns how many were.
    pub fn add(words: &mut [u64], hashes: &[u64], mut tell: impl FnMut(usize, bool)) -> u64 {
        let (one, other) = words.split_at_mut(words.len() / 2);
        let (mut mixed, mut new, mut count) = ([0; CHUNK], [false; CHUNK], 0);
        for (start, hashes) in (0..).step_by(CHUNK).zip(hashes.chunks(CHUNK)) {
            lines::add::<Columns<T>>(one, hashes, |i, fresh| new[i] = fresh);
            lines::add::<Columns<T>>(other, seconds(hashes, &mut mixed), |i, fresh| new[i] |= fresh);
            for (i, &fresh) in new[..hashes.len()].iter().enumerate() {
                count += u64::from(fresh);
                tell(start + i, fresh);
            }
        }
        count
    }
}
