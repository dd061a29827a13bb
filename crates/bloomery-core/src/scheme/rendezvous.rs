//! A meeting point of threads that takes no system call when they arrive together.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Looks before a waiting thread offers its core to others: some 50 us.
const LOOKS: usize = 2000;

/// All `expected` threads wait for the last one, round after round. `std::sync::Barrier` puts each
/// to sleep and wakes it, which costs 50 to 100 us on a virtual machine, a third of a round here.
pub struct Rendezvous {
    expected: usize,
    arrived: AtomicUsize,
    round: AtomicUsize,
}

impl Rendezvous {
    /// For `expected` threads.
    pub fn new(expected: usize) -> Self {
        Rendezvous { expected, arrived: AtomicUsize::new(0), round: AtomicUsize::new(0) }
    }

    /// Returns when all threads have arrived.
    pub fn meet(&self) {
        let round = self.round.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.expected {
            self.arrived.store(0, Ordering::Relaxed);
            self.round.store(round.wrapping_add(1), Ordering::Release);
            return;
        }
        let mut looks = 0;
        while self.round.load(Ordering::Acquire) == round {
            looks += 1;
            if looks < LOOKS {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
    }
}
