//! Pairs of owners and keys: two columns, or one owner for all keys.

use std::cell::{Cell, RefCell};

use fullbloom_core::bank::{FilterBank, Owners};
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
use crate::operations::{Hash, keys_per_lock};

/// Owners of a batch, none of which may be null: rows with and without one would be shifted against keys.
///
/// Owners that come as one column are hashed beside their keys, a chunk at a time. Others are hashed and collected first.
struct Reader<'a, 'py> {
    /// What is done with the owners and their keys.
    work: &'a dyn Fn(Owners<'_>) -> PyResult<Bound<'py, PyAny>>,
    /// Number of owners, where it is known before they are hashed.
    number: Cell<usize>,
    hashes: RefCell<Vec<u64>>,
    done: RefCell<Option<PyResult<Bound<'py, PyAny>>>>,
}

impl Operation for Reader<'_, '_> {
    type Out = u8;
    const SKIPS_NULLS: bool = true;
    const REFUSES_NULLS: bool = true;

    fn expect(&self, _: Python<'_>, owners: usize) -> PyResult<()> {
        self.number.set(owners);
        Ok(())
    }

    fn run(&self, py: Python<'_>, source: &dyn HashSource, _: Option<&mut [u8]>) -> PyResult<()> {
        let mut all = self.hashes.borrow_mut();
        if !source.is_empty() && source.len() == self.number.get() && all.is_empty() {
            let answers = (self.work)(Owners::Each(source, 0));
            *self.done.borrow_mut() = Some(answers);
            return Ok(());
        }
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

/// Passes the owners in `owners=` to `work`: one key, or any batch of keys; of ready hashes if `hashed`.
pub(super) fn with_owners<'py>(
    hasher: &KeyHasher,
    owners: &Bound<'py, PyAny>,
    hashed: bool,
    work: &dyn Fn(Owners<'_>) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let single = match hashed {
        true => ready::read_single(owners)?,
        false if is_single(owners)? => Some(hash_key_in(hasher, owners)?.0),
        false => None,
    };
    if let Some(owner) = single {
        return work(Owners::One(owner));
    }
    let reader = Reader { work, number: Cell::new(0), hashes: RefCell::default(), done: RefCell::default() };
    if hashed {
        ready::run(&reader, owners)?
    } else {
        batch::run(&reader, hasher, owners, false)?
    };
    let Reader { hashes, done, .. } = reader;
    done.into_inner().unwrap_or_else(|| work(Owners::Each(&hashes.into_inner(), 0)))
}

/// What is done with pairs.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum PairOperation {
    /// Looks them up.
    Check,
    /// Adds them.
    Add,
}

/// A batch of pairs.
pub(super) struct Pairs<'a> {
    pub(super) lock: &'a BiasedLock<FilterBank>,
    pub(super) owners: Owners<'a>,
    pub(super) job: PairOperation,
    /// How many may be used for lookups.
    pub(super) threads: usize,
    /// Keys processed so far.
    done: Cell<usize>,
}

impl<'a> Pairs<'a> {
    pub(super) fn new(
        lock: &'a BiasedLock<FilterBank>,
        owners: Owners<'a>,
        job: PairOperation,
        threads: usize,
    ) -> Self {
        Pairs { lock, owners, job, threads, done: Cell::new(0) }
    }

    /// Refuses another number of keys than of owners.
    fn check_number(&self, py: Python<'_>, keys: usize) -> PyResult<()> {
        match &self.owners {
            Owners::Each(owners, _) if owners.len() != keys => {
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
        Ok(matches!(self.owners, Owners::Each(..)))
    }

    fn run(&self, py: Python<'_>, source: &dyn HashSource, mut out: Option<&mut [u8]>) -> PyResult<()> {
        let before = self.done.get();
        let end = before + source.len();
        let owners = match self.owners {
            Owners::Each(owners, _) if end > owners.len() => return self.check_number(py, end),
            Owners::Each(owners, _) => Owners::Each(owners, before),
            one => one,
        };
        let (job, domains) = (self.job, source.domains());
        if job == PairOperation::Check {
            expect(py, self.lock, source)?;
        }
        let threads = if job == PairOperation::Check { self.threads } else { 1 };
        let locked = keys_per_lock(source.len(), threads);
        slices::run_locked(self.lock, py, source.len(), |session, first| {
            let last = source.len().min(first + locked);
            let out = out.as_deref_mut().map(|out| &mut out[first..last]);
            match (job, out) {
                (PairOperation::Check, None) => {}
                (PairOperation::Check, Some(out)) => {
                    session.read(|bank| bank.contains_columns(owners, source, first, out, threads));
                }
                (PairOperation::Add, out) => session.write(|bank| {
                    let added = bank.add_columns(owners, source, (first, last), out);
                    if bank.num_added() > 0 && !bank.is_read_only() {
                        bank.hasher_mut().domains_mut().insert(domains);
                    }
                    added
                })?,
            }
            Ok(last)
        })?;
        self.done.set(end);
        Ok(())
    }
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
    if lock.read(py, |bank| bank.hasher().domains().expects(domains)) {
        return Ok(());
    }
    let surprise = lock.write(py, |bank| bank.hasher_mut().domains_mut().surprise(domains));
    surprise.map_or(Ok(()), |surprise| crate::operations::warnings::warn(py, surprise))
}

/// The two parts of a pair.
pub(super) fn split<'py>(pair: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    pair.extract::<(Bound<'py, PyAny>, Bound<'py, PyAny>)>().map_err(|_| {
        let class = pair.get_type().name().map_or_else(|_| "object".into(), |name| name.to_string());
        key_type(pair.py(), format!("a lookup in a bank needs a pair, (owner, key) in bank; got {class}"))
    })
}
