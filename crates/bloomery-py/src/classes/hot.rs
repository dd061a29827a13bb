//! `in`, `add` and `remove` without the binding's general entry path.
//!
//! PyO3 enters every method through a trampoline (thread-local counters, unwinding, argument
//! parsing): 190 instructions for an `in` of an int, 340 for an `add`, of which the filter needs
//! 60. The functions below are the same methods written against the C interface: exact `str`,
//! `int` and `bytes` take the short way, everything else (and every error) the ordinary one. They
//! are handed to PyO3 through the inventory that its own macros use, hence the exact version in
//! `Cargo.toml`. With the feature `stubs` the ordinary methods stand in, for their signatures.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bloomery_core::key::KeyHasher;
use bloomery_core::structure::{Addable, Filter, Removable};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::{PyClass, ffi};

use super::shared;
use crate::biased_lock::BiasedLock;
use crate::keys::scalar::{hash_exact, hash_key, short_int};

/// A class whose keys come one by one.
pub(crate) trait Hot: PyClass<Frozen = pyo3::pyclass::boolean_struct::True> + Sync {
    /// The structure behind it.
    type Core: Addable + 'static;
    /// How its keys become hashes.
    fn hasher(&self) -> &KeyHasher;
    /// The structure.
    fn lock(&self) -> &BiasedLock<Self::Core>;
}

/// The instance behind `slf`.
///
/// # Safety
/// `slf` must be a live instance of `C`, which the slot or method descriptor has checked; the GIL
/// must be held. The reference must not outlive the call.
#[inline(always)]
unsafe fn instance<'a, C: Hot>(py: Python<'a>, slf: *mut ffi::PyObject) -> &'a C {
    // SAFETY: the caller's promise; a live object is not null.
    unsafe {
        std::hint::assert_unchecked(!slf.is_null());
        Borrowed::from_ptr(py, slf).cast_unchecked::<C>()
    }
    .get()
}

/// `key in filter`. The whole way of an `int` under the public hash, while no batch runs: a leaf
/// but for the look at the line, so that it saves no registers. Beyond 100 MB the instructions of a
/// key decide how many lines the processor waits for at a time.
///
/// # Safety
/// Called by the interpreter as `sq_contains` of `C`.
pub(crate) unsafe extern "C" fn contains<C: Hot>(slf: *mut ffi::PyObject, key: *mut ffi::PyObject) -> c_int {
    // SAFETY: the interpreter holds the GIL and passes live objects, `slf` of type C.
    unsafe {
        let py = Python::assume_attached();
        let this = instance::<C>(py, slf);
        if let Some(value) = short_int(key)
            && let Some(hash) = this.hasher().signed_in_public(value)
            && let Some(found) = this.lock().read_at_once(py, |filter| filter.look(hash))
        {
            return found;
        }
        contains_exact::<C>(slf, key)
    }
}

/// [`contains`] for the exact classes of keys.
///
/// # Safety
/// As [`contains`].
#[inline(never)]
unsafe extern "C" fn contains_exact<C: Hot>(slf: *mut ffi::PyObject, key: *mut ffi::PyObject) -> c_int {
    // SAFETY: as in `contains`.
    unsafe {
        let py = Python::assume_attached();
        let this = instance::<C>(py, slf);
        if let Some(hash) = hash_exact(this.hasher(), key) {
            return c_int::from(this.lock().read(py, |filter| filter.contains_hash(hash)));
        }
        contains_any::<C>(slf, key)
    }
}

/// [`contains`] for any key. Apart, so that the short way saves no registers for it.
///
/// # Safety
/// As [`contains`].
#[cold]
#[inline(never)]
unsafe fn contains_any<C: Hot>(slf: *mut ffi::PyObject, key: *mut ffi::PyObject) -> c_int {
    ordinary(|py| {
        // SAFETY: as in `contains`.
        let (this, key) = unsafe { (instance::<C>(py, slf), Bound::from_borrowed_ptr(py, key)) };
        let hash = hash_key(this.hasher(), &key)?;
        Ok(this.lock().read(py, |filter| filter.contains_hash(hash)))
    })
}

/// `filter.add(key)`.
///
/// # Safety
/// Called by the interpreter as a method of `C` with the fastcall convention.
pub(crate) unsafe extern "C" fn add<C: Hot>(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter holds the GIL and passes live objects, `slf` of type C, and `nargs`
    // arguments.
    unsafe {
        if nargs == 1 && kwnames.is_null() {
            let py = Python::assume_attached();
            let this = instance::<C>(py, slf);
            if let Some(hash) = hash_exact(this.hasher(), *args)
                && let Some(new) = this.lock().write(py, |filter| filter.add_quietly(hash))
            {
                return boolean(new);
            }
        }
        add_any::<C>(slf, args, nargs, kwnames)
    }
}

/// [`add`] for any key, with its warnings and errors.
///
/// # Safety
/// As [`add`].
#[cold]
#[inline(never)]
unsafe fn add_any<C: Hot>(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let answer = ordinary(|py| {
        if nargs != 1 || !kwnames.is_null() {
            return Err(PyTypeError::new_err("add() takes exactly one argument, the key, by position"));
        }
        // SAFETY: as in `add`; there is one argument.
        let (this, key) = unsafe { (instance::<C>(py, slf), Bound::from_borrowed_ptr(py, *args)) };
        let hash = hash_key(this.hasher(), &key)?;
        shared::add_one(py, this.lock(), hash)
    });
    // SAFETY: the GIL is held.
    if answer < 0 { std::ptr::null_mut() } else { unsafe { boolean(answer == 1) } }
}

