//! [`Cells`]: bytes of cells of all filters, counted at the moment one grows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fullbloom_core::growth::Growth;

#[derive(Default)]
struct All {
    nbytes: AtomicU64,
    /// Most that growing may make of it; 0 while the log is done again, which no cap holds up.
    most: AtomicU64,
}

/// See the head of this file.
#[derive(Clone, Default)]
pub(super) struct Cells(Arc<All>);

/// A filter's share: what it grows by is counted with it, and with all.
struct Share {
    all: Arc<All>,
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

/// Bytes of a filter that is being made.
pub(super) struct Reserved(Arc<All>, u64);

impl Drop for Reserved {
    fn drop(&mut self) {
        self.0.nbytes.fetch_sub(self.1, Ordering::Relaxed);
    }
}

impl All {
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
    /// Takes bytes for a filter that is being made; none where there are none.
    pub(super) fn reserve(&self, bytes: u64) -> Option<Reserved> {
        self.0.take(bytes).then(|| Reserved(self.0.clone(), bytes))
    }

    /// From here on growing stops at so many bytes.
    pub(super) fn bound(&self, most: u64) {
        self.0.most.store(most, Ordering::Release);
    }

    /// What a filter asks before it grows; `own` are the bytes that are counted for it.
    pub(super) fn share_of(&self, own: &Arc<AtomicU64>) -> Arc<dyn Growth> {
        Arc::new(Share { all: self.0.clone(), own: own.clone() })
    }

    pub(super) fn nbytes(&self) -> u64 {
        self.0.nbytes.load(Ordering::Relaxed)
    }

    /// Counts bytes; a negative number wraps around.
    pub(super) fn add(&self, bytes: u64) {
        self.0.nbytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn remove(&self, bytes: u64) {
        self.0.nbytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}
