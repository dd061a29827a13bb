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

impl Default for Limits {
    fn default() -> Self {
        Limits {
            filter_bytes: 4 << 30,
            total_bytes: 16 << 30,
            filters: 1_000_000,
            request_bytes: 64 << 20,
            batch_keys: 1_000_000,
            key_bytes: 64 << 10,
            connections: 10_000,
            receive: Duration::from_secs(30),
        }
    }
}
