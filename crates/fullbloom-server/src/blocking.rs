//! [`aside()`]: blocks without stopping the other connections of the thread.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Runs `work`, which waits for a lock or goes over a whole filter. On a worker of a runtime, another thread takes over
/// the worker's other tasks first.
pub fn run_blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}
