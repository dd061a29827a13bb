//! What only `FilterCascade` has: it is made of a closed world and asked for nothing else.

use std::cell::Cell;

use bloomery_core::exact::FilterCascade as Core;
use bloomery_core::exact::cascade::common;
use bloomery_core::key::KeyHasher;
use bloomery_core::key::source::CHUNK;
use bloomery_core::structure::{Filter, HashSource};
use pyo3::prelude::*;

use crate::biased_lock::BiasedLock;
use crate::building::How;
use crate::classes::cascade::FilterCascade;
use crate::classes::shared::{ONE, Threads};
use crate::errors::parameter;
use crate::keys::batch::{self, Operation};
use crate::keys::scalar::hash_key;
use crate::{operations, params, turns};

/// Counts the keys of which the answer is another one.
struct Errors<'a> {
    lock: &'a BiasedLock<Core>,
    wanted: u8,
    errors: Cell<u64>,
}

impl Operation for Errors<'_> {
    type Out = u8;
    const SKIPS_NULLS: bool = true;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, _: Option<&mut [u8]>) -> PyResult<()> {
        let (mut hashes, mut found, mut errors) = ([0u64; CHUNK], [0u8; CHUNK], 0);
        let wanted = self.wanted;
        turns::of(self.lock, py, source.len(), |session, start| {
            let len = CHUNK.min(source.len() - start);
            let (hashes, found) = (&mut hashes[..len], &mut found[..len]);
            source.fill(start, hashes);
            session.read(|cascade| cascade.contains_hashes(hashes, found));
            errors += found.iter().filter(|&&found| found != wanted).count() as u64;
            Ok(start + len)
        })?;
        self.errors.set(self.errors.get() + errors);
        Ok(())
    }
}

/// Finds the first key of a batch that has a hash.
struct Find {
    hash: u64,
    seen: Cell<usize>,
    at: Cell<Option<usize>>,
}

impl Operation for Find {
    type Out = u8;
    const SKIPS_NULLS: bool = true;

    fn run(&self, _: Python<'_>, source: &dyn HashSource, _: Option<&mut [u8]>) -> PyResult<()> {
        let mut hashes = [0u64; CHUNK];
        for start in (0..source.len()).step_by(CHUNK) {
            let hashes = &mut hashes[..CHUNK.min(source.len() - start)];
            source.fill(start, hashes);
            if let (None, Some(i)) = (self.at.get(), hashes.iter().position(|&hash| hash == self.hash)) {
                self.at.set(Some(self.seen.get() + start + i));
            }
        }
        self.seen.set(self.seen.get() + source.len());
        Ok(())
    }
}

/// Why two sets with a common hash are refused, with the place of the key in each, where they can be gone through again.
fn overlap(hasher: &KeyHasher, sets: [&Bound<'_, PyAny>; 2], hash: u64) -> PyErr {
    let [included, excluded] = sets.map(|keys| {
        let find = Find { hash, seen: Cell::new(0), at: Cell::new(None) };
        // What cannot be gone through again has no places.
        let _ = batch::run(&find, hasher, keys, false);
        find.at.get().map_or_else(String::new, |at| format!(" {at}"))
    });
    let why = format!(
        "included and excluded overlap: key{included} of included and key{excluded} of excluded (counted from 0, nulls left \
         out) have the hash {hash}; a key must be in one of them only"
    );
    parameter(sets[0].py(), why)
}

#[pymethods]
impl FilterCascade {
    /// The cascade that tells the keys of `included` from those of `excluded`; each takes what contains_many takes elsewhere,
    /// nulls are skipped, repeated keys count once.
    ///
    /// The same sets give the same bytes, in any order. seed, secret: as of filters. threads: how many may be used; the GIL
    /// is released. progress: called with (done, total) now and then; an exception of it ends the work, as Ctrl-C does.
    /// memory: bytes that gathering may take; what does not fit lies in nameless files of the folder for temporary files.
    /// Raises ParameterError for a key in both sets, with an example, KeyTypeError, FilterMemoryError, OSError. Cost: some
    /// 0.03 us a key (32 ns at 10 million), 8 bytes of memory for each.
    ///
    /// >>> from bloomery import FilterCascade
    /// >>> cascade = FilterCascade.build(range(10), range(10, 1000))
    /// >>> cascade.includes_many([0, 9, 10, 999])
    /// [True, True, False, False]
    #[staticmethod]
    #[pyo3(signature = (
        included: "Keys", excluded: "Keys", *, seed: "int" = 0, secret: "bytes | bool | None" = None,
        threads: "int" = ONE, progress: "Callable[[int, int], object] | None" = None, memory: "int | None" = None
    ))]
    fn build(
        included: &Bound<'_, PyAny>,
        excluded: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = params::seed)] seed: u64,
        secret: Option<&Bound<'_, PyAny>>,
        threads: Threads,
        progress: Option<&Bound<'_, PyAny>>,
        memory: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let hasher = params::hasher(seed, secret)?;
        let (how, sets) = (How::read(threads.0, progress, memory)?, [included, excluded]);
        let made = how.build_of_two(&hasher, sets, |included, excluded, job| match common(included, excluded)? {
            Some(hash) => Ok(Err(hash)),
            None => Core::build(included, excluded, hasher, job).map(Ok),
        })?;
        made.map(Self::wrap).map_err(|hash| overlap(&hasher, sets, hash))
    }

    /// True for a key of `included`, False for one of `excluded`. For any other key the answer means nothing: ask only
    /// for keys of the world that it was built of.
    #[pyo3(signature = (key: "Key", /))]
    fn includes(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let hash = hash_key(&self.hasher, key)?;
        Ok(self.lock.read(key.py(), |cascade| cascade.contains_hash(hash)))
    }

    /// As includes for many keys, in the caller's kind; takes what contains_many takes elsewhere, null answers null.
    #[pyo3(signature = (keys: "Keys", *, threads: "int" = ONE) -> "Answers[bool]")]
    fn includes_many<'py>(&self, keys: &Bound<'py, PyAny>, threads: Threads) -> PyResult<Bound<'py, PyAny>> {
        batch::run(&operations::Check { lock: &self.lock, threads: threads.0 }, &self.hasher, keys, true)
    }

    /// The number of wrong answers over a whole world: 0 for the one that it was built of.
    ///
    /// More tells that the sets are others: some of their keys were in neither set, or in the other. Takes what build takes.
    /// Cost: a look-up a key.
    #[pyo3(signature = (included: "Keys", excluded: "Keys"))]
    fn verify(&self, included: &Bound<'_, PyAny>, excluded: &Bound<'_, PyAny>) -> PyResult<u64> {
        let errors = |keys, wanted| {
            let errors = Errors { lock: &self.lock, wanted, errors: Cell::new(0) };
            batch::run(&errors, &self.hasher, keys, false).map(|_| errors.errors.get())
        };
        Ok(errors(included, 1)? + errors(excluded, 0)?)
    }
}
