//! Forks: what a child process finds of the threads that it does not have.
//!
//! A fork copies the memory of all threads, and only the one that called it goes on in the child. What the
//! others had announced, or locked, would stay so for ever: it bears the [`generation`] it was made in, and is
//! nothing in another. And a table copied while a key moves from cell to cell would stay torn: a fork waits until
//! every change by a detached thread stands between two chunks ([`pass`]). Attached threads need no such care: they
//! do not run while another one forks.
//!
//! The handlers are those of `pthread_atfork`, within the fork itself, rather than of `os.register_at_fork`: forks by
//! other C code are seen too, and nothing of Python's runs while changes wait, whose locks they might hold. Changes
//! never wait for the interpreter, so the wait ends.

use pyo3::prelude::*;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

/// Forks between the process that loaded this module and this one, from 1 on.
static GENERATION: AtomicU32 = AtomicU32::new(1);

/// Changes under way, and forks that are due in the upper half.
static GATE: AtomicU64 = AtomicU64::new(0);
const FORK: u64 = 1 << 32;

/// Looks at the gate: often enough to lose little against a chunk of milliseconds.
const LOOK: Duration = Duration::from_micros(20);
/// After so many looks, some ten seconds, a fork goes on: it was called by a signal handler in a thread that changes.
#[cfg(unix)]
const LOOKS: usize = 100_000;

/// The process, as its forefathers count.
#[inline(always)]
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// A change under way, until dropped.
pub(crate) struct Change(());

impl Drop for Change {
    fn drop(&mut self) {
        GATE.fetch_sub(1, Ordering::Release);
    }
}

/// Begins a change by a detached thread; waits while a fork is due.
pub(crate) fn pass() -> Change {
    loop {
        let open = |seen| (seen < FORK).then_some(seen + 1);
        if GATE.fetch_update(Ordering::Acquire, Ordering::Relaxed, open).is_ok() {
            return Change(());
        }
        sleep(LOOK);
    }
}

#[cfg(unix)]
extern "C" fn before() {
    GATE.fetch_add(FORK, Ordering::AcqRel);
    for _ in 0..LOOKS {
        if GATE.load(Ordering::Acquire).is_multiple_of(FORK) {
            return;
        }
        sleep(LOOK);
    }
}

#[cfg(unix)]
extern "C" fn in_parent() {
    GATE.fetch_sub(FORK, Ordering::Release);
}

#[cfg(unix)]
extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    GATE.store(0, Ordering::Release);
}

/// Has every fork from now on go through the gate; the package calls it when it is imported.
#[cfg(unix)]
#[pyfunction]
#[pyo3(signature = () -> "None")]
pub(crate) fn watch_forks() -> PyResult<()> {
    type Handler = extern "C" fn();
    unsafe extern "C" {
        fn pthread_atfork(before: Handler, in_parent: Handler, in_child: Handler) -> std::ffi::c_int;
    }
    static DONE: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    // SAFETY: POSIX's declaration; the handlers allocate nothing and take no lock, and stay where they are, since the
    // interpreter unloads no extension.
    let done = DONE.get_or_init(|| unsafe { pthread_atfork(before, in_parent, in_child) == 0 });
    if *done {
        Ok(())
    } else {
        Err(pyo3::exceptions::PyMemoryError::new_err("the system has no memory to watch for forks"))
    }
}

/// There are no forks here.
#[cfg(not(unix))]
#[pyfunction]
#[pyo3(signature = () -> "None")]
pub(crate) fn watch_forks() -> PyResult<()> {
    Ok(())
}
