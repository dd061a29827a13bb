//! Work shared among threads, including the calling one.
//!
//! A caller that only waits costs more than an idle core: the kernel places its workers while it still runs, two of
//! them on one core, and moves one away milliseconds later (adding 10 million keys on two threads took 4.0 ns per key by
//! the median, 3.0 at best).

use std::panic::resume_unwind;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Builder};

/// The lock, even after a thread panicked: its panic resumes where the threads are joined.
pub fn lock<T: ?Sized>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does `work` for every part and its number, each on a thread of its own and all of them at a time; the
/// results in order. Gives the parts back, untouched, when the system refuses a thread.
pub fn share<T: Send, R: Send>(parts: Vec<T>, work: impl Fn(usize, T) -> R + Sync) -> Result<Vec<R>, Vec<T>> {
    let jobs: Vec<_> = parts.into_iter().map(|part| Mutex::new(Some(part))).collect();
    let results: Vec<_> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let run = |i: usize| {
        let part = lock(&jobs[i]).take();
        *lock(&results[i]) = part.map(|part| work(i, part));
    };
    let done = on_threads(jobs.len(), &run);
    let untouched = || jobs.into_iter().filter_map(into_value).collect();
    if done { Ok(results.into_iter().filter_map(into_value).collect()) } else { Err(untouched()) }
}

fn into_value<T>(slot: Mutex<Option<T>>) -> Option<T> {
    slot.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `run` with each number below `count`, concurrently; false, and no call, if the system refuses a thread.
/// Compiled once: starting threads is 4 KB of code.
fn on_threads(count: usize, run: &(dyn Fn(usize) + Sync)) -> bool {
    // The system there refuses every thread; known at compile time, that leaves 16 kB out of the module.
    if cfg!(all(target_family = "wasm", not(target_feature = "atomics"))) {
        (0..count.min(1)).filter(|_| count == 1).for_each(run);
        return count <= 1;
    }
    let complete = OnceLock::new();
    let when_complete = |i: usize| {
        if *complete.wait() {
            run(i);
        }
    };
    thread::scope(|scope| {
        let run = &when_complete;
        let workers = (1..count).map(|i| Builder::new().spawn_scoped(scope, move || run(i)));
        let workers: Result<Vec<_>, _> = workers.collect();
        complete.get_or_init(|| workers.is_ok());
        (0..count.min(1)).for_each(run);
        let Ok(workers) = workers else { return false };
        workers.into_iter().for_each(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
        true
    })
}

/// Does `work` for every part on `threads` threads, each of which takes the next part when it is free: with equal
/// shares, one thread would wait for the time that the machine takes from the other (10 million lookups on two threads
/// of a host that takes 2 % of each core: 2.88 ns per key, and 2.78 with a queue). One thread does it all if the system
/// refuses others.
pub fn queue<T: Send>(parts: impl Iterator<Item = T> + Send, threads: usize, work: impl Fn(T) + Sync) {
    let parts = Mutex::new(parts);
    let next = || lock(&parts).next();
    let drain = || {
        while let Some(part) = next() {
            work(part);
        }
    };
    if share(vec![(); threads], |_, ()| drain()).is_err() {
        drain();
    }
}

/// Spins before a waiting thread offers its core to others: some 50 us.
const SPINS: usize = 2000;

/// How long a thread has waited. A lock of the system puts the waiting thread to sleep and wakes it, which
/// costs 50 to 100 us on a virtual machine, as much as a round of keys.
#[derive(Default)]
pub(super) struct Backoff {
    spins: usize,
}

impl Backoff {
    /// Waits a moment between two checks.
    pub(super) fn pause(&mut self) {
        self.spins += 1;
        if self.spins < SPINS {
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}
