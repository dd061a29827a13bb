//! `in`, `add`, `remove` and `discard` without the binding's general entry path.
//!
//! PyO3 enters every method through a trampoline (thread-local counters, unwinding, argument
//! parsing): 190 instructions for an `in` of an int, 340 for an `add`, of which the filter needs
//! 60. The functions below are the same methods written against the C interface: exact `str`,
//! `int` and `bytes` take the fast path, everything else (and every error) the slow one. They
//! are passed to PyO3 through the inventory that its own macros use, hence the exact version in
//! `Cargo.toml`. The feature `stubs` replaces them by the ordinary methods, for their signatures.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

use fullbloom_core::key::{Domain, KeyDomains, KeyHasher};
use fullbloom_core::structure::{Addable, Countable, Filter, Removable};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::{PyClass, ffi};

use super::{shared, times};
use crate::errors::OrRaise;
use crate::keys::scalar::{hash_exact, hash_key_in, short_int};
use crate::locking::biased_lock::BiasedLock;
use crate::operations::warnings::{expect, hash_lookup};
use crate::parameters;

/// A class with methods of one key.
pub(crate) trait Hot: PyClass<Frozen = pyo3::pyclass::boolean_struct::True> + Sync {
    /// The structure behind it.
    type Core: Filter + 'static;
    /// How its keys become hashes.
    fn hasher(&self) -> &KeyHasher;
    /// The structure.
    fn lock(&self) -> &BiasedLock<Self::Core>;
}

/// The instance behind `slf`.
///
/// # Safety
/// `slf` must be a live instance of `C`, which the slot or method descriptor has checked; the
/// thread must be attached. The reference must not outlive the call.
#[inline(always)]
unsafe fn instance<'a, C: Hot>(py: Python<'a>, slf: *mut ffi::PyObject) -> &'a C {
    // SAFETY: the caller's promise; a live object is not null.
    unsafe {
        std::hint::assert_unchecked(!slf.is_null());
        Borrowed::from_ptr(py, slf).cast_unchecked::<C>()
    }
    .get()
}

/// `key in filter`. The whole path of an `int` under the public hash, while no batch runs: a leaf
/// except for the lookup in the line, so that it saves no registers. Beyond 100 MB the instructions of a
/// key decide how many lines the processor waits for at a time.
///
/// # Safety
/// Called by the interpreter as `sq_contains` of `C`.
pub(crate) unsafe extern "C" fn contains<C: Hot>(slf: *mut ffi::PyObject, key: *mut ffi::PyObject) -> c_int {
    // SAFETY: the interpreter calls with an attached thread and live objects, `slf` of type C.
    unsafe {
        let py = Python::assume_attached();
        let this = instance::<C>(py, slf);
        if let Some(value) = short_int(key)
            && let Some(hash) = this.hasher().signed_in_public(value)
            && let Some(Some(found)) = this
                .lock()
                .read_at_once(py, |filter| filter.expects(KeyDomains::of(Domain::Integer)).then(|| filter.look(hash)))
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
        if let Some((hash, domain)) = hash_exact(this.hasher(), key)
            && let Some(found) = this
                .lock()
                .read(py, |filter| filter.expects(KeyDomains::of(domain)).then(|| filter.contains_hash(hash)))
        {
            return c_int::from(found);
        }
        contains_any::<C>(slf, key)
    }
}

/// [`contains`] for any key. A function of its own, so that the fast path saves no registers for it.
///
/// # Safety
/// As [`contains`].
#[cold]
#[inline(never)]
unsafe fn contains_any<C: Hot>(slf: *mut ffi::PyObject, key: *mut ffi::PyObject) -> c_int {
    run_ordinary(&|py| {
        // SAFETY: as in `contains`.
        let (this, key) = unsafe { (instance::<C>(py, slf), Bound::from_borrowed_ptr(py, key)) };
        let hash = hash_lookup(this.lock(), this.hasher(), &key)?;
        Ok(this.lock().read(py, |filter| filter.contains_hash(hash)))
    })
}

