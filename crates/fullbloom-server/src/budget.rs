//! [`Budget`]: the memory that a process holds for clients besides the filters: requests, replies, copies.
//!
//! Anyone who keeps something for a client charges its bytes first, and returns them by dropping [`Reservation`]. It uses only
//! atomics, and a charge costs a few nanoseconds, so there is no reason to bypass it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::fault::{Code, Fault, Result};

/// The memory for clients.
#[derive(Debug)]
pub struct Budget {
    most: u64,
    held: AtomicU64,
    highest: AtomicU64,
    refused: AtomicU64,
}

impl Budget {
    /// A budget of this many bytes.
    pub fn new(most: u64) -> Arc<Self> {
        Arc::new(Budget { most, held: AtomicU64::new(0), highest: AtomicU64::new(0), refused: AtomicU64::new(0) })
    }

    /// Charges bytes until the result is dropped. Faults: `Limit` if the budget is smaller than that, `Overloaded` if
    /// too much is held now.
    pub fn take(self: &Arc<Self>, bytes: u64) -> Result<Reservation> {
        let mut held = self.empty();
        held.grow(bytes)?;
        Ok(held)
    }

    /// An empty charge, which can grow.
    pub fn empty(self: &Arc<Self>) -> Reservation {
        Reservation { budget: self.clone(), bytes: 0 }
    }

    /// The bytes held now.
    pub fn used(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// The size of the budget.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// The most bytes held at once.
    pub fn peak(&self) -> u64 {
        self.highest.load(Ordering::Relaxed)
    }

    /// The number of refusals.
    pub fn refusals(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: u64) -> Result<()> {
        let fits = |held: u64| held.checked_add(bytes).filter(|sum| *sum <= self.most);
        match self.held.fetch_update(Ordering::AcqRel, Ordering::Relaxed, fits) {
            Ok(before) => {
                self.highest.fetch_max(before + bytes, Ordering::Relaxed);
                Ok(())
            }
            Err(held) => Err(self.refusal(held, bytes)),
        }
    }

    #[cold]
    fn refusal(&self, held: u64, bytes: u64) -> Fault {
        self.refused.fetch_add(1, Ordering::Relaxed);
        let most = self.most;
        if bytes > most {
            let text =
                format!("{bytes} bytes of memory are needed and clients may hold {most}; raise limits.memory_bytes");
            return Fault::new(Code::Limit, text);
        }
        let text = format!(
            "{bytes} bytes of memory are needed, and clients hold {held} of {most}; try again later, or raise \
             limits.memory_bytes"
        );
        Fault::new(Code::Overloaded, text)
    }
}

/// Bytes of a [`Budget`], returned when it is dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Reservation {
    /// Charges more bytes; a fault changes nothing.
    pub fn grow(&mut self, more: u64) -> Result<()> {
        self.budget.add(more)?;
        self.bytes += more;
        Ok(())
    }

    /// Charges exactly this many bytes from now on.
    pub fn set(&mut self, bytes: u64) -> Result<()> {
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.grow(more),
            None => {
                self.budget.held.fetch_sub(self.bytes - bytes, Ordering::AcqRel);
                self.bytes = bytes;
                Ok(())
            }
        }
    }

    /// Returns all bytes.
    pub fn release(&mut self) {
        self.budget.held.fetch_sub(std::mem::take(&mut self.bytes), Ordering::AcqRel);
    }

    /// The number of bytes charged.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_at_most_the_budget_and_returns_all_of_it() -> Result<()> {
        let budget = Budget::new(100);
        let mut held = budget.take(60)?;
        assert_eq!(budget.take(41).map_err(|fault| fault.code).err(), Some(Code::Overloaded));
        assert_eq!(budget.take(101).map_err(|fault| fault.code).err(), Some(Code::Limit));
        assert_eq!(budget.take(u64::MAX).map_err(|fault| fault.code).err(), Some(Code::Limit));
        held.grow(40)?;
        assert!(held.grow(1).is_err_and(|fault| fault.text.contains("limits.memory_bytes")));
        assert_eq!((held.bytes(), budget.used()), (100, 100));
        held.set(30)?;
        let other = budget.take(70)?;
        assert!(held.set(31).is_err());
        drop((held, other));
        assert_eq!((budget.used(), budget.peak(), budget.refusals()), (0, 100, 5));
        Ok(())
    }

    #[test]
    fn concurrent_charges_stay_within_the_budget() {
        let budget = Budget::new(1000);
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let budget = &budget;
                scope.spawn(move || {
                    for round in 0..10_000 {
                        let taken = budget.take((thread * 97 + round) % 700);
                        assert!(budget.used() <= 1000);
                        drop(taken);
                    }
                });
            }
        });
        assert_eq!(budget.used(), 0);
    }
}
