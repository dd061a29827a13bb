//! [`Cells`]: the bytes of cells of all filters, counted at the moment one grows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fullbloom_core::growth::Growth;

#[derive(Default)]
struct Total {
    nbytes: AtomicU64,
    /// The limit on growth; 0 during replay, which no limit may stop.
    most: AtomicU64,
}

/// The bytes of cells of all filters.
#[derive(Clone, Default)]
pub(super) struct Cells(Arc<Total>);

/// The share of one filter: its growth is counted for it and for all.
struct Share {
    all: Arc<Total>,
    own: Arc<AtomicU64>,
}

impl Growth for Share {
    fn take(&self, bytes: u64) -> bool {
        let taken = self.all.take(bytes);
        if taken {
            self.own.fetch_add(bytes, Ordering::Relaxed);
        }
        taken
    }
}

/// The bytes of a filter that is being created.
pub(super) struct Reservation(Arc<Total>, u64);

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

    /// The growth account of a filter; `own` holds the bytes counted for it.
    pub(super) fn share_of(&self, own: &Arc<AtomicU64>) -> Arc<dyn Growth> {
        Arc::new(Share { all: self.0.clone(), own: own.clone() })
    }

    pub(super) fn nbytes(&self) -> u64 {
        self.0.nbytes.load(Ordering::Relaxed)
    }

    /// Adds bytes; a negative number wraps around.
    pub(super) fn add(&self, bytes: u64) {
        self.0.nbytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn remove(&self, bytes: u64) {
        self.0.nbytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}
