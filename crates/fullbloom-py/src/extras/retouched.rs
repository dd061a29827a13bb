//! What only `RetouchedBloomFilter` has: training, and clearing bits.

use fullbloom_core::bloom::RetouchedBloomFilter as Core;
use fullbloom_core::bloom::retouched::Choice;
use fullbloom_core::key::source::CHUNK;
use fullbloom_core::structure::HashSource;
use fullbloom_core::structure::declaration::one_of;
use pyo3::prelude::*;

use crate::classes::retouched::RetouchedBloomFilter;
use crate::errors::OrRaise;
use crate::keys::batch::{self, Operation};
use crate::locking::biased_lock::BiasedLock;
use crate::operations::warnings::{expect_batch, hash_lookup};
use crate::operations::write_chunks;
use crate::parameters;

/// Trains on a batch of false positives.
struct Train<'a, W> {
    lock: &'a BiasedLock<Core>,
    work: W,
}

impl<W: Fn(&mut Core, u64) -> fullbloom_core::Result<bool> + Sync> Operation for Train<'_, W> {
    type Out = u8;
    const SKIPS_NULLS: bool = true;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, mut out: Option<&mut [u8]>) -> PyResult<()> {
        expect_batch(py, self.lock, source)?;
        write_chunks(self.lock, py, source, CHUNK, |filter, start, hashes| {
            for (i, &hash) in hashes.iter().enumerate() {
                let answer = (self.work)(filter, hash)?;
                if let Some(out) = out.as_deref_mut() {
                    out[start + i] = u8::from(answer);
                }
            }
            Ok(())
        })
    }
}

/// Reads `scheme=`.
fn scheme(value: &Bound<'_, PyAny>) -> PyResult<Choice> {
    one_of("scheme", parameters::text("scheme", value)?, Choice::NAMES).or_raise(value.py())
}

#[pymethods]
impl RetouchedBloomFilter {
    /// Records a key that is found and should not be, for the schemes of retouch; clears no bit. False, and no change, when it
    /// is not found.
    #[pyo3(signature = (key: "Key", /))]
    fn add_false_positive(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (py, hash) = (key.py(), hash_lookup(&self.lock, &self.hasher, key)?);
        self.lock.write(py, |f| f.note_false_positive(hash)).or_raise(py)
    }

    /// As add_false_positive for many keys, in the same container type; takes what contains_many takes,
    /// skips nulls.
    #[pyo3(signature = (keys: "Keys") -> "Answers[bool]")]
    fn add_false_positives<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        batch::run(&Train { lock: &self.lock, work: Core::note_false_positive }, &self.hasher, keys, true)
    }

    /// Clears one bit of a key, so that it is no longer found; False when it was not found.
    ///
    /// scheme: "random"; "minimum-fn", the bit that fewest members set; "maximum-fp", the bit that most
    /// known false positives need; "ratio", the bit with the most false positives per member.
    #[pyo3(signature = (key: "Key", scheme: "Literal['random', 'minimum-fn', 'maximum-fp', 'ratio']" = Choice::Ratio))]
    #[pyo3(text_signature = "($self, key, scheme='ratio')")]
    fn retouch(&self, key: &Bound<'_, PyAny>, #[pyo3(from_py_with = scheme)] scheme: Choice) -> PyResult<bool> {
        let (py, hash) = (key.py(), hash_lookup(&self.lock, &self.hasher, key)?);
        self.lock.write(py, |f| f.retouch(hash, scheme)).or_raise(py)
    }

    /// As retouch for many keys, one after the other, in the same container type; takes what contains_many
    /// takes, skips nulls.
    #[pyo3(signature = (keys: "Keys", scheme: "Literal['random', 'minimum-fn', 'maximum-fp', 'ratio']" = Choice::Ratio) -> "Answers[bool]")]
    #[pyo3(text_signature = "($self, keys, scheme='ratio')")]
    fn retouch_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = scheme)] scheme: Choice,
    ) -> PyResult<Bound<'py, PyAny>> {
        let work = |f: &mut Core, hash| f.retouch(hash, scheme);
        batch::run(&Train { lock: &self.lock, work }, &self.hasher, keys, true)
    }

    /// Clears a share of the set bits, chosen by seed, and returns how many: O(nbytes).
    #[pyo3(signature = (share: "float", seed: "int" = 0))]
    fn clear_random(
        &self,
        share: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = parameters::seed)] seed: u64,
    ) -> PyResult<u64> {
        let (py, share) = (share.py(), parameters::real("share", share)?);
        self.lock.change(py, |f| f.clear_random(share, seed)).or_raise(py)
    }

    /// Estimated share of the members that are missed, from the cells: O(nbytes).
    fn fnr(&self, py: Python<'_>) -> f64 {
        self.lock.look(py, Core::fnr)
    }
}
