//! [`BiasedLock`]: a reader-writer lock around a filter, biased towards threads that hold the GIL.
//!
//! A thread is *attached* while it may use the interpreter, else *detached*. Under the GIL one thread is
//! attached at a time, so that attached threads exclude each other by that alone. Detached ones (batches, and
//! whatever touches all of a large filter) announce themselves while they are still attached, and take the lock for
//! a chunk at a time. An attached thread that finds no one announced therefore owns the filter outright, for one load
//! and a branch; an uncontended lock would cost 15 ns, atomic bit operations three to ten times a whole batch.
//! Otherwise it tries to take the lock, and if that is held detaches to wait for it, for at most the length of a chunk or
//! of a save. Without a GIL many threads are attached at once, so there is no bias: every access takes the lock.
//!
//! No thread waits for a lock while attached, so a thread that holds one may wait for the interpreter. A closure that
//! visits a filter cannot run Python code: it gets no token.
//!
//! In a forked child no thread is announced and no lock is held, whatever the state of the parent: see
//! [`super::forks`].

use pyo3::PyClass;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use std::cell::UnsafeCell;
use std::mem::ManuallyDrop;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError, TryLockResult};
use std::time::Duration;

use super::forks;

/// How often a thread yields to others that took the lock before it.
const MAX_YIELDS: usize = 8;

/// From this many bytes on, work that touches all of them runs detached: 0.1 ms. Below that, releasing the GIL and
/// taking it again (up to 5 ms if others compute) costs more than other threads gain.
const LARGE: u64 = 1 << 20;

/// The lock around a filter.
pub(crate) struct BiasedLock<T> {
    value: UnsafeCell<ManuallyDrop<T>>,
    access: Access,
    nbytes: fn(&T) -> u64,
    drop: fn(Python<'_>, T),
}

/// Which threads may visit: all of the lock except the value, so that this code is compiled once.
struct Access {
    /// Threads announced, with the generation in which they are in the upper half; 0 when no thread is announced.
    detached: AtomicU64,
    queue: AtomicPtr<Queue>,
}

/// The lock itself, created when it is first needed, and again in a forked child.
struct Queue {
    generation: u32,
    waiting: AtomicUsize,
    lock: RwLock<()>,
}

// SAFETY: every access to `value` is made under the protocol above: attached and under the GIL with no
// detached thread announced, or under the queue's lock.
unsafe impl<T: Send + Sync> Sync for BiasedLock<T> {}

impl Access {
    /// Whether the attached thread owns the filter without the lock.
    #[inline(always)]
    fn is_owned(&self, _py: Python<'_>) -> bool {
        cfg!(not(Py_GIL_DISABLED)) && self.detached.load(Ordering::Acquire) == 0
    }

    /// [`Access::is_owned`], after announcements by threads of a parent process have been dropped.
    #[cold]
    fn is_owned_after_fork(&self, py: Python<'_>) -> bool {
        let left = |seen| (seen != 0 && generation(seen) != forks::generation()).then_some(0);
        let _ = self.detached.fetch_update(Ordering::AcqRel, Ordering::Relaxed, left);
        self.is_owned(py)
    }