/// A method that takes one key, by position.
pub(crate) trait Method<C: Hot> {
    /// Its name.
    const NAME: &'static str;
    /// True if the domain of the key needs neither a record nor a warning.
    fn is_known(filter: &C::Core, domains: KeyDomains) -> bool;
    /// The result, if it needs no warning and no error.
    fn run_fast(filter: &mut C::Core, hash: u64) -> Option<bool>;
    /// The result, with warnings and errors.
    fn run_slow(this: &C, hashed: (u64, KeyDomains), key: &Bound<'_, PyAny>) -> PyResult<bool>;
    /// The result as an immortal object.
    fn object(answer: bool) -> *mut ffi::PyObject;
    /// Its arguments, for an error.
    const TAKES: &'static str = "exactly one argument, the key, by position";
    /// How many arguments these may be.
    const MOST: ffi::Py_ssize_t = 1;
    /// The result for a key and a number of times, the second argument.
    fn run_times(this: &C, hashed: (u64, KeyDomains), key: &Bound<'_, PyAny>, _times: u64) -> PyResult<bool> {
        Self::run_slow(this, hashed, key)
    }
}

/// A method that can also do at once what many calls with one key do.
pub(crate) trait Repeated<C: Hot>: Method<C> {
    /// The result.
    fn repeat(this: &C, hashed: (u64, KeyDomains), key: &Bound<'_, PyAny>, times: u64) -> PyResult<bool>;
}

/// The method `M` of one key, and a number of times behind it.
pub(crate) struct Times<M>(PhantomData<M>);

impl<C: Hot, M: Repeated<C>> Method<C> for Times<M> {
    const NAME: &'static str = M::NAME;
    const TAKES: &'static str = "one or two arguments, the key and a number of times, by position";
    const MOST: ffi::Py_ssize_t = 2;

    #[inline(always)]
    fn is_known(filter: &C::Core, domains: KeyDomains) -> bool {
        M::is_known(filter, domains)
    }

    #[inline(always)]
    fn run_fast(filter: &mut C::Core, hash: u64) -> Option<bool> {
        M::run_fast(filter, hash)
    }

    fn run_slow(this: &C, hashed: (u64, KeyDomains), key: &Bound<'_, PyAny>) -> PyResult<bool> {
        M::run_slow(this, hashed, key)
    }

    #[inline(always)]
    fn object(answer: bool) -> *mut ffi::PyObject {
        M::object(answer)
    }

    fn run_times(this: &C, hashed: (u64, KeyDomains), key: &Bound<'_, PyAny>, times: u64) -> PyResult<bool> {
        M::repeat(this, hashed, key, times)
    }
}

/// `filter.add(key)`.
pub(crate) struct Add;

impl<C: Hot<Core: Addable>> Method<C> for Add {
    const NAME: &'static str = "add";

    #[inline(always)]
    fn is_known(filter: &C::Core, domains: KeyDomains) -> bool {
        filter.hasher().domains().holds(domains)
    }

    #[inline(always)]
    fn run_fast(filter: &mut C::Core, hash: u64) -> Option<bool> {
        filter.add_quietly(hash)
    }

    fn run_slow(this: &C, hashed: (u64, KeyDomains), key: &Bound<'_, PyAny>) -> PyResult<bool> {
        shared::add_one(key.py(), this.lock(), hashed)
    }

    #[inline(always)]
    fn object(answer: bool) -> *mut ffi::PyObject {
        truth(answer)
    }
}

impl<C: Hot<Core: Addable + Countable>> Repeated<C> for Add {
    fn repeat(this: &C, hashed: (u64, KeyDomains), key: &Bound<'_, PyAny>, count: u64) -> PyResult<bool> {
        times::add(key.py(), this.lock(), hashed, count)
    }
}

#[inline(always)]
fn truth(answer: bool) -> *mut ffi::PyObject {
    // SAFETY: the addresses of two statics.
    unsafe { if answer { ffi::Py_True() } else { ffi::Py_False() } }
}

/// `filter.remove(key)`.
pub(crate) struct Remove;

impl<C: Hot<Core: Removable>> Method<C> for Remove {
    const NAME: &'static str = "remove";

