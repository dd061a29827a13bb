//! [`Limits`]: caps on what a client may ask for.

use std::time::Duration;

/// Caps of one service. Every length that a client states is held against one of them before memory is asked for.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of cells of one filter, growth included.
    pub filter_bytes: u64,
    /// Bytes of cells of all filters.
    pub total_bytes: u64,
    /// Filters.
    pub filters: usize,
    /// Bytes held for clients beside the filters: requests, replies, copies. 0: as many as
    /// [`Limits::memory`] derives from the others.
    pub memory_bytes: u64,
    /// Bytes of one request.
    pub request_bytes: usize,
    /// Keys of one request.
    pub batch_keys: usize,
    /// Bytes of one key.
    pub key_bytes: usize,
    /// Connections to the RESP port.
    pub connections: usize,
    /// Time for a request that has begun to arrive, and for a client to take its replies.
    pub receive: Duration,
}

impl Limits {
    /// Bytes held for clients beside the filters: unless they are given, a copy of the largest filter and sixteen of the
    /// largest requests.
    pub fn memory(&self) -> u64 {
        match self.memory_bytes {
            0 => self.filter_bytes.saturating_add(16 * self.request_bytes as u64),
            given => given,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            filter_bytes: 4 << 30,
            total_bytes: 16 << 30,
            filters: 1_000_000,
            memory_bytes: 0,
            request_bytes: 64 << 20,
            batch_keys: 1_000_000,
            key_bytes: 64 << 10,
            connections: 10_000,
            receive: Duration::from_secs(30),
        }
    }
}
