//! Waiting for other threads without a system call while they are about to be done.

/// Spins before a waiting thread offers its core to others: some 50 us.
const SPINS: usize = 2000;

/// How long a thread has waited. A lock of the system puts the waiting thread to sleep and wakes it, which
/// costs 50 to 100 us on a virtual machine, as much as a round of keys.
#[derive(Default)]
pub(super) struct Backoff {
    spins: usize,
}

impl Backoff {
    /// A moment between two looks at what is waited for.
    pub(super) fn pause(&mut self) {
        self.spins += 1;
        if self.spins < SPINS {
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}
