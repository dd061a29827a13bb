//! [`Known`]: the filter that was used last.

use std::sync::Arc;

use crate::store::Entry;

/// Its name, and the catalogue's epoch of then.
pub(super) struct Known {
    pub(super) epoch: u64,
    pub(super) name: Vec<u8>,
    pub(super) entry: Arc<Entry>,
}
