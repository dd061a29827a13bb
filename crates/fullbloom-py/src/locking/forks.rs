//! Forks: a child process ignores the locks of threads that it does not have.
//!
//! A fork copies the memory of all threads, and only the thread that called it goes on in the child. Announcements and
//! locks of the others would last forever, so each records the [`generation`] of its process and is ignored in another.
//! A table copied while a key moves from cell to cell would stay torn, so a fork waits until every change by a detached
//! thread is between two chunks ([`begin_change`]). Attached threads need no such care: they do not run while another
//! thread forks.
//!
//! The handlers are those of `pthread_atfork`, within the fork itself, rather than of `os.register_at_fork`: they
//! also run for forks by other C code, and no Python code runs while changes wait, which may hold its locks. Changes
//! never wait for the interpreter, so the wait ends.

use pyo3::prelude::*;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

/// Forks between the process that loaded this module and this one, from 1 on.
static GENERATION: AtomicU32 = AtomicU32::new(1);

/// Changes in progress; in the upper half, forks that wait.
static GATE: AtomicU64 = AtomicU64::new(0);
const FORK: u64 = 1 << 32;

/// Pause between two checks for a fork: short compared with a chunk of milliseconds.
const POLL: Duration = Duration::from_micros(20);
/// After this many checks, some ten seconds, a fork goes on: a signal handler called it in a thread that changes a
/// filter.
#[cfg(unix)]
const MAX_POLLS: usize = 100_000;

/// The generation of this process: 1, and one more for each fork between the process that loaded the module and it.
#[inline(always)]
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// A change in progress, until dropped.
pub(crate) struct Change(());

impl Drop for Change {
    fn drop(&mut self) {
        GATE.fetch_sub(1, Ordering::Release);
    }
}

/// Begins a change by a detached thread; waits while a fork waits.
pub(crate) fn begin_change() -> Change {
    loop {
        let open = |seen| (seen < FORK).then_some(seen + 1);
        if GATE.fetch_update(Ordering::Acquire, Ordering::Relaxed, open).is_ok() {
            return Change(());
        }
        sleep(POLL);
    }
}

#[cfg(unix)]
extern "C" fn before() {
    GATE.fetch_add(FORK, Ordering::AcqRel);
    for _ in 0..MAX_POLLS {
        if GATE.load(Ordering::Acquire).is_multiple_of(FORK) {
            return;
        }
        sleep(POLL);
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

/// Makes every later fork wait for changes in progress; the package calls it when it is imported.
#[cfg(unix)]
#[pyfunction]
#[pyo3(signature = () -> "None")]
pub(crate) fn watch_forks() -> PyResult<()> {
    type Handler = extern "C" fn();
    unsafe extern "C" {
        fn pthread_atfork(before: Handler, in_parent: Handler, in_child: Handler) -> std::ffi::c_int;
    }
    static DONE: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    // SAFETY: POSIX's declaration; the handlers allocate nothing, take no lock and are never unloaded, since the
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
