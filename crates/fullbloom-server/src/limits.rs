//! [`Limits`]: caps on what a client may request.

use std::time::Duration;

/// The caps of one service. Every length that a client states is checked against one of them before anything is
/// allocated.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of cells of one filter, including growth.
    pub filter_bytes: u64,
    /// Bytes of cells of all filters.
    pub total_bytes: u64,
    /// Number of filters.
    pub filters: usize,
    /// Bytes held for clients besides the filters: requests, replies, copies. 0 derives it from the other caps, as
    /// [`Limits::memory`] does.
    pub memory_bytes: u64,
    /// Bytes of one request.
    pub request_bytes: usize,
    /// Keys of one request.
    pub batch_keys: usize,
    /// Bytes of one key.
    pub key_bytes: usize,
    /// Connections to the RESP port.
    pub connections: usize,
    /// The time in which an incomplete request must arrive, and in which a client must take its replies.
    pub receive: Duration,
}

impl Limits {
    /// Bytes held for clients besides the filters: by default a copy of the largest filter and sixteen of the largest
    /// requests.
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
