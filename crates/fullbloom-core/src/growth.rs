//! [`Bound`]: limits on the growth of a filter, its own and shared ones.

use std::fmt;
use std::sync::Arc;

/// A shared limit, which a filter consults before it grows, under its own lock.
pub trait Growth: Send + Sync {
    /// Reserves bytes of cells; false if the limit is reached.
    fn take(&self, bytes: u64) -> bool;
}

/// Most bytes of cells that a filter may have, and a limit that it shares with others.
#[derive(Clone)]
pub struct Bound {
    /// Most bytes of its own.
    pub most: u64,
    shared: Option<Arc<dyn Growth>>,
}

impl Default for Bound {
    fn default() -> Self {
        Bound { most: u64::MAX, shared: None }
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
        Bound { most, shared: None }
    }

    /// Consults `shared` from now on.
    pub fn share(&mut self, shared: Arc<dyn Growth>) {
        self.shared = Some(shared);
    }

    /// The bound of a copy, which shares no limit yet.
    pub fn copy_alone(&self) -> Self {
        Self::of(self.most)
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
