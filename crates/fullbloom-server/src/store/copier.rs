//! [`Copier`]: who copies filters for a checkpoint, whose own thread gives way to others.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::{Entry, Snapshot};
use crate::budget::Budget;
use crate::fault::Result;

/// A copy to be made.
pub(super) type Copy = Box<dyn FnOnce() + Send>;

/// See the head of this file.
pub(super) struct Copier(Option<Sender<Copy>>);

impl Copier {
    /// One that has copies made by the thread that receives them.
    pub(super) fn new() -> (Self, Receiver<Copy>) {
        let (sender, copies) = channel();
        (Copier(Some(sender)), copies)
    }

    /// One that makes them on the thread that asks for them.
    pub(super) fn here() -> Self {
        Copier(None)
    }

    /// [`Entry::snapshot`].
    pub(super) fn snapshot(&self, entry: &Arc<Entry>, budget: &Arc<Budget>) -> Result<Arc<Snapshot>> {
        let asked = self.0.as_ref().and_then(|copies| {
            let (done, copied) = channel();
            let (entry, budget) = (entry.clone(), budget.clone());
            copies.send(Box::new(move || drop(done.send(entry.snapshot(&budget))))).ok()?;
            copied.recv().ok()
        });
        asked.unwrap_or_else(|| entry.snapshot(budget))
    }
}
