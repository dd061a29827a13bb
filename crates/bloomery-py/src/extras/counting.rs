//! What only `CountingBloomFilter` has: questions about a number of occurrences.

use bloomery_core::counting::CountingBloomFilter as Core;
use bloomery_core::key::source::CHUNK;
use bloomery_core::structure::HashSource;
use pyo3::prelude::*;

use crate::biased_lock::BiasedLock;
use crate::classes::counting::CountingBloomFilter;
use crate::keys::batch::{self, Operation};
use crate::keys::scalar::hash_key;
use crate::params;

/// Checking against a number of occurrences.
struct Reach<'a> {
    lock: &'a BiasedLock<Core>,
    least: u64,
}

impl Operation for Reach<'_> {
    type Out = u8;
    const SKIPS_NULLS: bool = false;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, out: Option<&mut [u8]>) -> PyResult<()> {
        let Some(out) = out else { return Ok(()) };
        self.lock.detach(py, |session| {
            let mut hashes = [0u64; CHUNK];
            for (i, out) in out.chunks_mut(CHUNK).enumerate() {
                let hashes = &mut hashes[..out.len()];
                source.fill(i * CHUNK, hashes);
                session.read(|filter| filter.reach_hashes(hashes, self.least, out));
            }
        });
        Ok(())
    }
}

/// Checks `at_least=`.
fn least(value: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
    value.map_or(Ok(1), |value| params::whole("at_least", value, 1))
}

#[pymethods]
impl CountingBloomFilter {
    /// True when the key seems to have been added `at_least` times more than removed, False when it
    /// certainly was not. Beyond the counters' maximum the answer is that for the maximum.
    #[pyo3(signature = (key: "object", /, *, at_least: "int" = None))]
    #[pyo3(text_signature = "($self, key, /, *, at_least=1)")]
    fn contains(&self, key: &Bound<'_, PyAny>, at_least: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let least = least(at_least)?;
        let hash = hash_key(&self.hasher, key)?;
        Ok(self.lock.read(key.py(), |f| f.reaches(hash, least)))
    }

    /// As contains, for many keys; takes and answers what contains_many does.
    #[pyo3(signature = (keys: "object", at_least: "int") -> "Any")]
    fn contains_many_at_least<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        at_least: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let reach = Reach { lock: &self.lock, least: least(Some(at_least))? };
        batch::run(&reach, &self.hasher, keys, true)
    }

    /// Rate at which contains(key, at_least=...) is wrong now for keys never added, if no key came
    /// twice. Counts the counters in use: O(nbytes).
    #[pyo3(signature = (at_least: "int"))]
    fn fpr_at_least(&self, at_least: &Bound<'_, PyAny>) -> PyResult<f64> {
        let least = least(Some(at_least))?;
        Ok(self.lock.read(at_least.py(), |f| f.fpr_at_least(least)))
    }
}
