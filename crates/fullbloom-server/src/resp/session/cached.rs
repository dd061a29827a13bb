//! [`CachedEntry`]: the filter that a client's last command used.

use std::sync::Arc;

use crate::store::Entry;

/// The filter that was used last.
pub(super) struct CachedEntry {
    /// The epoch of the catalogue at that time.
    pub(super) epoch: u64,
    pub(super) name: Vec<u8>,
    pub(super) entry: Arc<Entry>,
}
