//! One key added or removed many times.

use fullbloom_core::key::KeyDomains;
use fullbloom_core::structure::{Addable, Countable, HashSource, Removable};
use pyo3::prelude::*;

use super::shared::add_one;
use crate::errors::OrRaise;
use crate::keys::batch::Operation;
use crate::locking::biased_lock::BiasedLock;
use crate::operations::Add;

/// Additions between two checks whether the count still rises: more than counters of 16 bits hold, and a few
/// milliseconds.
const PART: u64 = 1 << 16;
/// Up to this many removals run attached.
const FEW: u64 = 1 << 10;

/// One hash, repeated.
struct Repeat {
    hash: u64,
    len: usize,
}

impl HashSource for Repeat {
    fn len(&self) -> usize {
        self.len
    }

    fn fill(&self, _start: usize, out: &mut [u64]) {
        out.fill(self.hash);
    }

    /// They were recorded when the key was added the first time.
    fn domains(&self) -> KeyDomains {
        KeyDomains::NONE
    }
}

/// Adds a key `times` times; returns whether it was new. If the filter becomes full, the additions before that are kept.
pub(crate) fn add<F: Addable + Countable>(
    py: Python<'_>,
    lock: &BiasedLock<F>,
    hashed: (u64, KeyDomains),
    times: u64,
) -> PyResult<bool> {
    let (new, hash) = (add_one(py, lock, hashed)?, hashed.0);
    let mut left = times - 1;
    while left > 0 {
        let note_surplus =
            |filter: &mut F| filter.count_hash(hash) >= filter.most_counted() && filter.note_surplus(left, true);
        if lock.write(py, note_surplus) {
            break;
        }
        if let Some(added) = lock.write(py, |filter| filter.add_times(hash, left)) {
            added.or_raise(py)?;
            break;
        }
        let part = left.min(PART);
        Add { lock, threads: 1 }.run(py, &Repeat { hash, len: part as usize }, None)?;
        left -= part;
    }
    Ok(new)
}

/// Removes a key `times` times, or not at all if there are fewer; returns whether it did.
pub(crate) fn remove<F: Addable + Removable + Countable>(
    py: Python<'_>,
    lock: &BiasedLock<F>,
    hash: u64,
    times: u64,
) -> PyResult<bool> {
    let remove = |filter: &mut F| {
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
            // At most its count, which the cells contain.
            for _ in 0..times {
                filter.remove_hash(hash)?;
            }
        }
        Ok(true)
    };
    let removed = if times <= FEW { lock.write(py, remove) } else { lock.detach(py, |session| session.write(remove)) };
    removed.or_raise(py)
}
