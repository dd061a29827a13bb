//! Several threads build one filter of lines: deal the keys to the owners of their lines, then add.
//!
//! Each thread owns a range of lines and an equal share of the keys. In a round it hashes its share
//! and deals each key to the owner of its line; then every owner adds what all dealers dealt to it,
//! in their order. Each key is hashed once and each line has one writer, so there are no atomics
//! and the bits, and the answers, are those of one thread.

use std::sync::{Barrier, Mutex, PoisonError};

use super::lines::{LineKernel, LineScheme, Lines, add_lines};
use crate::source::HashSource;

/// Keys a thread deals in a round: 768 KiB of hashes and numbers, which stay in its L2 cache.
const ROUND: usize = 1 << 16;
/// Keys hashed at a time.
const CHUNK: usize = 1024;

/// Keys dealt by one thread to one owner.
#[derive(Default)]
struct Hand {
    hashes: Vec<u64>,
    index: Vec<u32>,
}

/// How the lines are divided.
#[derive(Clone, Copy)]
struct Division {
    total: u64,
    per_owner: u64,
    owners: usize,
}

/// Adds all keys of `source` (fewer than 2^32) to the filter in `words` on `threads` threads; tells
/// the number of each new key to `tell`.
pub fn add<S: LineScheme>(words: &mut [u64], source: &dyn HashSource, threads: usize, tell: &(dyn Fn(usize) + Sync)) {
    let unit = S::Portable::WORDS;
    let total = (words.len() / unit) as u64;
    let per_owner = total.div_ceil(threads as u64).max(1);
    let shares: Vec<&mut [u64]> = words.chunks_mut(per_owner as usize * unit).collect();
    let division = Division { total, per_owner, owners: shares.len() };
    let hands: Vec<Vec<Mutex<Hand>>> =
        (0..shares.len()).map(|_| (0..shares.len()).map(|_| Mutex::default()).collect()).collect();
    let barrier = Barrier::new(shares.len());
    let (hands, barrier) = (&hands, &barrier);
    std::thread::scope(|scope| {
        for (me, words) in shares.into_iter().enumerate() {
            scope.spawn(move || {
                let mut start = 0;
                while start < source.len() {
                    let from = (start + me * ROUND).min(source.len());
                    deal::<S>(source, from, (from + ROUND).min(source.len()), division, &hands[me]);
                    barrier.wait();
                    for dealer in hands {
                        let hand = dealer[me].lock().unwrap_or_else(PoisonError::into_inner);
                        play::<S>(words, me, division, &hand, tell);
                    }
                    barrier.wait();
                    start += ROUND * division.owners;
                }
            });
        }
    });
}

/// Hashes the keys `from..to` and deals them to `hands`, one an owner, without a branch a key.
fn deal<S: LineScheme>(source: &dyn HashSource, from: usize, to: usize, division: Division, hands: &[Mutex<Hand>]) {
    let mut hashes = [0u64; CHUNK];
    let (mut mine, mut index) = ([0u64; CHUNK], [0u32; CHUNK]);
    for hand in hands {
        let mut hand = hand.lock().unwrap_or_else(PoisonError::into_inner);
        hand.hashes.clear();
        hand.index.clear();
    }
    let mut start = from;
    while start < to {
        let hashes = &mut hashes[..CHUNK.min(to - start)];
        source.fill(start, hashes);
        for (owner, hand) in hands.iter().enumerate() {
            let first = owner as u64 * division.per_owner;
            let mut kept = 0;
            for (i, &hash) in hashes.iter().enumerate() {
                mine[kept] = hash;
                index[kept] = (start + i) as u32;
                let line = S::Portable::line(hash, division.total);
                kept += usize::from(line.wrapping_sub(first) < division.per_owner);
            }
            let mut hand = hand.lock().unwrap_or_else(PoisonError::into_inner);
            hand.hashes.extend_from_slice(&mine[..kept]);
            hand.index.extend_from_slice(&index[..kept]);
        }
        start += hashes.len();
    }
}

/// Adds the keys of a hand to their owner's lines.
fn play<S: LineScheme>(
    words: &mut [u64],
    owner: usize,
    division: Division,
    hand: &Hand,
    tell: &(dyn Fn(usize) + Sync),
) {
    let lines = Lines { base: words.as_mut_ptr(), first: owner as u64 * division.per_owner, total: division.total };
    let tell = |i: usize, new: bool| {
        if new {
            tell(hand.index[i] as usize);
        }
    };
    // SAFETY: `deal` put into this owner's hand only hashes whose line is in its range, which is
    // what `words` holds; `&mut` excludes everyone else.
    unsafe { add_lines::<S>(lines, &hand.hashes, tell) };
}
