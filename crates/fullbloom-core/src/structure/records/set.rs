//! [`RecordSet`]: all records from which a structure is built, sorted on demand.

use std::sync::{Arc, PoisonError, RwLock};

use super::lot::Lot;
use super::sorted::SortedRecords;
use crate::error::{Error, Result};
use crate::structure::Job;

/// The state of the records.
enum State<const W: usize> {
    Loose(Lot<W>),
    Sorted(Arc<SortedRecords<W>>),
    /// Sorting was ended, and they are lost.
    Ended,
}

/// Records that are all there.
pub struct RecordSet<const W: usize>(RwLock<State<W>>);

impl<const W: usize> RecordSet<W> {
    /// In the order in which they were added.
    pub(super) fn loose(lot: Lot<W>) -> Self {
        RecordSet(RwLock::new(State::Loose(lot)))
    }

    /// All distinct records in order; the first call sorts them.
    pub fn sort(&self, job: &Job<'_>) -> Result<Arc<SortedRecords<W>>> {
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let sorted = match std::mem::replace(&mut *state, State::Ended) {
            State::Loose(lot) => Arc::new(SortedRecords::of(lot, job)?),
            State::Sorted(sorted) => sorted,
            State::Ended => {
                return Err(Error::parameter(
                    "building a structure from these keys was interrupted; collect them again",
                ));
            }
        };
        *state = State::Sorted(Arc::clone(&sorted));
        Ok(sorted)
    }

    /// Calls `make` with the unsorted records, which saves the sorting; if that returns `None`, because some are
    /// repeated, with the sorted ones.
    pub fn build<T>(&self, job: &Job<'_>, make: impl Fn(&Lot<W>) -> Result<Option<T>>) -> Result<T> {
        let state = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let State::Loose(lot) = &*state
            && !lot.repeats_often()?
            && let Some(structure) = make(lot)?
        {
            return Ok(structure);
        }
        drop(state);
        make(self.sort(job)?.lot())?
            .ok_or_else(|| Error::parameter("two records of one hash differ; give each key one value"))
    }
}