    /// The read lock, if one is needed.
    #[cold]
    fn wait_read(&self, py: Python<'_>) -> Option<RwLockReadGuard<'_, ()>> {
        let owned = self.is_owned_after_fork(py);
        (!owned).then(|| self.queue().wait(py, || self.queue().lock.try_read(), || self.queue().read()))
    }

    /// The write lock, if one is needed.
    #[cold]
    fn wait_write(&self, py: Python<'_>) -> Option<RwLockWriteGuard<'_, ()>> {
        let owned = self.is_owned_after_fork(py);
        (!owned).then(|| self.queue().wait(py, || self.queue().lock.try_write(), || self.queue().write()))
    }

    /// The lock of this process.
    #[inline(never)]
    fn queue(&self) -> &Queue {
        let generation = forks::generation();
        loop {
            let found = self.queue.load(Ordering::Acquire);
            // SAFETY: null, or a queue that is freed with `self` at earliest.
            if let Some(queue) = unsafe { found.as_ref() }.filter(|queue| queue.generation == generation) {
                return queue;
            }
            let fresh = Box::new(Queue { generation, waiting: AtomicUsize::new(0), lock: RwLock::new(()) });
            let fresh = Box::into_raw(fresh);
            if self.queue.compare_exchange(found, fresh, Ordering::AcqRel, Ordering::Acquire).is_err() {
                // SAFETY: created above and not shared. The parent's queue, if there was one, is kept: another thread
                // may be reading it.
                drop(unsafe { Box::from_raw(fresh) });
            }
        }
    }

    /// Between chunks, lets waiting threads in: the lock alone is not fair, and a batch would take it again before a
    /// waiter wakes. At most 5 ms, in case the waiter is delayed elsewhere.
    #[inline(never)]
    fn yield_to_waiters(&self) {
        for _ in 0..100 {
            if self.queue().waiting.load(Ordering::Acquire) == 0 {
                return;
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

impl<T: Send + Sync> BiasedLock<T> {
    /// `nbytes` returns how many bytes the value has, from a few fields.
    pub(crate) fn new(value: T, nbytes: fn(&T) -> u64) -> Self {
        BiasedLock {
            value: UnsafeCell::new(ManuallyDrop::new(value)),
            access: Access { detached: AtomicU64::new(0), queue: AtomicPtr::new(null_mut()) },
            nbytes,
            drop: |py, value| py.detach(|| drop(value)),
        }
    }

    /// Reads a few words while attached. `visit` cannot run Python code: it gets no token.
    #[inline(always)]
    pub(crate) fn read<R>(&self, py: Python<'_>, visit: impl FnOnce(&T) -> R + Send) -> R {
        let _guard = if self.access.is_owned(py) { None } else { self.access.wait_read(py) };
        // SAFETY: this thread owns the filter, or the read lock is held.
        visit(unsafe { &*self.value.get() })
    }

    /// [`BiasedLock::read`] if that takes no lock.
    #[inline(always)]
    pub(crate) fn read_at_once<R>(&self, py: Python<'_>, visit: impl FnOnce(&T) -> R + Send) -> Option<R> {
        if !self.access.is_owned(py) {
            return None;
        }
        // SAFETY: this thread owns the filter.
        Some(visit(unsafe { &*self.value.get() }))
    }

    /// Changes a few words while attached.
    #[inline(always)]
    pub(crate) fn write<R>(&self, py: Python<'_>, visit: impl FnOnce(&mut T) -> R + Send) -> R {
        let _guard = if self.access.is_owned(py) { None } else { self.access.wait_write(py) };
        // SAFETY: this thread owns the filter, or the write lock is held; the closure cannot reenter, having
        // no token.
        visit(unsafe { &mut *self.value.get() })
    }

    /// Whether the attached thread owns the filter and can read or change all of it in less than 0.1 ms.
    fn is_quick(&self, py: Python<'_>) -> bool {
        // SAFETY: this thread owns the filter.
        (self.access.is_owned(py) || self.access.is_owned_after_fork(py))
            && (self.nbytes)(unsafe { &*self.value.get() }) < LARGE
    }

    /// Reads all of the filter: detached, unless it is small.
    pub(crate) fn look<R: Send>(&self, py: Python<'_>, visit: impl FnOnce(&T) -> R + Send) -> R {
        if self.is_quick(py) { self.read(py, visit) } else { self.detach(py, |session| session.read(visit)) }
    }

    /// Changes all of the filter: detached, unless it is small.
    pub(crate) fn change<R: Send>(&self, py: Python<'_>, visit: impl FnOnce(&mut T) -> R + Send) -> R {
        if self.is_quick(py) { self.write(py, visit) } else { self.detach(py, |session| session.write(visit)) }
    }

    /// Reads all of two filters; `other` may be this one.
    pub(crate) fn look_both<R: Send>(&self, other: &Self, py: Python<'_>, visit: impl FnOnce(&T, &T) -> R + Send) -> R {
        if std::ptr::eq(self, other) {
            return self.look(py, |a| visit(a, a));
        }
        if self.is_quick(py) && other.is_quick(py) {
            // SAFETY: this thread owns both.
            return visit(unsafe { &*self.value.get() }, unsafe { &*other.value.get() });
        }
        self.detach_both(other, py, || {
            let _guards = self.lock_in_order(other, || self.access.queue().read(), || other.access.queue().read());
            // SAFETY: both read locks are held, and this thread is announced to both.
            visit(unsafe { &*self.value.get() }, unsafe { &*other.value.get() })
        })
    }

    /// Changes all of this filter while reading `other`, which must be another one.
    pub(crate) fn change_from<R: Send>(
        &self,
        other: &Self,
        py: Python<'_>,
        visit: impl FnOnce(&mut T, &T) -> R + Send,
    ) -> R {
        assert!(!std::ptr::eq(self, other));
        if self.is_quick(py) && other.is_quick(py) {
            // SAFETY: this thread owns both; they are different values.
            return visit(unsafe { &mut *self.value.get() }, unsafe { &*other.value.get() });
        }
        self.detach_both(other, py, || {
            let _guards = self.lock_in_order(other, || self.access.queue().write(), || other.access.queue().read());
            let _change = forks::begin_change();
            // SAFETY: as in `look_both`, with the write lock on `self`; they are different values.
            visit(unsafe { &mut *self.value.get() }, unsafe { &*other.value.get() })
        })
    }

    /// Takes the locks of two filters in the order of their addresses, as every thread does that waits for one lock while
    /// holding another, so that no two threads wait for each other.
    fn lock_in_order<A, B>(&self, other: &Self, mine: impl FnOnce() -> A, theirs: impl FnOnce() -> B) -> (A, B) {
        if std::ptr::from_ref(self) < std::ptr::from_ref(other) {
            let mine = mine();
            (mine, theirs())
        } else {
            let theirs = theirs();
            (mine(), theirs)
        }
    }

    /// Detaches for `work`, which visits the filter through the [`Session`].
    pub(crate) fn detach<R: Send>(&self, py: Python<'_>, work: impl FnOnce(Session<'_, T>) -> R + Send) -> R {
        let _announced = Announcement::new(&self.access.detached);
        py.detach(|| work(Session(self)))
    }

    /// Detaches for `work` on two filters.
    fn detach_both<R: Send>(&self, other: &Self, py: Python<'_>, work: impl FnOnce() -> R + Send) -> R {
        let _announced = (Announcement::new(&self.access.detached), Announcement::new(&other.access.detached));
        py.detach(work)
    }
}

impl<T> Drop for BiasedLock<T> {
    /// Frees large memory and closes files while detached.
    fn drop(&mut self) {
        let queue = std::mem::replace(self.access.queue.get_mut(), null_mut());
        if !queue.is_null() {
            // SAFETY: created by `Access::queue`, and this is the last reference to the lock.
            drop(unsafe { Box::from_raw(queue) });
        }
        let value = self.value.get_mut();
        let large = (self.nbytes)(value) >= LARGE;
        // SAFETY: taken once, here.
        let value = unsafe { ManuallyDrop::take(value) };
        let mut value = Some(value);
        if large {
            let _ = Python::try_attach(|py| value.take().map(|value| (self.drop)(py, value)));
        }
    }
}

/// The generation in a count of announced threads.
fn generation(announced: u64) -> u32 {
    (announced >> 32) as u32
}

/// One announced thread, until dropped, also by unwinding.
struct Announcement<'a>(&'a AtomicU64);

impl<'a> Announcement<'a> {
    fn new(detached: &'a AtomicU64) -> Self {
        let now = forks::generation();
        let more = |seen| Some(if generation(seen) == now { seen + 1 } else { u64::from(now) << 32 | 1 });
        let _ = detached.fetch_update(Ordering::AcqRel, Ordering::Relaxed, more);
        Announcement(detached)
    }
}

impl Drop for Announcement<'_> {
    fn drop(&mut self) {
        let less = |seen| Some(if seen as u32 == 1 { 0 } else { seen - 1 });
        let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Relaxed, less);
    }
}

/// One waiting thread, until dropped.
struct Waiter<'a>(&'a AtomicUsize);

impl<'a> Waiter<'a> {
    fn new(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Waiter(waiting)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// A guard that a thread takes while detached and keeps after it attaches.
struct SendGuard<G>(G);

// SAFETY: `Python::detach` runs its closure on the thread that calls it.
unsafe impl<G> Send for SendGuard<G> {}

/// The guard, if the lock was free; a panic of the thread that held it was reported there.
fn acquire<G>(attempt: TryLockResult<G>) -> Option<G> {
    match attempt {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

impl Queue {
    /// The guard from `attempt`, or from `block`, for which the thread detaches. A thread that attaches again while it
    /// holds the lock keeps others from the filter as long as the interpreter keeps it waiting: so it releases the lock
    /// first and tries again.
    fn wait<G>(&self, py: Python<'_>, attempt: impl Fn() -> TryLockResult<G>, block: impl Fn() -> G + Sync) -> G {
        if let Some(guard) = acquire(attempt()) {
            return guard;
        }
        let _waiting = Waiter::new(&self.waiting);
        for _ in 0..MAX_YIELDS {
            py.detach(|| drop(block()));
            if let Some(guard) = acquire(attempt()) {
                return guard;
            }
        }
        py.detach(|| SendGuard(block())).0
    }

    fn read(&self) -> RwLockReadGuard<'_, ()> {
        self.lock.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, ()> {
        self.lock.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to visit a filter while detached, a chunk at a time.
pub(crate) struct Session<'a, T>(&'a BiasedLock<T>);

impl<T: Send + Sync> Session<'_, T> {
    /// Reads, together with other readers.
    pub(crate) fn read<R>(&self, visit: impl FnOnce(&T) -> R) -> R {
        self.0.access.yield_to_waiters();
        let _guard = self.0.access.queue().read();
        // SAFETY: the read lock is held and this thread is announced.
        visit(unsafe { &*self.0.value.get() })
    }

    /// Changes, alone.
    pub(crate) fn write<R>(&self, visit: impl FnOnce(&mut T) -> R) -> R {
        self.0.access.yield_to_waiters();
        let _guard = self.0.access.queue().write();
        let _change = forks::begin_change();
        // SAFETY: the write lock is held and this thread is announced.
        visit(unsafe { &mut *self.0.value.get() })
    }
}

/// A thread that visits a filter while it is detached, for longer than one call: a query of another program. It is
/// announced until it leaves.
pub(crate) struct Visitor<C: PyClass<Frozen = True> + Sync, T: Send + Sync> {
    owner: Py<C>,
    lock: fn(&C) -> &BiasedLock<T>,
    /// The generation in which it is announced, and in whose children it is not; `None` after it has left.
    announced: Option<u32>,
}

impl<C: PyClass<Frozen = True> + Sync, T: Send + Sync> Visitor<C, T> {
    /// Announces a thread to the filter whose lock `lock` returns.
    pub(crate) fn new(owner: &Bound<'_, C>, lock: fn(&C) -> &BiasedLock<T>) -> Self {
        let visitor = Visitor { owner: owner.clone().unbind(), lock, announced: Some(forks::generation()) };
        std::mem::forget(Announcement::new(&visitor.lock().access.detached));
        visitor
    }

    /// The lock.
    pub(crate) fn lock(&self) -> &BiasedLock<T> {
        (self.lock)(self.owner.get())
    }

    /// Reads, together with other readers. The thread must be detached, because another may hold the lock and wait for the
    /// interpreter. Panics after it has left, and in a forked child.
    pub(crate) fn read<R>(&self, visit: impl FnOnce(&T) -> R) -> R {
        assert_eq!(self.announced, Some(forks::generation()));
        Session(self.lock()).read(visit)
    }

    /// Withdraws the announcement; any thread may call it.
    pub(crate) fn leave(&mut self) {
        if self.announced.take() == Some(forks::generation()) {
            drop(Announcement(&self.lock().access.detached));
        }
    }
}

impl<C: PyClass<Frozen = True> + Sync, T: Send + Sync> Drop for Visitor<C, T> {
    fn drop(&mut self) {
        self.leave();
    }
}
