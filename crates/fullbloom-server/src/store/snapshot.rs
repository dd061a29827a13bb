//! [`Snapshot`]: a copy of a filter at one moment, whose file is read without blocking anyone.
//!
//! Twelve clients that fetch one filter share one copy. A copy in slices (see `slices`) serves every client that
//! requested it before it was complete; any other copy, every client that requested it before it began. Both are reused
//! while the filter does not change.

use std::io::Write;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use crate::budget::{Budget, Reservation};
use crate::fault::{Code, Fault, Result};
use crate::kind::Kind;

/// The zeros after a section.
const PADDING: [u8; 64] = [0; 64];

/// A copy of a filter. Its memory is charged to the budget until it is dropped.
pub struct Snapshot {
    filter: Box<dyn Kind>,
    head: OnceLock<std::result::Result<Vec<u8>, Fault>>,
    /// The number of the last log record that it includes.
    pub lsn: u64,
    /// The moment at which it equalled the filter.
    pub(super) taken_at: Instant,
    nbytes: u64,
    _held: Reservation,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("lsn", &self.lsn).field("nbytes", &self.nbytes).finish_non_exhaustive()
    }
}

impl Snapshot {
    /// Copies `filter`, which the caller keeps from changing; `lsn` is the number of the last record that it includes.
    pub(super) fn new(filter: &dyn Kind, lsn: u64, budget: &Arc<Budget>) -> Result<Arc<Self>> {
        let held = budget.take(filter.container().nbytes() as u64)?;
        let taken_at = Instant::now();
        Ok(Self::from_copy(filter.duplicate()?, lsn, taken_at, held))
    }

    /// Wraps a copy that was taken at `taken_at`.
    pub(super) fn from_copy(filter: Box<dyn Kind>, lsn: u64, taken_at: Instant, held: Reservation) -> Arc<Self> {
        let nbytes = filter.container().nbytes() as u64;
        Arc::new(Snapshot { filter, head: OnceLock::new(), lsn, taken_at, nbytes, _held: held })
    }

    /// The filter.
    pub fn filter(&self) -> &dyn Kind {
        self.filter.as_ref()
    }

    /// The length of its file, in bytes.
    pub fn nbytes(&self) -> u64 {
        self.nbytes
    }

    /// The start of its file, with the checksums; the first call computes it.
    fn head(&self) -> Result<&[u8]> {
        let head = self.head.get_or_init(|| self.filter.container().head().map_err(Fault::from));
        head.as_deref().map_err(Clone::clone)
    }

    /// Passes the bytes of its file in `range` to `out`, in pieces.
    pub fn read(&self, range: Range<u64>, out: &mut dyn FnMut(&[u8]) -> std::io::Result<()>) -> Result<()> {
        let head = self.head()?;
        let container = self.filter.container();
        let mut at = 0u64;
        let mut give = |bytes: &[u8]| {
            let (from, to) = (range.start.max(at), range.end.min(at + bytes.len() as u64));
            if from < to {
                out(&bytes[(from - at) as usize..(to - at) as usize])?;
            }
            at += bytes.len() as u64;
            std::io::Result::Ok(())
        };
        let mut all = || {
            give(head)?;
            container.sections.iter().try_for_each(|section| {
                give(section.bytes)?;
                give(&PADDING[..section.bytes.len().next_multiple_of(PADDING.len()) - section.bytes.len()])
            })
        };
        all().map_err(|error| Fault::new(Code::Io, error.to_string()))
    }

    /// Appends the bytes of its file in `range`.
    pub fn append(&self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        self.read(range, &mut |bytes| out.write_all(bytes))
    }
}