    #[inline(always)]
    fn is_known(filter: &C::Core, domains: KeyDomains) -> bool {
        filter.expects(domains)
    }

    #[inline(always)]
    fn run_fast(filter: &mut C::Core, hash: u64) -> Option<bool> {
        filter.remove_hash(hash).ok().filter(|removed| *removed)
    }

    /// Tries again if the fast path removed nothing.
    fn run_slow(this: &C, hashed: (u64, KeyDomains), key: &Bound<'_, PyAny>) -> PyResult<bool> {
        shared::remove_one(this.lock(), expect_key(this, hashed, key)?, key).map(|()| true)
    }

    #[inline(always)]
    fn object(_: bool) -> *mut ffi::PyObject {
        // SAFETY: the address of a static.
        unsafe { ffi::Py_None() }
    }
}

impl<C: Hot<Core: Addable + Removable + Countable>> Repeated<C> for Remove {
    fn repeat(this: &C, hashed: (u64, KeyDomains), key: &Bound<'_, PyAny>, count: u64) -> PyResult<bool> {
        let hash = expect_key(this, hashed, key)?;
        if times::remove(key.py(), this.lock(), hash, count)? { Ok(true) } else { Err(shared::absent(key)) }
    }
}

/// `filter.discard(key)`.
pub(crate) struct Discard;

impl<C: Hot<Core: Removable>> Method<C> for Discard {
    const NAME: &'static str = "discard";

    #[inline(always)]
    fn is_known(filter: &C::Core, domains: KeyDomains) -> bool {
        filter.expects(domains)
    }

    #[inline(always)]
    fn run_fast(filter: &mut C::Core, hash: u64) -> Option<bool> {
        filter.remove_hash(hash).ok()
    }

    fn run_slow(this: &C, hashed: (u64, KeyDomains), key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let hash = expect_key(this, hashed, key)?;
        this.lock().write(key.py(), |filter| filter.remove_hash(hash)).or_raise(key.py())
    }

