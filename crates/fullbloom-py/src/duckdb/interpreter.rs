//! The interpreter in callbacks of DuckDB.
//!
//! DuckDB calls from threads of its own, and from those of Python programs, some of which are attached. PyO3 counts its own
//! calls to know whether a thread is attached, and does not see that DuckDB's module has released the GIL below one of
//! them: a batch that reads a query, for example. So nothing here relies on that count, and a reference is dropped only
//! where the thread is attached in fact.

use std::ffi::c_int;
use std::sync::{Mutex, OnceLock, PoisonError};

use pyo3::ffi;
use pyo3::prelude::*;

use super::api::find_in_process;
use super::filters::VisitedFilter;

/// Whether this thread is attached; `None` if that cannot be known.
pub(super) fn is_attached() -> Option<bool> {
    type Check = unsafe extern "C" fn() -> c_int;
    static CHECK: OnceLock<Option<Check>> = OnceLock::new();
    // Every CPython exports the function, but the stable ABI does not promise it, so it is found by name.
    let check = CHECK.get_or_init(|| {
        let found = find_in_process("PyGILState_Check")?;
        // SAFETY: CPython's declaration.
        Some(unsafe { std::mem::transmute::<*mut std::ffi::c_void, Check>(found) })
    });
    // SAFETY: any thread may call it.
    check.map(|check| unsafe { check() } != 0)
}

/// Runs `work` while this thread is attached; `None` without an interpreter.
pub(super) fn with_interpreter<R>(work: impl FnOnce(Python<'_>) -> R) -> Option<R> {
    /// Restores the state of the thread, also by unwinding.
    struct Attached(ffi::PyGILState_STATE);
    impl Drop for Attached {
        fn drop(&mut self) {
            // SAFETY: once for each `PyGILState_Ensure`, on its thread.
            unsafe { ffi::PyGILState_Release(self.0) };
        }
    }
    // SAFETY: any thread may call these two.
    unsafe {
        if ffi::Py_IsInitialized() == 0 {
            return None;
        }
        let _attached = Attached(ffi::PyGILState_Ensure());
        Some(work(Python::assume_attached()))
    }
}

/// Runs `work`, which takes locks, while this thread is not attached: another may hold a lock and wait for the interpreter.
pub(super) fn detached<R>(work: impl FnOnce() -> R) -> R {
    /// Attaches the thread again, also by unwinding.
    struct Detached(*mut ffi::PyThreadState);
    impl Drop for Detached {
        fn drop(&mut self) {
            // SAFETY: the state of this thread, saved below.
            unsafe { ffi::PyEval_RestoreThread(self.0) };
        }
    }
    if is_attached() == Some(false) {
        return work();
    }
    let mut work = Some(work);
    let result = with_interpreter(|_| {
        // SAFETY: this thread is attached.
        let _detached = Detached(unsafe { ffi::PyEval_SaveThread() });
        work.take().map(|work| work())
    });
    match (result.flatten(), work) {
        (Some(result), _) => result,
        // Without an interpreter, no other thread waits for it.
        (None, Some(work)) => work(),
        (None, None) => unreachable!("the work was done"),
    }
}

/// A reference that waits for an attached thread.
pub(super) enum Retired {
    Object(Py<PyAny>),
    Filter(Box<dyn VisitedFilter>),
}

static RETIRED: Mutex<Vec<Retired>> = Mutex::new(Vec::new());

/// Drops references: at once if this thread is attached, else with the next call that needs the interpreter. To wait for it
/// here could wait for a thread that waits for the end of this query.
pub(super) fn retire(references: impl IntoIterator<Item = Retired>) {
    RETIRED.lock().unwrap_or_else(PoisonError::into_inner).extend(references);
    if is_attached() == Some(true) {
        with_interpreter(drop_retired);
    }
}

/// Drops the references that wait.
pub(super) fn drop_retired(py: Python<'_>) {
    let retired = std::mem::take(&mut *RETIRED.lock().unwrap_or_else(PoisonError::into_inner));
    for one in retired {
        match one {
            Retired::Object(object) => drop(object.into_bound(py)),
            Retired::Filter(filter) => drop(filter),
        }
    }
}