/// `filter.remove(key)`.
///
/// # Safety
/// Called by the interpreter as a method of `C` with the fastcall convention.
pub(crate) unsafe extern "C" fn remove<C: Hot<Core: Removable>>(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: as in `add`.
    unsafe {
        if nargs == 1 && kwnames.is_null() {
            let py = Python::assume_attached();
            let this = instance::<C>(py, slf);
            if let Some(hash) = hash_exact(this.hasher(), *args)
                && let Ok(true) = this.lock().write(py, |filter| filter.remove_hash(hash))
            {
                return ffi::Py_NewRef(ffi::Py_None());
            }
        }
        remove_any::<C>(slf, args, nargs, kwnames)
    }
}

/// [`remove`] for any key, with its errors. Asks again where the short way removed nothing.
///
/// # Safety
/// As [`remove`].
#[cold]
#[inline(never)]
unsafe fn remove_any<C: Hot<Core: Removable>>(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let answer = ordinary(|py| {
        if nargs != 1 || !kwnames.is_null() {
            return Err(PyTypeError::new_err("remove() takes exactly one argument, the key, by position"));
        }
        // SAFETY: as in `remove`; there is one argument.
        let (this, key) = unsafe { (instance::<C>(py, slf), Bound::from_borrowed_ptr(py, *args)) };
        let hash = hash_key(this.hasher(), &key)?;
        shared::remove_one(this.lock(), hash, &key).map(|()| true)
    });
    // SAFETY: the GIL is held; None lives for ever.
    if answer < 0 { std::ptr::null_mut() } else { unsafe { ffi::Py_NewRef(ffi::Py_None()) } }
}

/// A new reference to True or False.
///
/// # Safety
/// The GIL must be held.
#[inline(always)]
unsafe fn boolean(answer: bool) -> *mut ffi::PyObject {
    // SAFETY: the singletons live for ever; the GIL is held.
    unsafe { ffi::Py_NewRef(if answer { ffi::Py_True() } else { ffi::Py_False() }) }
}

/// Runs `work` the ordinary way: errors are raised, and a panic becomes an exception.
#[cold]
fn ordinary(work: impl FnOnce(Python<'_>) -> PyResult<bool>) -> c_int {
    Python::attach(|py| {
        let result = catch_unwind(AssertUnwindSafe(|| work(py)));
        match result.unwrap_or_else(|_| Err(PyRuntimeError::new_err("internal error; please report it"))) {
            Ok(answer) => c_int::from(answer),
            Err(error) => {
                error.restore(py);
                -1
            }
        }
    })
}

/// Gives `$Class` the two methods.
macro_rules! hot_methods {
    ($Class:ident, $Core:ty, $add_doc:expr) => {
        impl crate::classes::hot::Hot for $Class {
            type Core = $Core;

            #[inline(always)]
            fn hasher(&self) -> &KeyHasher {
                &self.hasher
            }

            #[inline(always)]
            fn lock(&self) -> &BiasedLock<$Core> {
                &self.lock
            }
        }

        #[cfg(not(feature = "stubs"))]
        const _: () = {
            use pyo3::impl_::pyclass::{PyClassImpl, PyClassItems};
            use pyo3::impl_::pymethods::{PyMethodDef, PyMethodDefType};

            const METHODS: &[PyMethodDefType] = &[PyMethodDefType::Method(
                PyMethodDef::fastcall_cfunction_with_keywords(c"add", crate::classes::hot::add::<$Class>, $add_doc),
            )];
            const SLOTS: &[pyo3::ffi::PyType_Slot] = &[pyo3::ffi::PyType_Slot {
                slot: pyo3::ffi::Py_sq_contains,
                pfunc: crate::classes::hot::contains::<$Class> as *mut std::ffi::c_void,
            }];
            pyo3::inventory::submit! {
                type Inventory = <$Class as PyClassImpl>::Inventory;
                Inventory::new(PyClassItems { methods: METHODS, slots: SLOTS })
            }
        };
    };
}

/// Gives `$Class` its `remove`.
macro_rules! hot_remove {
    ($Class:ident, $doc:expr) => {
        #[cfg(not(feature = "stubs"))]
        const _: () = {
            use pyo3::impl_::pyclass::{PyClassImpl, PyClassItems};
            use pyo3::impl_::pymethods::{PyMethodDef, PyMethodDefType};

            const METHODS: &[PyMethodDefType] = &[PyMethodDefType::Method(
                PyMethodDef::fastcall_cfunction_with_keywords(c"remove", crate::classes::hot::remove::<$Class>, $doc),
            )];
            pyo3::inventory::submit! {
                type Inventory = <$Class as PyClassImpl>::Inventory;
                Inventory::new(PyClassItems { methods: METHODS, slots: &[] })
            }
        };
    };
}

pub(crate) use {hot_methods, hot_remove};
