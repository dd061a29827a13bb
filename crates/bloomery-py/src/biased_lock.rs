//! [`BiasedLock`]: a filter shared by Python threads, safe without atomics on the scalar path.
//!
//! Two kinds of visitor exist. *Attached* ones hold the GIL for their whole visit; they exclude
//! each other by that alone. *Detached* ones (batches) announce themselves while they still hold
//! the GIL, release it, and take the lock for a chunk at a time. An attached visitor that finds no
//! one announced therefore owns the filter outright; otherwise it queues for the lock (without the
//! GIL), for at most the length of a chunk or of a save. An attached visit costs one load and a branch;
//! atomic bit operations would cost a batch three to ten times its whole time.

use pyo3::prelude::*;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};
use std::time::Duration;

/// The lock around a filter.
pub(crate) struct BiasedLock<T> {
    value: UnsafeCell<T>,
    detached: AtomicUsize,
    waiting: AtomicUsize,
    lock: RwLock<()>,
}

// SAFETY: every access to `value` is made under the protocol above: attached visitors under the
// GIL with no detached visitor announced, or anyone under `lock`. The module does not declare
// itself free of the GIL, so the interpreter provides it.
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

    /// Looks at the filter while attached. `visit` cannot run Python code: it gets no token.
    #[inline(always)]
    pub(crate) fn read<R>(&self, py: Python<'_>, visit: impl FnOnce(&T) -> R + Send) -> R {
        let _guard = if self.detached.load(Ordering::Acquire) == 0 { None } else { Some(self.wait_read(py)) };
        // SAFETY: the GIL is held and no detached visitor exists, or the read lock is held.
        visit(unsafe { &*self.value.get() })
    }

    /// [`BiasedLock::read`] if that takes no waiting.
    #[inline(always)]
    pub(crate) fn read_at_once<R>(&self, _py: Python<'_>, visit: impl FnOnce(&T) -> R + Send) -> Option<R> {
        if self.detached.load(Ordering::Acquire) != 0 {
            return None;
        }
        // SAFETY: the GIL is held and no detached visitor exists.
        Some(visit(unsafe { &*self.value.get() }))
    }

    /// Changes the filter while attached.
    #[inline(always)]
    pub(crate) fn write<R>(&self, py: Python<'_>, visit: impl FnOnce(&mut T) -> R + Send) -> R {
        let _guard = if self.detached.load(Ordering::Acquire) == 0 { None } else { Some(self.wait_write(py)) };
        // SAFETY: the GIL is held and no detached visitor exists, or the write lock is held; the
        // closure cannot come back here, having no token.
        visit(unsafe { &mut *self.value.get() })
    }

    /// The read lock; while someone else has it, other Python threads go on.
    #[cold]
    fn wait_read(&self, py: Python<'_>) -> RwLockReadGuard<'_, ()> {
        let _queued = Count::up(&self.waiting);
        loop {
            match self.lock.try_read() {
                Ok(guard) => return guard,
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => py.detach(|| drop(self.lock.read())),
            }
        }
    }

    /// The write lock; while someone else has it, other Python threads go on.
    #[cold]
    fn wait_write(&self, py: Python<'_>) -> RwLockWriteGuard<'_, ()> {
        let _queued = Count::up(&self.waiting);
        loop {
            match self.lock.try_write() {
                Ok(guard) => return guard,
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => py.detach(|| drop(self.lock.write())),
            }
        }
    }

    /// Looks at the whole filter, which takes a while, without the GIL.
    pub(crate) fn look<R: Send>(&self, py: Python<'_>, visit: impl FnOnce(&T) -> R + Send) -> R {
        self.detach(py, |session| session.read(visit))
    }

    /// Looks at two filters while attached; `other` may be this one. Waits with the GIL held, as
    /// nobody who needs it can be in the way: two locks are never awaited in two orders.
    pub(crate) fn read_both<R>(&self, other: &Self, py: Python<'_>, visit: impl FnOnce(&T, &T) -> R + Send) -> R {
        if std::ptr::eq(self, other) {
            return self.read(py, |a| visit(a, a));
        }
        let (_mine, _theirs) = (self.shared(), other.shared());
        // SAFETY: for each, either the GIL is all it takes, or the read lock is held.
        visit(unsafe { &*self.value.get() }, unsafe { &*other.value.get() })
    }

    /// Changes this filter while looking at `other`, which must be another one; waits as above.
    pub(crate) fn write_from<R>(&self, other: &Self, _py: Python<'_>, visit: impl FnOnce(&mut T, &T) -> R + Send) -> R {
        assert!(!std::ptr::eq(self, other));
        let _theirs = other.shared();
        let _mine = match self.detached.load(Ordering::Acquire) {
            0 => None,
            _ => Some(self.lock.write().unwrap_or_else(PoisonError::into_inner)),
        };
        // SAFETY: as in `read_both`, with the write lock on `self`; they are different values.
        visit(unsafe { &mut *self.value.get() }, unsafe { &*other.value.get() })
    }

    /// The read lock, where detached visitors make it necessary.
    fn shared(&self) -> Option<RwLockReadGuard<'_, ()>> {
        match self.detached.load(Ordering::Acquire) {
            0 => None,
            _ => Some(self.lock.read().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Releases the GIL for `work`, which visits the filter through the [`Session`].
    pub(crate) fn detach<R: Send>(&self, py: Python<'_>, work: impl FnOnce(Session<'_, T>) -> R + Send) -> R {
        let announced = Count::up(&self.detached);
        let result = py.detach(|| work(Session(self)));
        drop(announced);
        result
    }
}

/// One more visitor of a kind, until dropped, also by unwinding.
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
    /// Between chunks, lets attached visitors in: the lock alone is not fair, and a batch would
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
        // SAFETY: the read lock is held and this visitor is announced.
        visit(unsafe { &*self.0.value.get() })
    }

    /// Changes, alone.
    pub(crate) fn write<R>(&self, visit: impl FnOnce(&mut T) -> R) -> R {
        self.give_way();
        let _guard = self.0.lock.write().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the write lock is held and this visitor is announced.
        visit(unsafe { &mut *self.0.value.get() })
    }
}
