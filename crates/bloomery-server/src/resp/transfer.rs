//! [`Transfer`]: a filter on its way in pieces.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::halt::{Done, Halt};
use super::server::Server;
use crate::kind::Settings;

/// Bytes of all filters that are on their way in pieces.
const MOST: u64 = 1 << 30;

/// See the head of this file.
pub(super) enum Transfer {
    /// None.
    None,
    /// Out: the filter as it was when its head was asked for.
    Out(Outgoing),
    /// In: for this name.
    In(Box<Incoming>),
}

/// A filter that goes out.
pub(super) struct Outgoing {
    pub(super) id: u64,
    pub(super) bytes: Vec<u8>,
    pub(super) _reserved: Reserved,
}

/// A filter that comes in.
pub(super) struct Incoming {
    pub(super) name: Vec<u8>,
    pub(super) settings: Settings,
    pub(super) bytes: Vec<u8>,
    pub(super) total: usize,
    pub(super) _reserved: Reserved,
}

/// A share of [`MOST`].
pub(super) struct Reserved(Arc<Server>, u64);

impl Reserved {
    pub(super) fn new(server: &Arc<Server>, bytes: u64) -> Done<Self> {
        let taken: &AtomicU64 = &server.on_their_way;
        if taken.fetch_add(bytes, Ordering::AcqRel).saturating_add(bytes) > MOST {
            taken.fetch_sub(bytes, Ordering::AcqRel);
            let text =
                format!("ERR filters of {bytes} bytes more cannot be on their way in pieces: all may have {MOST}");
            return Err(Halt::text(text));
        }
        Ok(Reserved(server.clone(), bytes))
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.0.on_their_way.fetch_sub(self.1, Ordering::AcqRel);
    }
}
