//! [`Bound`]: limits on the growth of a filter, its own and shared ones.

use std::fmt;
use std::sync::Arc;

/// A shared limit, which a filter consults before it grows, under its own lock.
pub trait Growth: Send + Sync {
    /// Reserves bytes of cells; false if the limit is reached.
    fn take(&self, bytes: u64) -> bool;
}

/// How many times its bytes may a filter from a file take in one step: the factor of its growth is a number in that
/// file. Programs use 2 to 10.
const MOST_FACTOR: u64 = 32;
/// Bytes that any step may take.
const LEAST_STEP: u64 = 1 << 20;

/// Most bytes of cells that a filter may have, and a limit that it shares with others.
#[derive(Clone)]
pub struct Bound {
    /// Most bytes of its own.
    pub most: u64,
    /// True if each step is limited by the bytes before it.
    is_stepwise: bool,
    shared: Option<Arc<dyn Growth>>,
}

impl Default for Bound {
    fn default() -> Self {
        Bound::of(u64::MAX)
    }
}

impl fmt::Debug for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bound").field("most", &self.most).field("shared", &self.shared.is_some()).finish()
    }
}

impl Bound {
    /// A limit of `most` bytes, not shared.
    pub fn of(most: u64) -> Self {
        Bound { most, is_stepwise: false, shared: None }
    }

    /// The limit of a filter from a file: `most` bytes, or without a limit, a step at most a multiple of the bytes before it.
    pub fn of_file(most: u64) -> Self {
        Bound { is_stepwise: most == u64::MAX, ..Self::of(most) }
    }

    /// Most bytes that a filter of `bytes` may have after its next step.
    pub fn after_step(&self, bytes: u64) -> u64 {
        match self.is_stepwise {
            true => bytes.saturating_add(bytes.saturating_mul(MOST_FACTOR).max(LEAST_STEP)),
            false => self.most,
        }
    }

    /// Replaces the limit of its own.
    pub fn limit(&mut self, most: u64) {
        (self.most, self.is_stepwise) = (most, false);
    }

    /// Consults `shared` from now on.
    pub fn share(&mut self, shared: Arc<dyn Growth>) {
        self.shared = Some(shared);
    }

    /// The bound of a copy, which shares no limit yet.
    pub fn copy_alone(&self) -> Self {
        Bound { shared: None, ..self.clone() }
    }

    /// True if no filter is too large.
    pub fn is_open(&self) -> bool {
        self.most == u64::MAX && self.shared.is_none()
    }

    /// Reserves `more` bytes for the filter; true if it may grow. The last check before it grows.
    pub fn take(&self, more: u64) -> bool {
        self.shared.as_ref().is_none_or(|shared| shared.take(more))
    }
}
