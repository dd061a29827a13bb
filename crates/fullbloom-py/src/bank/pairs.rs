//! Pairs of owners and keys: two columns, or one owner for all keys.

use std::cell::Cell;

use fullbloom_core::bank::FilterBank;
use fullbloom_core::key::source::CHUNK;
use fullbloom_core::key::{Domain, KeyDomains, KeyHasher};
use fullbloom_core::structure::HashSource;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyString};

use crate::errors::{OrRaise, key_type, parameter};
use crate::keys::batch::{self, Operation};
use crate::keys::ready;
use crate::keys::scalar::hash_key_in;
use crate::locking::biased_lock::BiasedLock;
use crate::locking::slices;
use crate::operations::Hash;

/// Pairs for which the bank stays locked: 1 to 3 ms.
const LOCKED: usize = 1 << 16;

/// The hashes of owners.
pub(super) enum Owners {
    /// One for all keys.
    One(u64),
    /// One a key.
    Each(Vec<u64>),
}

/// Collects the hashes of owners, none of which may be null: rows with and without one would be shifted against keys.
#[derive(Default)]
struct CollectOwners(std::cell::RefCell<Vec<u64>>);

impl Operation for CollectOwners {
    type Out = u8;
    const SKIPS_NULLS: bool = true;
    const REFUSES_NULLS: bool = true;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, _: Option<&mut [u8]>) -> PyResult<()> {
        let mut all = self.0.borrow_mut();
        let first = all.len();
        fullbloom_core::cells::allocation::reserve(&mut all, source.len()).or_raise(py)?;
        all.resize(first + source.len(), 0);
        Hash.run(py, source, Some(&mut all[first..]))
    }
}

/// True for a text, bytes, or another object that is not iterable: one owner.
fn is_single(owners: &Bound<'_, PyAny>) -> PyResult<bool> {
    if owners.is_instance_of::<PyString>()
        || owners.is_instance_of::<PyBytes>()
        || owners.is_instance_of::<PyByteArray>()
    {
        return Ok(true);
    }
    let iterable = owners.hasattr("__iter__")? || owners.hasattr("__getitem__")?;
    Ok(!iterable && !owners.hasattr("__arrow_c_array__")? && !owners.hasattr("__arrow_c_stream__")?)
}

impl Owners {
    /// Reads `owners=`: one key, or any batch of keys.
    pub(super) fn read(hasher: &KeyHasher, owners: &Bound<'_, PyAny>) -> PyResult<Self> {
        if is_single(owners)? {
            return hash_key_in(hasher, owners).map(|(hash, _)| Owners::One(hash));
        }
        let hashes = CollectOwners::default();
        batch::run(&hashes, hasher, owners, false)?;
        Ok(Owners::Each(hashes.0.into_inner()))
    }

    /// Reads `owners=` of ready hashes: one, or a batch.
    pub(super) fn read_hashed(owners: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Some(hash) = ready::read_single(owners)? {
            return Ok(Owners::One(hash));
        }
        let hashes = CollectOwners::default();
        ready::run(&hashes, owners)?;
        Ok(Owners::Each(hashes.0.into_inner()))
    }
}

/// What is done with pairs.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Job {
    /// Looks them up.
    Check,
    /// Adds them.
    Add,
}

/// A batch of pairs.
pub(super) struct Pairs<'a> {
    pub(super) lock: &'a BiasedLock<FilterBank>,
    pub(super) owners: Owners,
    pub(super) job: Job,
    /// Keys processed so far.
    done: Cell<usize>,
}

impl<'a> Pairs<'a> {
    pub(super) fn new(lock: &'a BiasedLock<FilterBank>, owners: Owners, job: Job) -> Self {
        Pairs { lock, owners, job, done: Cell::new(0) }
    }

    /// Refuses another number of keys than of owners.
    fn check_number(&self, py: Python<'_>, keys: usize) -> PyResult<()> {
        match &self.owners {
            Owners::Each(owners) if owners.len() != keys => {
                let owners = owners.len();
                Err(parameter(py, format!("there must be as many owners as keys, got {owners} owners for {keys} keys")))
            }
            _ => Ok(()),
        }
    }

    /// Refuses owners behind the last key.
    pub(super) fn finish(&self, py: Python<'_>) -> PyResult<()> {
        self.check_number(py, self.done.get())
    }
}

