//! [`aside()`]: waiting for a lock, or work over a whole filter, without stopping the connections of the same thread.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Does `work` on this thread. On a worker of a runtime, another thread takes over the worker's other tasks first.
pub fn aside<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}
