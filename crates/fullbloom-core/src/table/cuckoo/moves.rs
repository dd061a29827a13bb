//! Moves in a cuckoo table: storing a fingerprint, making space for it, removing it.

use super::buckets::{Buckets, MOST_SLOTS};
use super::places::{Places, Spot};
use crate::scheme::fastrange;

/// Moves before a fingerprint goes to the stash.
const KICKS: usize = 500;
/// Steps the choice of slots; the multiplier of scheme `mcg`.
const STEP: u64 = 0xd134_2543_de82_ef95;

/// A fingerprint that found no space, and one of its buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stash {
    /// 0 for none.
    pub(crate) fp: u64,
    /// One of its two.
    pub(crate) bucket: u64,
}

impl Stash {
    #[inline(always)]
    pub(crate) fn holds(self, spot: Spot) -> bool {
        self.fp == spot.fp && (self.bucket == spot.first || self.bucket == spot.second)
    }
}

/// A table being written to.
pub(crate) struct Table<'a, B> {
    pub(crate) rule: B,
    pub(crate) places: Places,
    pub(crate) words: &'a mut [u64],
    pub(crate) stash: &'a mut Stash,
    pub(crate) bucket_size: u32,
}

/// A move: `fp` was put into `slot` of bucket `at`.
#[derive(Clone, Copy, Default)]
struct Move {
    fp: u64,
    at: u64,
    slot: u32,
}

/// Why a fingerprint was not stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The stash is occupied, and the table holds its capacity.
    Full,
    /// The stash is occupied, and no move makes space for this key, though other keys may find some.
    Crowded,
    /// Both buckets hold nothing but copies of it.
    Copies,
    /// The table is mapped read-only.
    ReadOnly,
}