    #[inline(always)]
    fn object(answer: bool) -> *mut ffi::PyObject {
        truth(answer)
    }
}

impl<C: Hot<Core: Addable + Removable + Countable>> Repeated<C> for Discard {
    fn repeat(this: &C, hashed: (u64, KeyDomains), key: &Bound<'_, PyAny>, count: u64) -> PyResult<bool> {
        times::remove(key.py(), this.lock(), expect_key(this, hashed, key)?, count)
    }
}

/// `filter.add(key)`, `filter.remove(key)` and `filter.discard(key)`.
///
/// # Safety
/// Called by the interpreter as a method of `C` with the fastcall convention.
pub(crate) unsafe extern "C" fn method<C: Hot, M: Method<C>>(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter calls with an attached thread and live objects, `slf` of type C, and `nargs`
    // arguments.
    unsafe {
        if nargs == 1 && kwnames.is_null() {
            let py = Python::assume_attached();
            let this = instance::<C>(py, slf);
            if let Some((hash, domain)) = hash_exact(this.hasher(), *args)
                && let Some(answer) = this.lock().write(py, |filter| {
                    if M::is_known(filter, KeyDomains::of(domain)) { M::run_fast(filter, hash) } else { None }
                })
            {
                return ffi::Py_NewRef(M::object(answer));
            }
        }
        method_any::<C, M>(slf, args, nargs, kwnames)
    }
}

/// [`method`] for any key, with its warnings and errors.
///
/// # Safety
/// As [`method`].
#[cold]
#[inline(never)]
unsafe fn method_any<C: Hot, M: Method<C>>(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let answer = run_ordinary(&|py| {
        if !(1..=M::MOST).contains(&nargs) || !kwnames.is_null() {
            return Err(PyTypeError::new_err(format!("{}() takes {}", M::NAME, M::TAKES)));
        }
        // SAFETY: as in `method`; there is an argument.
        let (this, key) = unsafe { (instance::<C>(py, slf), Bound::from_borrowed_ptr(py, *args)) };
        if nargs == 1 {
            return M::run_slow(this, hash_key(this, &key)?, &key);
        }
        // SAFETY: as above; there are two.
        let count = unsafe { Bound::from_borrowed_ptr(py, *args.add(1)) };
        let count = parameters::parse_whole("times", &count, 1)?;
        M::run_times(this, hash_key(this, &key)?, &key, count)
    });
    // SAFETY: the thread is attached; the object is immortal.
    if answer < 0 { std::ptr::null_mut() } else { unsafe { ffi::Py_NewRef(M::object(answer == 1)) } }
}

/// Hashes `key`; returns its domain, too.
pub(super) fn hash_key<C: Hot>(this: &C, key: &Bound<'_, PyAny>) -> PyResult<(u64, KeyDomains)> {
    hash_key_in(this.hasher(), key).map(|(hash, domain)| (hash, KeyDomains::of(domain)))
}

/// The hash of a key that is looked up, with a warning if no key of its type was added.
fn expect_key<C: Hot>(this: &C, (hash, domains): (u64, KeyDomains), key: &Bound<'_, PyAny>) -> PyResult<u64> {
    expect(key.py(), this.lock(), domains).map(|()| hash)
}

/// Runs `work` as PyO3 does: errors are raised, and a panic becomes an exception.
#[cold]
#[inline(never)]
fn run_ordinary(work: &dyn Fn(Python<'_>) -> PyResult<bool>) -> c_int {
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

/// Adds `in` to `$Class`, and `add`, by `$Add`, if there is one.
macro_rules! hot_methods {
    ($Class:ident, $Core:ty $(, $Add:ty, $add_doc:expr)?) => {
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

        crate::classes::hot::hot_items!(
            $Class,
            [$(crate::classes::hot::hot_method!($Class, c"add", $Add, $add_doc))?],
            [pyo3::ffi::PyType_Slot {
                slot: pyo3::ffi::Py_sq_contains,
                pfunc: crate::classes::hot::contains::<$Class> as *mut std::ffi::c_void,
            }]
        );
    };
}

/// A method of `$Class` as PyO3 knows it.
#[cfg(not(feature = "stubs"))]
macro_rules! hot_method {
    ($Class:ident, $name:literal, $Method:ty, $doc:expr) => {
        pyo3::impl_::pymethods::PyMethodDefType::Method(
            pyo3::impl_::pymethods::PyMethodDef::fastcall_cfunction_with_keywords(
                $name,
                crate::classes::hot::method::<$Class, $Method>,
                $doc,
            ),
        )
    };
}

/// Passes methods of `$Class` and its slots to PyO3.
macro_rules! hot_items {
    ($Class:ident, $name:literal, $Method:ty, $doc:expr, $slots:expr) => {
        crate::classes::hot::hot_items!(
            $Class,
            [crate::classes::hot::hot_method!($Class, $name, $Method, $doc)],
            $slots
        );
    };
    ($Class:ident, $methods:expr, $slots:expr) => {
        #[cfg(not(feature = "stubs"))]
        const _: () = {
            use pyo3::impl_::pyclass::{PyClassImpl, PyClassItems};

            const METHODS: &[pyo3::impl_::pymethods::PyMethodDefType] = &$methods;
            const SLOTS: &[pyo3::ffi::PyType_Slot] = &$slots;
            pyo3::inventory::submit! {
                type Inventory = <$Class as PyClassImpl>::Inventory;
                Inventory::new(PyClassItems { methods: METHODS, slots: SLOTS })
            }
        };
    };
}

#[cfg(not(feature = "stubs"))]
pub(crate) use hot_method;
pub(crate) use {hot_items, hot_methods};
