//! [`BiasedLock`]: a reader-writer lock around a filter, biased towards threads that hold the GIL.
//!
//! A thread is *attached* while it may use the interpreter, else *detached*. Under the GIL one thread is
//! attached at a time, so that attached threads exclude each other by that alone. Detached ones (batches)
//! announce themselves while they are still attached, and take the lock for a chunk at a time. An attached
//! thread that finds no one announced therefore owns the filter outright, for one load and a branch; an
//! uncontended lock would cost 15 ns, atomic bit operations three to ten times a whole batch. Otherwise
//! it queues for the lock (detached), for at most the length of a chunk or of a save. Without a GIL many
//! threads are attached at once, so there is no bias: every access takes the lock.
//!
//! Who holds the lock never waits for the interpreter: closures get no token, and no thread attaches anew
//! with the lock in its hands. Hence a thread may, where it must, wait for the lock while attached.

use pyo3::prelude::*;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError, TryLockResult};
use std::time::Duration;

/// How often a thread gives way to others that took the lock before it, then waits for it attached.
const GIVES_WAY: usize = 8;

/// The lock around a filter.
pub(crate) struct BiasedLock<T> {
    value: UnsafeCell<T>,
    detached: AtomicUsize,
    waiting: AtomicUsize,
    lock: RwLock<()>,
}

// SAFETY: every access to `value` is made under the protocol above: attached and under the GIL with no
// detached thread announced, or under `lock`.
unsafe impl<T: Send + Sync> Sync for BiasedLock<T> {}

impl<T: Send + Sync> BiasedLock<T> {
    pub(crate) fn new(value: T) -> Self {
        BiasedLock {
            value: UnsafeCell::new(value),
            detached: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            lock: RwLock::new(()),
        }
    }

    /// Whether the attached thread owns the filter without the lock.
    #[inline(always)]
    fn is_mine(&self, _py: Python<'_>) -> bool {
        cfg!(not(Py_GIL_DISABLED)) && self.detached.load(Ordering::Acquire) == 0
    }

    /// Looks at the filter while attached. `visit` cannot run Python code: it gets no token.
    #[inline(always)]
    pub(crate) fn read<R>(&self, py: Python<'_>, visit: impl FnOnce(&T) -> R + Send) -> R {
        let _guard = if self.is_mine(py) { None } else { Some(self.wait_read(py)) };
        // SAFETY: this thread owns the filter, or the read lock is held.
        visit(unsafe { &*self.value.get() })
    }

    /// [`BiasedLock::read`] if that takes no lock.
    #[inline(always)]
    pub(crate) fn read_at_once<R>(&self, py: Python<'_>, visit: impl FnOnce(&T) -> R + Send) -> Option<R> {
        if !self.is_mine(py) {
            return None;
        }
        // SAFETY: this thread owns the filter.
        Some(visit(unsafe { &*self.value.get() }))
    }

    /// Changes the filter while attached.
    #[inline(always)]
    pub(crate) fn write<R>(&self, py: Python<'_>, visit: impl FnOnce(&mut T) -> R + Send) -> R {
        let _guard = if self.is_mine(py) { None } else { Some(self.wait_write(py)) };
        // SAFETY: this thread owns the filter, or the write lock is held; the closure cannot come back here,
        // having no token.
        visit(unsafe { &mut *self.value.get() })
    }

