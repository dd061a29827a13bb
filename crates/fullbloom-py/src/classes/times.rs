//! One key added or removed many times.

use fullbloom_core::key::KeyDomains;
use fullbloom_core::structure::{Addable, Countable, HashSource, Removable};
use pyo3::prelude::*;

use super::shared::add_one;
use crate::biased_lock::BiasedLock;
use crate::errors::OrRaise;
use crate::keys::batch::Operation;
use crate::operations::Add;

/// Additions between two questions whether the key still counts more with each: beyond the most that counters of
/// 16 bits tell, and a few milliseconds.
const PART: u64 = 1 << 16;
/// So many removals are made attached.
const FEW: u64 = 1 << 10;

/// One hash, over and over.
struct Again {
    hash: u64,
    len: usize,
}

impl HashSource for Again {
    fn len(&self) -> usize {
        self.len
    }

    fn fill(&self, _start: usize, out: &mut [u64]) {
        out.fill(self.hash);
    }

    /// Recorded when it was added the first time.
    fn domains(&self) -> KeyDomains {
        KeyDomains::NONE
    }
}

/// Adds a key so many times; whether it was new. Where one time finds no room, those before it were added.
pub(crate) fn add<F: Addable + Countable>(
    py: Python<'_>,
    lock: &BiasedLock<F>,
    hashed: (u64, KeyDomains),
    times: u64,
) -> PyResult<bool> {
    let (new, hash) = (add_one(py, lock, hashed)?, hashed.0);
    let mut left = times - 1;
    while left > 0 {
        let noted =
            |filter: &mut F| filter.count_hash(hash) >= filter.most_counted() && filter.note_surplus(left, true);
        if lock.write(py, noted) {
            break;
        }
        if let Some(added) = lock.write(py, |filter| filter.add_times(hash, left)) {
            added.or_raise(py)?;
            break;
        }
        let part = left.min(PART);
        Add { lock, threads: 1 }.run(py, &Again { hash, len: part as usize }, None)?;
        left -= part;
    }
    Ok(new)
}

/// Removes a key so many times, or, where fewer are there, not at all; whether it did.
pub(crate) fn remove<F: Addable + Removable + Countable>(
    py: Python<'_>,
    lock: &BiasedLock<F>,
    hash: u64,
    times: u64,
) -> PyResult<bool> {
    let take = |filter: &mut F| {
        filter.check_writable()?;
        let most = filter.most_counted();
        let count = filter.count_hash(hash);
        if count < times.min(most) {
            return Ok(false);
        }
        if count >= most && filter.note_surplus(times, false) {
            return Ok(true);
        }
        if let Some(removed) = filter.remove_times(hash, times) {
            removed?;
        } else {
            // No more than it counts, and what it counts lies in cells.
            for _ in 0..times {
                filter.remove_hash(hash)?;
            }
        }
        Ok(true)
    };
    let taken = if times <= FEW { lock.write(py, take) } else { lock.detach(py, |session| session.write(take)) };
    taken.or_raise(py)
}