impl Operation for Pairs<'_> {
    type Out = u8;
    const SKIPS_NULLS: bool = true;
    const REFUSES_NULLS: bool = true;

    fn expect(&self, py: Python<'_>, keys: usize) -> PyResult<()> {
        // An iterable that is read as it is hashed states no number.
        if keys == 0 && matches!(self.owners, Owners::One(_)) { Ok(()) } else { self.check_number(py, keys) }
    }

    fn needs_count(&self) -> PyResult<bool> {
        Ok(matches!(self.owners, Owners::Each(_)))
    }

    fn run(&self, py: Python<'_>, source: &dyn HashSource, mut out: Option<&mut [u8]>) -> PyResult<()> {
        let before = self.done.get();
        let end = before + source.len();
        if let Owners::Each(owners) = &self.owners
            && end > owners.len()
        {
            return self.check_number(py, end);
        }
        let owners = &self.owners;
        let (mut keys, mut one) = ([0u64; CHUNK], [0u64; CHUNK]);
        if let Owners::One(owner) = owners {
            one = [*owner; CHUNK];
        }
        let (job, domains) = (self.job, source.domains());
        if job == Job::Check {
            expect(py, self.lock, source)?;
        }
        slices::run_locked(self.lock, py, source.len(), |session, first| {
            let last = source.len().min(first + LOCKED);
            let mut step = |start: usize, bank: Access<'_>| {
                let keys = &mut keys[..CHUNK.min(last - start)];
                source.fill(start, keys);
                let owners = match owners {
                    Owners::One(_) => &one[..keys.len()],
                    Owners::Each(owners) => &owners[before + start..before + start + keys.len()],
                };
                let out = out.as_deref_mut().map(|out| &mut out[start..start + keys.len()]);
                match (bank, out) {
                    (Access::Read(bank), Some(out)) => bank.contains_pairs(owners, keys, out),
                    (Access::Read(_), None) => {}
                    (Access::Write(bank), out) => return bank.add_pairs(owners, keys, out),
                }
                Ok(())
            };
            let chunks = (first..last).step_by(CHUNK);
            match job {
                Job::Check => session.read(|bank| chunks.into_iter().try_for_each(|at| step(at, Access::Read(bank)))),
                Job::Add => session.write(|bank| {
                    let added = chunks.into_iter().try_for_each(|at| step(at, Access::Write(bank)));
                    if bank.num_added() > 0 && !bank.is_read_only() {
                        bank.hasher_mut().added_mut().insert(domains);
                    }
                    added
                }),
            }?;
            Ok(last)
        })?;
        self.done.set(end);
        Ok(())
    }
}

/// The bank, as the job sees it.
enum Access<'a> {
    Read(&'a FilterBank),
    Write(&'a mut FilterBank),
}

/// Warns if no key of the domains of a lookup was added.
fn expect(py: Python<'_>, lock: &BiasedLock<FilterBank>, source: &dyn HashSource) -> PyResult<()> {
    if source.is_empty() { Ok(()) } else { expect_domains(py, lock, source.domains()) }
}

/// [`expect`] for one key.
pub(super) fn expect_domain(py: Python<'_>, lock: &BiasedLock<FilterBank>, domain: Domain) -> PyResult<()> {
    expect_domains(py, lock, KeyDomains::of(domain))
}

fn expect_domains(py: Python<'_>, lock: &BiasedLock<FilterBank>, domains: KeyDomains) -> PyResult<()> {
    if lock.read(py, |bank| bank.hasher().added().expects(domains)) {
        return Ok(());
    }
    let surprise = lock.write(py, |bank| bank.hasher_mut().added_mut().surprise(domains));
    surprise.map_or(Ok(()), |surprise| crate::operations::warnings::warn(py, surprise))
}

/// The two parts of a pair.
pub(super) fn split<'py>(pair: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    pair.extract::<(Bound<'py, PyAny>, Bound<'py, PyAny>)>().map_err(|_| {
        let class = pair.get_type().name().map_or_else(|_| "object".into(), |name| name.to_string());
        key_type(pair.py(), format!("a bank is asked for a pair, (owner, key) in bank; got {class}"))
    })
}