impl<B: Buckets> Table<'_, B> {
    /// Stores a fingerprint; true if no equal one was present. `turn` decides which slots are emptied on the way. If it
    /// is refused, nothing has changed.
    #[inline(always)]
    pub(crate) fn add(&mut self, spot: Spot, turn: u64) -> std::result::Result<bool, Refusal> {
        let (mut first, mut second) = (self.rule.load(self.words, spot.first), self.rule.load(self.words, spot.second));
        let new = !(self.rule.has(first, spot.fp) | self.rule.has(second, spot.fp) | self.stash.holds(spot));
        if self.rule.replace(&mut first, 0, spot.fp) {
            self.rule.store(self.words, spot.first, first);
        } else if self.rule.replace(&mut second, 0, spot.fp) {
            self.rule.store(self.words, spot.second, second);
        } else if !new && self.rule.count(first, spot.fp).min(self.rule.count(second, spot.fp)) == self.bucket_size {
            return Err(Refusal::Copies);
        } else if self.stash.fp != 0 {
            self.make_space_or_none(spot, turn)?;
        } else if let Some(left) = self.make_room(spot, turn, &mut [], KICKS) {
            *self.stash = left;
        }
        Ok(new)
    }

    /// [`Table::make_room`] without a stash: moves that make no space are undone. A search that meets crowded buckets
    /// stays among them, so there are several short ones, from both buckets.
    #[cold]
    fn make_space_or_none(&mut self, spot: Spot, turn: u64) -> std::result::Result<(), Refusal> {
        let other = Spot { first: spot.second, second: spot.first, ..spot };
        for (spot, turn) in [(spot, turn), (other, turn), (spot, !turn), (other, !turn)] {
            let mut moves = [Move::default(); KICKS / 4];
            let Some(left) = self.make_room(spot, turn, &mut moves, KICKS / 4) else { return Ok(()) };
            self.take_back(&moves, left);
        }
        Err(Refusal::Crowded)
    }

    /// Undoes `moves`, which left `left` over.
    fn take_back(&mut self, moves: &[Move], left: Stash) {
        let mut fp = left.fp;
        for &Move { fp: put, at, slot } in moves.iter().rev() {
            let mut bucket = self.rule.load(self.words, at);
            // Storing may have sorted the bucket.
            if self.rule.swap(&mut { bucket }, slot, 0) == put {
                self.rule.swap(&mut bucket, slot, fp);
            } else {
                self.rule.replace(&mut bucket, put, fp);
            }
            self.rule.store(self.words, at, bucket);
            fp = put;
        }
    }

    /// Stores a fingerprint whose buckets are full. Of the fingerprints in one of them, the first whose other bucket
    /// has a free slot moves there; if no such bucket has one, `turn` selects a fingerprint to evict, and the search continues from its
    /// other bucket. The last one evicted is left over; `moves` records the path.
    ///
    /// Reading all other buckets of a bucket at once (their lines are fetched together) takes a fifth of the moves of a
    /// blind walk, and fails later.
    #[inline(never)]
    fn make_room(&mut self, spot: Spot, turn: u64, moves: &mut [Move], most: usize) -> Option<Stash> {
        let (rule, base) = (self.rule, self.words.as_ptr());
        let (mut turn, mut fp) = (turn.wrapping_mul(STEP) | 1, spot.fp);
        let mut at = if turn >> 63 == 0 { spot.first } else { spot.second };
        let mut others = [0u64; MOST_SLOTS as usize];
        let others = &mut others[..self.bucket_size as usize];
        for step in 0..most {
            turn = turn.wrapping_mul(STEP);
            let slot = fastrange(turn, u64::from(self.bucket_size)) as u32;
            let mut bucket = rule.load(self.words, at);
            for (slot, other) in (0u32..).zip(others.iter_mut()) {
                *other = self.places.other(rule.swap(&mut { bucket }, slot, 0), at);
                rule.fetch(base, *other);
            }
            for (slot, &other) in (0u32..).zip(others.iter()) {
                let mut room = rule.load(self.words, other);
                let moved = rule.swap(&mut { bucket }, slot, 0);
                if other != at && rule.replace(&mut room, 0, moved) {
                    rule.store(self.words, other, room);
                    rule.swap(&mut bucket, slot, fp);
                    rule.store(self.words, at, bucket);
                    return None;
                }
            }
            if let Some(noted) = moves.get_mut(step) {
                *noted = Move { fp, at, slot };
            }
            fp = rule.swap(&mut bucket, slot, fp);
            rule.store(self.words, at, bucket);
            at = self.places.other(fp, at);
        }
        Some(Stash { fp, bucket: at })
    }

    /// Removes one copy; false if the table holds no copy. The stash moves into the freed slot if its fingerprint can get there:
    /// by moves if `moves` allows them, else only from one of its own buckets.
    #[inline(always)]
    pub(crate) fn remove(&mut self, spot: Spot, moves: bool) -> bool {
        for at in [spot.first, spot.second] {
            let mut bucket = self.rule.load(self.words, at);
            if self.rule.replace(&mut bucket, spot.fp, 0) {
                self.rule.store(self.words, at, bucket);
                if self.stash.fp != 0 {
                    self.unstash(at, moves);
                }
                return true;
            }
        }
        let stashed = self.stash.holds(spot);
        if stashed {
            *self.stash = Stash::default();
        }
        stashed
    }

    #[cold]
    fn unstash(&mut self, room: u64, moves: bool) {
        let spot = self.places.at(self.stash.fp, self.stash.bucket);
        if !moves && room != spot.first && room != spot.second {
            return;
        }
        let stash = std::mem::take(self.stash);
        if self.add(spot, stash.fp << 32 ^ stash.bucket).is_err() {
            *self.stash = stash;
        }
    }
}

/// True if a fingerprint equal to that of `spot` is in one of its buckets or the stash.
#[inline(always)]
pub(crate) fn has<B: Buckets>(rule: B, words: &[u64], stash: Stash, spot: Spot) -> bool {
    let (first, second) = (rule.load(words, spot.first), rule.load(words, spot.second));
    rule.has(first, spot.fp) | rule.has(second, spot.fp) | stash.holds(spot)
}

/// Number of fingerprints equal to that of `spot` in its buckets and the stash.
#[inline(always)]
pub(crate) fn count<B: Buckets>(rule: B, words: &[u64], stash: Stash, spot: Spot) -> u64 {
    let first = rule.count(rule.load(words, spot.first), spot.fp);
    let second = if spot.first == spot.second { 0 } else { rule.count(rule.load(words, spot.second), spot.fp) };
    u64::from(first + second) + u64::from(stash.holds(spot))
}
