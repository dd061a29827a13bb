//! [`Cells`]: the bytes of cells of all filters, counted at the moment one grows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fullbloom_core::growth::Growth;
use parking_lot::Mutex;

#[derive(Default)]
struct Total {
    nbytes: AtomicU64,
    /// The limit on growth; 0 during replay, which no limit may stop.
    most: AtomicU64,
}

/// The bytes of cells of all filters.
#[derive(Clone, Default)]
pub(super) struct Cells(Arc<Total>);

/// The bytes of cells of one filter, which it charges as it grows. They are part of the total while the filter has a
/// name. A copy that may replace a filter has its own account for its growth. The total is the sum of all accounts:
/// dropping one returns its bytes.
pub(super) struct Account {
    nbytes: AtomicU64,
    /// `None` while the bytes are no part of a total.
    total: Mutex<Option<Arc<Total>>>,
}

impl Growth for Account {
    fn take(&self, bytes: u64) -> bool {
        let total = self.total.lock();
        let taken = total.as_ref().is_none_or(|total| total.take(bytes));
        if taken {
            self.nbytes.fetch_add(bytes, Ordering::Relaxed);
        }
        taken
    }
}

impl Account {
    /// The account of a filter without a name.
    pub(super) fn new(nbytes: u64) -> Arc<Self> {
        Arc::new(Account { nbytes: AtomicU64::new(nbytes), total: Mutex::default() })
    }

    /// Makes its bytes part of the total, without a check of the limit.
    pub(super) fn join(&self, cells: &Cells) {
        let mut total = self.total.lock();
        if total.is_none() {
            cells.0.nbytes.fetch_add(self.nbytes(), Ordering::Relaxed);
            *total = Some(cells.0.clone());
        }
    }

    /// Returns its bytes to the total, of which they are no part from now on.
    pub(super) fn leave(&self) {
        if let Some(total) = self.total.lock().take() {
            total.nbytes.fetch_sub(self.nbytes(), Ordering::Relaxed);
        }
    }

    /// Sets the bytes of a filter that may have grown or shrunk.
    #[inline]
    pub(super) fn set(&self, nbytes: u64) {
        if self.nbytes() != nbytes {
            self.replace(nbytes, || 0);
        }
    }

    /// Sets the bytes of a filter that a copy has replaced. The growth of the copy becomes part of them in one step, so
    /// that nobody takes those bytes in between.
    pub(super) fn set_replaced(&self, nbytes: u64, copy: &Account) {
        self.replace(nbytes, || copy.total.lock().take().map_or(0, |_| copy.nbytes()));
    }

    /// Sets the bytes, which include those that `moved` takes from another account of the same total.
    fn replace(&self, nbytes: u64, moved: impl FnOnce() -> u64) {
        let total = self.total.lock();
        let before = self.nbytes.swap(nbytes, Ordering::Relaxed);
        if let Some(total) = total.as_ref() {
            // A negative difference wraps around.
            total.nbytes.fetch_add(nbytes.wrapping_sub(before + moved()), Ordering::Relaxed);
        }
    }

    pub(super) fn nbytes(&self) -> u64 {
        self.nbytes.load(Ordering::Relaxed)
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The bytes of a filter that is being created.
pub(super) struct Reservation(Arc<Total>, u64);

impl Reservation {
    /// Makes its bytes those of an account, which may be more or fewer, in one step: nobody takes them in between.
    pub(super) fn pass_to(mut self, account: &Account) {
        let mut total = account.total.lock();
        // A negative difference wraps around.
        let more = account.nbytes().wrapping_sub(std::mem::take(&mut self.1));
        self.0.nbytes.fetch_add(more, Ordering::Relaxed);
        *total = Some(self.0.clone());
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.0.nbytes.fetch_sub(self.1, Ordering::Relaxed);
    }
}

impl Total {
    fn take(&self, bytes: u64) -> bool {
        let most = match self.most.load(Ordering::Acquire) {
            0 => u64::MAX,
            most => most,
        };
        let fits = |nbytes: u64| nbytes.checked_add(bytes).filter(|sum| *sum <= most);
        self.nbytes.fetch_update(Ordering::AcqRel, Ordering::Relaxed, fits).is_ok()
    }
}

impl Cells {
    /// Reserves bytes for a filter that is being created; `None` if they are not available.
    pub(super) fn reserve(&self, bytes: u64) -> Option<Reservation> {
        self.0.take(bytes).then(|| Reservation(self.0.clone(), bytes))
    }

    /// Limits growth to this many bytes from now on.
    pub(super) fn bound(&self, most: u64) {
        self.0.most.store(most, Ordering::Release);
    }

    pub(super) fn nbytes(&self) -> u64 {
        self.0.nbytes.load(Ordering::Relaxed)
    }
}
