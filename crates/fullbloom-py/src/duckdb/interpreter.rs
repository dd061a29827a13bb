//! The interpreter in callbacks of DuckDB.
//!
//! DuckDB calls from threads of its own, and from those of Python programs, some of which are attached. PyO3 counts its own
//! calls to know whether a thread is attached, and does not see that DuckDB's module has released the GIL below one of
//! them: a batch that reads a query, for example. So nothing here relies on that count, and a reference is dropped only
//! where the thread is attached in fact.

use std::ffi::{c_int, c_void};
use std::sync::{Mutex, OnceLock, PoisonError};

use pyo3::ffi;
use pyo3::prelude::*;

use super::api::find_in_process;
use super::filters::VisitedFilter;

/// A question to CPython. Every version exports the functions, but the stable ABI does not promise them, so they are found
/// by name.
struct Question(OnceLock<Option<unsafe extern "C" fn() -> c_int>>);

impl Question {
    /// The answer of the first function of these names that exists.
    fn ask(&self, names: &[&str]) -> Option<bool> {
        type Function = unsafe extern "C" fn() -> c_int;
        let function = self.0.get_or_init(|| {
            let found = names.iter().find_map(|name| find_in_process(name))?;
            // SAFETY: CPython declares all of them without arguments and with an `int` as their result.
            Some(unsafe { std::mem::transmute::<*mut c_void, Function>(found) })
        });
        // SAFETY: any thread may call them.
        function.map(|function| unsafe { function() } != 0)
    }
}

/// Whether this thread is attached; `None` if that cannot be known.
pub(super) fn is_attached() -> Option<bool> {
    static CHECK: Question = Question(OnceLock::new());
    CHECK.ask(&["PyGILState_Check"])
}

/// Whether the interpreter is shutting down. CPython before 3.14 ends a thread that attaches then.
fn is_finalizing() -> bool {
    static FINALIZING: Question = Question(OnceLock::new());
    FINALIZING.ask(&["Py_IsFinalizing", "_Py_IsFinalizing"]) == Some(true)
}

/// Runs `work` while this thread is attached; `None` without an interpreter, or if it is shutting down.
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
        if ffi::Py_IsInitialized() == 0 || is_finalizing() && is_attached() != Some(true) {
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