    /// The read lock; while someone else has it, other Python threads go on.
    #[cold]
    fn wait_read(&self, py: Python<'_>) -> RwLockReadGuard<'_, ()> {
        self.wait(py, || self.lock.try_read(), || self.lock.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The write lock; while someone else has it, other Python threads go on.
    #[cold]
    fn wait_write(&self, py: Python<'_>) -> RwLockWriteGuard<'_, ()> {
        self.wait(py, || self.lock.try_write(), || self.lock.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// The guard that `attempt` or `block` gives. A thread that attaches anew holds no lock, as another may
    /// wait for that lock attached; so it asks again when it is.
    fn wait<G>(&self, py: Python<'_>, attempt: impl Fn() -> TryLockResult<G>, block: impl Fn() -> G + Sync) -> G {
        let ask = || match attempt() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(guard) = ask() {
            return guard;
        }
        let _queued = Count::up(&self.waiting);
        for _ in 0..GIVES_WAY {
            py.detach(|| drop(block()));
            if let Some(guard) = ask() {
                return guard;
            }
        }
        block()
    }

    /// Looks at the whole filter, which takes a while, without the GIL.
    pub(crate) fn look<R: Send>(&self, py: Python<'_>, visit: impl FnOnce(&T) -> R + Send) -> R {
        self.detach(py, |session| session.read(visit))
    }

    /// Looks at two filters while attached; `other` may be this one.
    pub(crate) fn read_both<R>(&self, other: &Self, py: Python<'_>, visit: impl FnOnce(&T, &T) -> R + Send) -> R {
        if std::ptr::eq(self, other) {
            return self.read(py, |a| visit(a, a));
        }
        let _guards = self.in_order(other, || self.shared(py), || other.shared(py));
        // SAFETY: for each, this thread owns the filter, or the read lock is held.
        visit(unsafe { &*self.value.get() }, unsafe { &*other.value.get() })
    }

    /// Changes this filter while looking at `other`, which must be another one.
    pub(crate) fn write_from<R>(&self, other: &Self, py: Python<'_>, visit: impl FnOnce(&mut T, &T) -> R + Send) -> R {
        assert!(!std::ptr::eq(self, other));
        let mine = || (!self.is_mine(py)).then(|| self.lock.write().unwrap_or_else(PoisonError::into_inner));
        let _guards = self.in_order(other, mine, || other.shared(py));
        // SAFETY: as in `read_both`, with the write lock on `self`; they are different values.
        visit(unsafe { &mut *self.value.get() }, unsafe { &*other.value.get() })
    }

    /// Takes the locks of two filters by address, as everybody does who waits for one while holding another:
    /// none of them waits for one that waits for it. They wait attached.
    fn in_order<A, B>(&self, other: &Self, mine: impl FnOnce() -> A, theirs: impl FnOnce() -> B) -> (A, B) {
        if std::ptr::from_ref(self) < std::ptr::from_ref(other) {
            let mine = mine();
            (mine, theirs())
        } else {
            let theirs = theirs();
            (mine(), theirs)
        }
    }

    /// The read lock, where it takes one.
    fn shared(&self, py: Python<'_>) -> Option<RwLockReadGuard<'_, ()>> {
        (!self.is_mine(py)).then(|| self.lock.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Detaches for `work`, which visits the filter through the [`Session`].
    pub(crate) fn detach<R: Send>(&self, py: Python<'_>, work: impl FnOnce(Session<'_, T>) -> R + Send) -> R {
        let announced = Count::up(&self.detached);
        let result = py.detach(|| work(Session(self)));
        drop(announced);
        result
    }
}

/// One more thread of a kind, until dropped, also by unwinding.
struct Count<'a>(&'a AtomicUsize);

impl<'a> Count<'a> {
    fn up(counter: &'a AtomicUsize) -> Self {
        counter.fetch_add(1, Ordering::Relaxed);
        Count(counter)
    }
}

impl Drop for Count<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// The right to visit while detached, a chunk at a time.
pub(crate) struct Session<'a, T>(&'a BiasedLock<T>);

impl<T> Session<'_, T> {
    /// Between chunks, lets attached threads in: the lock alone is not fair, and a batch would
    /// take it again before a waiter wakes. At most 5 ms, should the waiter be held up elsewhere.
    fn give_way(&self) {
        for _ in 0..100 {
            if self.0.waiting.load(Ordering::Acquire) == 0 {
                return;
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    /// Looks, together with other readers.
    pub(crate) fn read<R>(&self, visit: impl FnOnce(&T) -> R) -> R {
        self.give_way();
        let _guard = self.0.lock.read().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the read lock is held and this thread is announced.
        visit(unsafe { &*self.0.value.get() })
    }

    /// Changes, alone.
    pub(crate) fn write<R>(&self, visit: impl FnOnce(&mut T) -> R) -> R {
        self.give_way();
        let _guard = self.0.lock.write().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the write lock is held and this thread is announced.
        visit(unsafe { &mut *self.0.value.get() })
    }
}
