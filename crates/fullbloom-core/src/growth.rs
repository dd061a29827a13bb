//! [`Bound`]: how far a filter may grow, and who is asked at the moment it does.

use std::fmt;
use std::sync::Arc;

/// Is asked for bytes before a filter grows by them, under whatever lock the filter is.
pub trait Growth: Send + Sync {
    /// Takes bytes of cells, or says that there are none.
    fn take(&self, bytes: u64) -> bool;
}

/// Most bytes of cells that a filter may have, and those that it shares with others.
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
    /// So many bytes of its own.
    pub fn of(most: u64) -> Self {
        Bound { most, shared: None }
    }

    /// Has `shared` asked from here on.
    pub fn share(&mut self, shared: Arc<dyn Growth>) {
        self.shared = Some(shared);
    }

    /// That of a copy, which shares with nobody yet.
    pub fn alone(&self) -> Self {
        Self::of(self.most)
    }

    /// True where no filter is too large.
    pub fn is_open(&self) -> bool {
        self.most == u64::MAX && self.shared.is_none()
    }

    /// True where a filter may grow by `more` bytes, which are its own from here on. Asked last, before it grows.
    pub fn take(&self, more: u64) -> bool {
        self.shared.as_ref().is_none_or(|shared| shared.take(more))
    }
}
